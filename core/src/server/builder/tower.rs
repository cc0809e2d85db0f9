//! Layers of `tower` around handlers.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Mutex;
use tower_service::Service;

use super::Builder;
use crate::handler::HandlerError;
use crate::server::executor::{HandlerCall, Reply};

/// The error of `tower` services that may fail in several ways. A [`HandlerError`] in it stays as it was.
type BoxError = Box<dyn Error + Send + Sync>;

/// The innermost service of a stack of `tower` layers: it runs the rest of a call's way. See
/// [`Builder::tower_layer`].
#[derive(Clone, Debug)]
pub struct HandlerService(());

impl Service<HandlerCall> for HandlerService {
    type Response = Reply;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: HandlerCall) -> Self::Future {
        Box::pin(async move {
            match call.rest.take() {
                Some(next) => next.run(call).await.map_err(HandlerError::into_boxed),
                None => Err("the call is not in its stack of layers".into()),
            }
        })
    }
}

impl Builder {
    /// Runs a `tower` layer, or several in a `ServiceBuilder`, around each call of a handler, like a
    /// [`layer`](Self::layer): with [`HandlerCall`] as the request and [`Reply`] as the response. All calls
    /// share one service, so a limit of concurrency or rate is one of all handlers and connections, and the
    /// service need not be `Clone`. While it is not ready, calls wait in the order of arrival.
    ///
    /// An error of the service becomes an error with the error's text and those of its sources, of a tool a tool
    /// error; [`HandlerError`]s pass unchanged. Layers that use tokio's timers work wherever the server is served; a
    /// client in the same process is to be connected within a tokio runtime.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcpbolt::server::{Arguments, Server, Tool};
    /// use tower::ServiceBuilder;
    /// use tower::limit::ConcurrencyLimitLayer;
    /// use tower::timeout::TimeoutLayer;
    ///
    /// let layers = ServiceBuilder::new()
    ///     .layer(ConcurrencyLimitLayer::new(8))
    ///     .layer(TimeoutLayer::new(Duration::from_secs(5)));
    /// let server = Server::builder("shop", "1.0.0")
    ///     .tool(Tool::new("order"), |_: Arguments, _| async { "ordered" })
    ///     .tower_layer(layers)
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn tower_layer<L, S>(self, layer: L) -> Self
    where
        L: tower_layer::Layer<HandlerService, Service = S>,
        S: Service<HandlerCall, Response = Reply> + Send + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        let stack = Arc::new(Mutex::new(layer.layer(HandlerService(()))));
        let failed = |error: S::Error| HandlerError::from(error);
        self.layer(move |mut call, next| {
            let stack = stack.clone();
            async move {
                call.rest = Some(next);
                let result = {
                    // One waiter polls at a time: a service wakes only the task that polled it last.
                    let mut stack = stack.lock().await;
                    poll_fn(|cx| stack.poll_ready(cx)).await.map_err(failed)?;
                    stack.call(call)
                };
                result.await.map_err(failed)
            }
        })
    }
}
