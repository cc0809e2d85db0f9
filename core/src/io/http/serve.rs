//! A server on a socket.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::header::UPGRADE;
use hyper::service::service_fn;
use hyper::{Method, Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::endpoint::Peer;
use super::handover::Handover;
use super::identify::PeerCertificate;
use super::options::HttpOptions;
use super::service::HttpService;
use crate::correlate::CancelToken;
use crate::io::net::drive::{ABRUPT, FAREWELL};
use crate::io::net::listen::{Place, Places, listen};
use crate::io::net::metrics::Counted;
use crate::io::net::serve::{ServeOptions, TlsOptions};
#[cfg(feature = "tls")]
use crate::io::net::tls::Acceptor;
use crate::server::Server;

/// A server that listens on a socket.
pub struct HttpServer {
    listener: TcpListener,
    service: HttpService,
    places: Places,
    #[cfg(feature = "tls")]
    tls: Option<Acceptor>,
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl HttpServer {
    /// Begins to listen. Within a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the address cannot be listened on; as [`HttpService::new`].
    pub async fn bind(
        server: &Server,
        address: impl tokio::net::ToSocketAddrs,
        options: HttpOptions,
    ) -> io::Result<Self> {
        let listener = listen(address).await?;
        let service = HttpService::new(server, options)?;
        Ok(Self::on(listener, service))
    }

    /// The same on a socket that listens already.
    pub fn on(listener: TcpListener, service: HttpService) -> Self {
        Self {
            listener,
            service,
            places: Places::new(ServeOptions::default().max_connections),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// What is served.
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// So many connections at a time; further ones wait to be taken.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.places = Places::new(count);
        self
    }

    /// Behind TLS.
    ///
    /// # Errors
    /// When a file cannot be read, or the key is not that of the certificate;
    /// [`Unsupported`](io::ErrorKind::Unsupported) without the feature `tls`.
    #[cfg(feature = "tls")]
    pub fn behind_tls(mut self, options: &TlsOptions) -> io::Result<Self> {
        let allowed = self.service.options().header_timeout;
        self.tls = Some(Acceptor::new(options, allowed)?);
        Ok(self)
    }

    /// Behind TLS.
    ///
    /// # Errors
    /// Always: the feature `tls` is not built in.
    #[cfg(not(feature = "tls"))]
    pub fn behind_tls(self, _: &TlsOptions) -> io::Result<Self> {
        let why = "this program has no TLS built in: feature `tls` of mcpbolt";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Where it listens: tells the port that the system chose.
    ///
    /// # Errors
    /// When the system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` ends; then takes no new connection, and what is in flight is answered
    /// within the grace period.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let service = self.service;
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(service.options().header_timeout);
        http.http2().timer(TokioTimer::new());
        let http = Arc::new(http);
        let graceful = GracefulShutdown::new();
        let over = CancelToken::new();
        let wants_peers = service.wants_peers();
        let begin = |stream: TcpStream, place: Place| {
            let peer = wants_peers.then(|| stream.peer_addr().ok()).flatten();
            let each = Each {
                peer: peer.map(Peer),
                certificate: None,
                over: over.clone(),
                http: http.clone(),
                watcher: graceful.watcher(),
                attended: graceful.watcher(),
                service: service.clone(),
                place,
            };
            #[cfg(feature = "tls")]
            if let Some(tls) = self.tls.clone() {
                tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(stream).await {
                        let shown = stream.get_ref().1.peer_certificates();
                        let shown = shown.and_then(|chain| chain.first());
                        let certificate = shown.map(|one| PeerCertificate(one.as_ref().into()));
                        Each {
                            certificate,
                            ..each
                        }
                        .serve(stream)
                        .await;
                    }
                });
                return;
            }
            tokio::spawn(each.serve(stream));
        };
        let stall = service.options().limits.stall_timeout;
        self.places.fill(self.listener, stall, stop, begin).await;
        service.stop();
        let grace = service.options().grace;
        // The last words of those that the grace period has ended leave, too.
        let _ = timeout(grace.saturating_add(ABRUPT), graceful.shutdown()).await;
        over.cancel(None);
        // Those who went on as WebSockets.
        self.places.emptied(FAREWELL).await;
    }
}

/// One connection to be served.
struct Each {
    http: Arc<auto::Builder<TokioExecutor>>,
    watcher: Watcher,
    /// The server waits for whoever has it, also without hyper.
    attended: Watcher,
    /// It ends, whatever it waits for.
    over: CancelToken,
    service: HttpService,
    place: Place,
    /// When somebody wants to know.
    peer: Option<Peer>,
    /// What the client has shown below HTTP.
    certificate: Option<PeerCertificate>,
}

impl Each {
    async fn serve<S>(self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self {
            service,
            place,
            peer,
            certificate,
            ..
        } = self;
        let metrics = service.metrics().clone();
        let opening = service.options().header_timeout;
        let heard = Arc::new(Notify::new());
        let handover = Handover::new();
        let (hears, asks, lives) = (heard.clone(), handover.clone(), place.clone());
        let respond = service_fn(move |mut request: Request<hyper::body::Incoming>| {
            hears.notify_one();
            let service = service.clone();
            if request.headers().contains_key(UPGRADE) {
                // It is kept for as long as the connection lives, also as a WebSocket.
                request.extensions_mut().insert(lives.clone());
            }
            if let Some(peer) = peer {
                request.extensions_mut().insert(peer);
            }
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let stands = is_standing(&request).then(|| asks.clone());
            async move {
                let mut response = service.respond(request).await;
                if let Some(handover) = stands {
                    handover.ask(&mut response);
                }
                Ok::<_, Infallible>(response)
            }
        });
        {
            let http = self.http;
            let stream = handover.lend(Counted::new(stream, &metrics));
            let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), respond);
            let mut over = self.over.cancelled();
            let mut connection = pin!(self.watcher.watch(connection));
            // Nothing else has a timer before it is known which HTTP is spoken.
            let opened = tokio::select! {
                _ = &mut connection => return,
                () = &mut over => return,
                opened = timeout(opening, heard.notified()) => opened,
            };
            if opened.is_err() {
                return;
            }
            // That a client is gone is no error of the server's.
            let served = poll_fn(|cx| match connection.as_mut().poll(cx) {
                Poll::Pending if !handover.is_due() => Poll::Pending,
                _ => Poll::Ready(()),
            });
            tokio::select! {
                biased;
                () = served => {}
                () = over => return,
            }
        }
        let Some(standing) = handover.take() else {
            return;
        };
        // A task of its own is as small as what is left to do.
        tokio::spawn(async move {
            let _alive = (self.attended, place);
            tokio::select! {
                biased;
                () = standing => {}
                () = self.over.cancelled() => {}
            }
        });
    }
}

/// Whether the answer, if it is events, is alone on its connection for as long as it lasts.
fn is_standing<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_11 && request.method() == Method::GET
}
