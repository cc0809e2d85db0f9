//! Layers of `tower` around the handlers of tools.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Mutex;
use tower_service::Service;

use super::Builder;
use crate::handler::HandlerError;
use crate::model::ToolResult;
use crate::server::executor::ToolCall;

/// The innermost service of a stack of `tower` layers: it runs the rest of a call's way. See
/// [`Builder::tower_layer`].
#[derive(Clone, Debug)]
pub struct ToolService(());

impl Service<ToolCall> for ToolService {
    type Response = ToolResult;
    type Error = HandlerError;
    type Future = Pin<Box<dyn Future<Output = Result<ToolResult, HandlerError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HandlerError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        Box::pin(async move {
            match call.rest.take() {
                Some(next) => next.run(call).await,
                None => Err(HandlerError::new("the call is not in its stack of layers")),
            }
        })
    }
}

impl Builder {
    /// Runs a `tower` layer, or several in a `ServiceBuilder`, around each call of a tool, like a
    /// [`layer`](Self::layer): with [`ToolCall`] as the request and [`ToolResult`] as the response. All calls
    /// share one service, so a limit of concurrency or rate is one of all tools and connections, and the
    /// service need not be `Clone`. While it is not ready, calls wait in the order of arrival.
    ///
    /// An error of the service becomes a tool error with the error's text and those of its sources;
    /// [`HandlerError`]s pass unchanged. Layers that use tokio's timers work wherever the server is served; a
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
        L: tower_layer::Layer<ToolService, Service = S>,
        S: Service<ToolCall, Response = ToolResult> + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send + 'static,
    {
        let stack = Arc::new(Mutex::new(layer.layer(ToolService(()))));
        let failed = |error: S::Error| HandlerError::from_boxed(error.into());
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
