//! A server as a service: a request in, an answer out, on whatever carries HTTP.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::Body;
use hyper::{Request, Response};

use super::answers::refused;
use super::body::HttpBody;
use super::endpoint::Endpoint;
use super::options::HttpOptions;
use crate::server::Server;

/// A server behind one HTTP endpoint. Cheap to clone; a `tower` service, and hyper's.
///
/// ```no_run
/// # async fn example(server: mcpbolt::server::Server) -> std::io::Result<()> {
/// use mcpbolt::io::http::{HttpOptions, HttpService};
/// let service = HttpService::new(&server, HttpOptions::default())?;
/// // … as a route of a `tower` application, or:
/// # let request: hyper::Request<String> = unimplemented!();
/// let response = service.respond(request).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpService(Arc<Endpoint>);

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl HttpService {
    /// Serves what `server` offers. Its handlers run on threads of the engine's.
    ///
    /// # Errors
    /// When the trace that [`TRACE_VARIABLE`](crate::io::TRACE_VARIABLE) asks for cannot be
    /// written.
    pub fn new(server: &Server, options: HttpOptions) -> io::Result<Self> {
        Ok(Self(Arc::new(Endpoint::new(server, options)?)))
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.0.options
    }

    /// Streams that are open end in good order.
    pub(super) fn stop(&self) {
        self.0.stop();
    }

    /// Answers one request. Within a tokio runtime with time.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of its answer, cancels a request of 2026-07-28; in a
    /// session it goes on, for a client that comes back (R-CAN-06).
    pub async fn respond<B: Body>(&self, request: Request<B>) -> Response<HttpBody> {
        let (parts, body) = request.into_parts();
        let answer = self.0.respond(parts, body).await;
        answer.unwrap_or_else(refused)
    }
}

type Responding = Pin<Box<dyn Future<Output = Result<Response<HttpBody>, Infallible>> + Send>>;

impl<B: Body + Send + 'static> tower_service::Service<Request<B>> for HttpService
where
    B::Data: Send,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Responding;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Responding {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}
