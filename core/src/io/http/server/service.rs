//! A server as a service that turns an HTTP request into a response, for any HTTP implementation.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::Body;
use hyper::{Request, Response};

use super::body::HttpBody;
use super::endpoint::Endpoint;
use super::options::HttpOptions;
use crate::io::net::metrics::Metrics;
use crate::io::serve::spawner;
use crate::server::{Hosting, Server};

/// A server behind one HTTP endpoint. Cheap to clone; a `tower` service, which hyper can use as well.
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
pub struct HttpService {
    endpoint: Arc<Endpoint>,
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService")
            .field("options", self.endpoint.options())
            .finish_non_exhaustive()
    }
}

impl HttpService {
    /// Serves `server`. If the service is created within a tokio runtime, handlers are tasks of the runtime,
    /// else they run on threads of the engine. To choose, pass a spawner to [`Server::hosting`], and
    /// the result to [`hosting`](Self::hosting): [`Workers`](crate::io::Workers) that are created within
    /// a runtime have threads of their own for handlers, which may still use the runtime.
    ///
    /// # Errors
    /// When an entry of `hosts` or `origins` is not a valid host or origin, or when the trace that
    /// [`TRACE_VARIABLE`](crate::io::TRACE_VARIABLE) asks for cannot be written.
    pub fn new(server: &Server, options: HttpOptions) -> io::Result<Self> {
        Self::hosting(server.hosting(spawner()), options)
    }

    /// Serves a server that is hosted elsewhere: in another language or on other threads.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn hosting(hosting: Arc<dyn Hosting>, options: HttpOptions) -> io::Result<Self> {
        Self::of_worker(hosting, options, None)
    }

    /// The service of one of several processes, with its number among them.
    pub(in crate::io) fn of_worker(
        hosting: Arc<dyn Hosting>,
        options: HttpOptions,
        worker: Option<u64>,
    ) -> io::Result<Self> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        options.check().map_err(invalid)?;
        let endpoint = Arc::new(Endpoint::new(hosting, options, worker)?);
        Ok(Self { endpoint })
    }

    /// Counters of this service. Connections and bytes are counted only where this crate listens
    /// itself.
    pub fn metrics(&self) -> &Arc<Metrics> {
        self.endpoint.metrics()
    }

    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Ends open streams gracefully within the grace period. Call it when the program that carries the
    /// requests accepts no more of them.
    pub fn stop(&self) {
        self.endpoint.stop();
    }

    /// Answers one request. Requires a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of its response, cancels a request of 2026-07-28. A request of
    /// a session runs on, for a client that reconnects (R-CAN-06).
    pub async fn respond<B: Body>(&self, request: Request<B>) -> Response<HttpBody> {
        let (mut parts, body) = request.into_parts();
        let peer = parts.extensions.get().copied();
        self.endpoint.respond(&mut parts, body, peer).await
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
