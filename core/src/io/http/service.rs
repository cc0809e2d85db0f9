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
#[cfg(feature = "compression")]
use super::compress;
use super::cors::Page;
use super::endpoint::Endpoint;
use super::options::HttpOptions;
use super::upgrade;
use crate::io::net::metrics::{Metrics, count};
use crate::io::net::reception::Reception;
use crate::io::workers::{Workers, WorkersConfig};
use crate::server::{Hosting, Server};

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
pub struct HttpService {
    endpoint: Arc<Endpoint>,
    /// For those who go on as WebSockets.
    reception: Arc<Reception>,
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService")
            .field("options", &self.endpoint.options)
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
        let workers = Workers::new(WorkersConfig::default());
        Self::hosting(server.hosting(Arc::new(workers)), options)
    }

    /// Serves what is hosted elsewhere: by another language, on other threads.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn hosting(hosting: Arc<dyn Hosting>, options: HttpOptions) -> io::Result<Self> {
        let reception = Arc::new(Reception::new(hosting.clone(), &options));
        let metrics = reception.metrics().clone();
        let endpoint = Arc::new(Endpoint::new(hosting, options, metrics)?);
        Ok(Self {
            endpoint,
            reception,
        })
    }

    /// What was done so far; connections and bytes are known where this crate listens itself.
    pub fn metrics(&self) -> &Arc<Metrics> {
        self.reception.metrics()
    }

    /// Whether a request is to say where it comes from, by a [`Peer`](super::endpoint::Peer).
    pub(super) fn wants_peers(&self) -> bool {
        self.endpoint.wants_peers()
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.endpoint.options
    }

    /// Has the streams that are open end in good order, within the grace period: for who carries
    /// the requests and takes no more of them.
    pub fn stop(&self) {
        self.endpoint.stop();
        self.reception.stop();
    }

    /// Answers one request. Within a tokio runtime with time.
    ///
    /// # Cancel safety
    /// Dropping the future, or the body of its answer, cancels a request of 2026-07-28; in a
    /// session it goes on, for a client that comes back (R-CAN-06).
    pub async fn respond<B: Body>(&self, request: Request<B>) -> Response<HttpBody> {
        let page = Page::of(&request, self.options());
        let preflight = page.as_ref().and_then(|page| page.preflight(&request));
        let metrics = self.reception.metrics();
        count(&metrics.requests);
        #[cfg(feature = "tracing")]
        let (method, begun) = (request.method().clone(), std::time::Instant::now());
        #[cfg(feature = "compression")]
        let compressed = compress::is_wanted(request.headers(), self.options());
        let response = match preflight {
            Some(response) => return response,
            None => self.answer(request).await,
        };
        #[cfg(feature = "compression")]
        let response = match compressed {
            true => compress::compress(response),
            false => response,
        };
        if response.status().as_u16() >= 400 {
            count(&metrics.refused);
        }
        event!(debug, %method, status = response.status().as_u16(), took = ?begun.elapsed(), "a request of HTTP");
        match page {
            Some(page) => page.admit(response),
            None => response,
        }
    }

    async fn answer<B: Body>(&self, mut request: Request<B>) -> Response<HttpBody> {
        if let Err(refusal) = self.endpoint.identify(&mut request) {
            return *refusal;
        }
        if self.options().websocket && upgrade::is_asked(&request) {
            let answer = upgrade::upgrade(request, self.options(), &self.reception);
            return answer.unwrap_or_else(upgrade::refused);
        }
        let (parts, body) = request.into_parts();
        let answer = self.endpoint.respond(parts, body).await;
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
