//! A server on HTTP that listens on a socket.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

#[cfg(all(unix, feature = "sealing"))]
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::carried::Carried;
use super::detach::Detach;
use super::endpoint::Endpoint;
use super::head_timer::HeadTimer;
#[cfg(unix)]
use super::hop::{self, WorkerHop};
use super::options::HttpOptions;
use super::peer::{PeerAddress, PeerCertificate};
#[cfg(all(unix, feature = "sealing"))]
use super::response::refused;
use super::service::HttpService;
use super::way::Way;
use crate::correlate::CancelToken;
use crate::io::net::listen::{Reach, fill, listen};
use crate::io::net::metrics::Counted;
use crate::io::net::places::{Place, Places};
use crate::io::net::serve::{ServeOptions, TlsOptions};
use crate::io::net::tenure::Tenure;
#[cfg(feature = "tls")]
use crate::io::net::tls::Acceptor;
use crate::io::net::turns::{self, FairExecutor};
#[cfg(unix)]
use crate::io::supervise::WorkerProcess;
use crate::io::task::{ABRUPT, FAREWELL};
use crate::server::Server;

/// How long a worker that another has replaced answers further requests on its connections, each with the last response of
/// its connection.
const LAST_REQUESTS: Duration = Duration::from_secs(5);
/// Maximum number of concurrent streams on one HTTP/2 connection.
const MAX_STREAMS: u32 = 200;
/// Maximum size of all headers of a request, in bytes, as in Node; longer ones get status 431. With
/// HTTP/1.1, it is also the limit of hyper's read buffer.
const MAX_HEAD_BYTES: u32 = 16 << 10;
/// Maximum size of all headers of a request that another worker passes on, in bytes: those of the client, and its
/// certificate, for which TLS allows 64 KiB, in base64.
#[cfg(unix)]
const MAX_HOP_HEAD_BYTES: usize = 128 << 10;
/// Maximum number of headers of a request that another worker passes on: HTTP/2 has room for as many in
/// [`MAX_HEAD_BYTES`], each of which counts 32 bytes more than it has.
#[cfg(unix)]
const MAX_HOP_HEADERS: usize = 512;
/// The memory that a connection takes without its bodies, approximately, in bytes: mostly hyper's
/// buffers, with what the allocator loses between short blocks.
const CONNECTION_BYTES: usize = 28 << 10;

/// A server on HTTP that listens on a socket.
pub struct HttpServer {
    listener: TcpListener,
    service: HttpService,
    places: Places,
    tenure: Tenure,
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
    /// Binds a listener to `address`. Requires a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    /// When the address cannot be listened on; when other machines can reach it although no credentials
    /// are checked and [`HttpOptions::anonymous`] is not set; and as for [`HttpService::new`].
    pub async fn bind(
        server: &Server,
        address: impl tokio::net::ToSocketAddrs,
        options: HttpOptions,
    ) -> io::Result<Self> {
        let service = HttpService::new(server, options)?;
        let endpoint = service.endpoint();
        let reach = Reach::of(endpoint.has_verifier(), endpoint.options());
        let listener = listen(address, reach, false).await?;
        Ok(Self::on(listener, service))
    }

    /// Serves on a socket that already listens. The caller has decided from where the socket can be
    /// reached, so [`HttpOptions::anonymous`] is not checked.
    pub fn on(listener: TcpListener, service: HttpService) -> Self {
        let own = ServeOptions::default();
        let proxies = &service.endpoint().options().trusted_proxies;
        Self {
            listener,
            places: Places::new(own.max_connections, own.max_connections_per_peer, proxies),
            service,
            tenure: Tenure::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The service that answers the requests.
    pub fn service(&self) -> &HttpService {
        &self.service
    }

    /// Serves as one of several processes, for as long as their supervisor says.
    pub(in crate::io) fn during(mut self, tenure: Tenure) -> Self {
        self.tenure = tenure;
        self
    }

    /// Limits the number of connections at a time, and of connections from one address: see
    /// [`ServeOptions::max_connections`] and [`ServeOptions::max_connections_per_peer`].
    pub fn max_connections(mut self, all: usize, each: Option<usize>) -> Self {
        self.places = Places::new(
            all,
            each,
            &self.service.endpoint().options().trusted_proxies,
        );
        self
    }

    /// Serves behind TLS.
    ///
    /// # Errors
    /// When a file cannot be read, or the key does not match the certificate;
    /// [`Unsupported`](io::ErrorKind::Unsupported) without the feature `tls`.
    #[cfg(feature = "tls")]
    pub fn behind_tls(mut self, options: &TlsOptions) -> io::Result<Self> {
        let allowed = self.service.endpoint().options().header_timeout;
        self.tls = Some(Acceptor::new(options, allowed)?);
        Ok(self)
    }

    /// Serves behind TLS.
    ///
    /// # Errors
    /// Always: this build does not include the feature `tls`.
    #[cfg(not(feature = "tls"))]
    pub fn behind_tls(self, _: &TlsOptions) -> io::Result<Self> {
        let why = "this program has no TLS built in: feature `tls` of mcpbolt";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// The address that the server listens on, with the port that the system chose.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the future `stop` completes, then accepts no new connections and answers requests
    /// in flight within the grace period.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let endpoint = self.service.endpoint().clone();
        endpoint.begin();
        let shared = Shared {
            http: Arc::new(http(endpoint.options())),
            leaving: CancelToken::new(),
            stopping: CancelToken::new(),
            way: Way::of(&self.tenure, &endpoint),
            endpoint: endpoint.clone(),
        };
        let begin = |stream: TcpStream, place: Place| {
            let connection = shared.connection(place.clone());
            #[cfg(feature = "tls")]
            let tls = self.tls.clone();
            let served = async move {
                #[cfg(feature = "tls")]
                if let Some(tls) = tls {
                    if let Ok(stream) = tls.accept(stream).await {
                        let shown = stream.get_ref().1.peer_certificates();
                        let shown = shown.and_then(|chain| chain.first());
                        let certificate = shown.map(|one| PeerCertificate(one.as_ref().into()));
                        connection.serve(stream, certificate).await;
                    }
                    return;
                }
                connection.serve(stream, None).await;
            };
            tokio::spawn(place.task(until(place.gives_way(), served)));
        };
        let beside = Beside::begin(&self.tenure, &shared);
        let stall = endpoint.options().limits.stall_timeout;
        fill(&self.places, self.listener, stall, stop, begin).await;
        if self.tenure.is_replaced() {
            shared.leaving.cancel(None);
            let all = async {
                tokio::join!(
                    self.places.emptied(LAST_REQUESTS),
                    beside.emptied(LAST_REQUESTS)
                );
            };
            tokio::select! {
                () = all => {}
                () = self.tenure.over() => {}
            }
            beside.retire();
            endpoint.give_up_sessions();
        }
        // A call in flight of a worker that was replaced may have asked its client, whose answer comes to another worker.
        if !self.tenure.is_replaced() {
            // Their sessions are known to be gone before the connections to them end.
            beside.close();
        }
        shared.stopping.cancel(None);
        endpoint.stop();
        let grace = endpoint.options().grace;
        // The final messages of requests that the grace period has ended are still sent.
        let last = grace.saturating_add(ABRUPT);
        tokio::join!(self.places.emptied(last), beside.emptied(last));
        beside.close();
        self.places.close_all();
        self.places.emptied(FAREWELL).await;
    }
}

/// What all connections of a server share.
#[derive(Clone)]
struct Shared {
    http: Arc<auto::Builder<FairExecutor>>,
    /// Cancelled when another worker has taken over: the connection then ends after its next response.
    leaving: CancelToken,
    /// Cancelled when the server stops: the connection then ends after its current responses.
    stopping: CancelToken,
    way: Way,
    endpoint: Arc<Endpoint>,
}

impl Shared {
    /// For the connections of other workers. They are kept for as long as both serve: one that this side closed after a
    /// while might carry a request by then.
    #[cfg(unix)]
    fn arrived(&self) -> Self {
        let mut http = (*self.http).clone();
        http.http1()
            .max_buf_size(MAX_HOP_HEAD_BYTES)
            .max_headers(MAX_HOP_HEADERS)
            .header_read_timeout(None);
        Self {
            http: Arc::new(http),
            way: Way::Arrived,
            ..self.clone()
        }
    }

    fn connection(&self, place: Place) -> Connection {
        Connection {
            shared: self.clone(),
            place,
        }
    }
}

/// Serves the requests that other workers pass on, until it is closed.
struct Beside {
    places: Places,
    #[cfg(unix)]
    private: Option<(WorkerProcess, tokio::task::AbortHandle)>,
}

impl Beside {
    fn begin(tenure: &Tenure, shared: &Shared) -> Self {
        let limit = ServeOptions::default().max_connections;
        let places = Places::new(limit, None, &[]);
        #[cfg(unix)]
        let private = tenure.worker().and_then(|worker| {
            let private = worker.take_private().ok()??;
            let accepts = tokio::spawn(accept_hops(private, places.clone(), shared.arrived()));
            Some((worker.clone(), accepts.abort_handle()))
        });
        #[cfg(not(unix))]
        let _ = (tenure, shared);
        Self {
            places,
            #[cfg(unix)]
            private,
        }
    }

    /// Has other workers take the sessions of workers that have ended.
    fn retire(&self) {
        #[cfg(unix)]
        if let Some((worker, _)) = &self.private {
            worker.retire();
        }
    }

    /// Accepts no more: other workers know that this one has no sessions.
    fn close(&self) {
        #[cfg(unix)]
        if let Some((worker, accepts)) = &self.private {
            worker.withdraw();
            accepts.abort();
        }
    }

    /// Waits until all requests that were passed on are answered, for at most `within`.
    async fn emptied(&self, within: Duration) {
        self.places.emptied(within).await;
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.close();
    }
}

/// Serves the connections of other workers.
#[cfg(unix)]
async fn accept_hops(private: tokio::net::UnixListener, places: Places, shared: Shared) {
    let stall = shared.endpoint.options().limits.stall_timeout;
    let begin = |stream, place: Place| {
        let mut shared = shared.clone();
        if shared.stopping.is_cancelled() {
            // It came after that, and ends after its response.
            shared.stopping = CancelToken::new();
        }
        let served = shared.connection(place.clone()).serve(stream, None);
        tokio::spawn(place.task(until(place.gives_way(), served)));
    };
    fill(&places, private, stall, std::future::pending(), begin).await;
}

fn http(options: &HttpOptions) -> auto::Builder<FairExecutor> {
    let mut http = auto::Builder::new(FairExecutor);
    http.http1()
        .max_buf_size(MAX_HEAD_BYTES as usize)
        .header_read_timeout(options.header_timeout);
    let mut http2 = http.http2();
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES);
    if let Some(heartbeat) = options.heartbeat {
        http2
            .keep_alive_interval(heartbeat)
            .keep_alive_timeout(heartbeat);
    }
    http
}

/// Runs `work` until it completes or `end` does, whichever is first.
async fn until(end: impl Future<Output = ()>, work: impl Future<Output = ()>) {
    let (mut end, mut work) = (pin!(end), pin!(work));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => end.as_mut().poll(cx),
    })
    .await;
}

/// One accepted connection.
struct Connection {
    shared: Shared,
    place: Place,
}

impl Connection {
    /// Serves the connection until it has ended. `certificate` is the client's, over TLS.
    async fn serve<S>(self, stream: S, certificate: Option<PeerCertificate>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let place = self.place.clone();
        let detach = Detach::new();
        let has_begun = self.serve_by_hyper(stream, certificate, &detach).await;
        let Some(rest) = detach.take().filter(|_| has_begun) else {
            return;
        };
        // A stream may last for hours. It runs in a new task, which is smaller than this one with hyper's
        // state, and keeps nothing else.
        turns::spawn(async move { until(place.gives_way(), rest).await });
    }

    /// Serves until the connection has ended, or its stream is detached. Returns whether there was a
    /// request in time.
    async fn serve_by_hyper<S>(
        self,
        stream: S,
        certificate: Option<PeerCertificate>,
        detach: &Arc<Detach<Counted<S>>>,
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Shared {
            http,
            leaving,
            stopping,
            way,
            endpoint,
        } = self.shared;
        let metrics = endpoint.metrics().clone();
        let _state = metrics.occupied(CONNECTION_BYTES);
        let is_from_worker = way.is_from_worker();
        let requests = Arc::new(Requests {
            endpoint,
            way,
            leaving: leaving.clone(),
            is_multiplexed: AtomicBool::new(false),
            peer: self.place.peer().map(PeerAddress),
            place: self.place,
            certificate,
            has_begun: AtomicBool::new(is_from_worker),
            detach: detach.clone(),
        });
        let own = requests.clone();
        let respond = service_fn(move |request| own.clone().respond(request));
        let stream = TokioIo::new(detach.lend(Counted::new(stream, &metrics)));
        let mut http = (*http).clone();
        http.http1().timer(HeadTimer::default());
        let connection = http.serve_connection_with_upgrades(stream, respond);
        let mut connection = pin!(connection);
        let mut stopping = Some(stopping.cancelled());
        let mut leaving = Some(leaving.cancelled());
        // hyper starts its header timer only once it knows the HTTP version.
        let mut opening = pin!(sleep(requests.endpoint.options().header_timeout));
        poll_fn(|cx| {
            if let Some(stop) = &mut stopping
                && pin!(stop).poll(cx).is_ready()
            {
                stopping = None;
                connection.as_mut().graceful_shutdown();
            }
            // HTTP/2 tells the client which of its requests are still answered.
            if let Some(leave) = &mut leaving
                && pin!(leave).poll(cx).is_ready()
            {
                leaving = None;
                if requests.is_multiplexed.load(Relaxed) {
                    connection.as_mut().graceful_shutdown();
                }
            }
            // A client that disconnects is not an error of the server.
            if connection.as_mut().poll(cx).is_ready() || detach.is_due() {
                return Poll::Ready(true);
            }
            match requests.has_begun.load(Relaxed) {
                true => Poll::Pending,
                false => opening.as_mut().poll(cx).map(|()| false),
            }
        })
        .await
    }
}

/// State that the requests of one connection share.
struct Requests<S> {
    endpoint: Arc<Endpoint>,
    way: Way,
    leaving: CancelToken,
    /// The connection is HTTP/2.
    is_multiplexed: AtomicBool,
    place: Place,
    peer: Option<PeerAddress>,
    certificate: Option<PeerCertificate>,
    /// There was a request, or there may be none for a while.
    has_begun: AtomicBool,
    detach: Arc<Detach<S>>,
}

impl<S> Requests<S> {
    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Carried>, Infallible> {
        self.has_begun.store(true, Relaxed);
        let (mut parts, body) = request.into_parts();
        let (is_get, version) = (parts.method == Method::GET, parts.version);
        if version == Version::HTTP_2 {
            self.is_multiplexed.store(true, Relaxed);
        }
        let has_body = version < Version::HTTP_2 && !body.is_end_stream();
        let mut response = self.answer(&mut parts, body).await;
        if response.status().is_success() {
            self.place.establish();
        }
        self.detach.answered(has_body, response.status());
        if self.leaving.is_cancelled() && version < Version::HTTP_2 {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        if is_get && version == Version::HTTP_11 {
            self.detach.ask(&mut response);
        }
        Ok(response)
    }

    async fn answer(&self, parts: &mut Parts, body: Incoming) -> Response<Carried> {
        #[cfg(unix)]
        let peer = match &self.way {
            Way::None => self.peer,
            Way::Arrived => {
                let peer = hop::arrived(parts);
                #[cfg(feature = "sealing")]
                if self.endpoint.has_handed_over(parts) {
                    return Box::pin(self.answer_left(parts, body, peer)).await;
                }
                peer
            }
            Way::Onward(hop) => match hop.owner(parts) {
                None => self.peer,
                // Rare, so that the futures of other requests are smaller.
                Some(owner) => return Box::pin(self.passed(hop, owner, parts, body)).await,
            },
        };
        #[cfg(not(unix))]
        let peer = self.peer;
        self.own_answer(parts, body, peer).await
    }

    /// The answer to a request of a session that another worker has taken over.
    #[cfg(all(unix, feature = "sealing"))]
    async fn answer_left(
        &self,
        parts: &mut Parts,
        body: Incoming,
        peer: Option<PeerAddress>,
    ) -> Response<Carried> {
        match self.endpoint.left(parts, body).await {
            Ok(body) => self.own_answer(parts, Full::new(body), peer).await,
            Err(refusal) => refused(refusal, false).map(Carried::Own),
        }
    }

    /// The answer of another worker, or else that of this one.
    #[cfg(unix)]
    async fn passed(
        &self,
        hop: &WorkerHop,
        owner: u64,
        parts: &mut Parts,
        body: Incoming,
    ) -> Response<Carried> {
        let from = (self.peer, self.certificate.as_ref());
        match hop.pass(owner, parts, body, from).await {
            Ok(response) => response,
            Err(body) => self.own_answer(parts, body, self.peer).await,
        }
    }

    async fn own_answer<B: Body>(
        &self,
        parts: &mut Parts,
        body: B,
        peer: Option<PeerAddress>,
    ) -> Response<Carried> {
        if parts.method == Method::GET && parts.headers.contains_key(UPGRADE) {
            // The place is held for as long as the connection lives, also as a WebSocket.
            parts.extensions.insert(self.place.clone());
        }
        if let Some(certificate) = &self.certificate {
            parts.extensions.insert(certificate.clone());
        }
        let response = self.endpoint.respond(parts, body, peer).await;
        response.map(Carried::Own)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use hyper::StatusCode;
    use hyper::client::conn::http1::handshake;

    use super::super::body::HttpBody;
    use super::*;

    /// What serves the requests that other workers pass on.
    fn owner(header_timeout: Duration) -> Shared {
        let server = Server::builder("a", "1").build().unwrap();
        let options = HttpOptions {
            header_timeout,
            ..HttpOptions::default()
        };
        let service = HttpService::new(&server, options).unwrap();
        let shared = Shared {
            http: Arc::new(http(service.endpoint().options())),
            leaving: CancelToken::new(),
            stopping: CancelToken::new(),
            way: Way::None,
            endpoint: service.endpoint().clone(),
        };
        shared.arrived()
    }

    fn request() -> hyper::http::request::Builder {
        Request::post("/mcp").header("host", "127.0.0.1")
    }

    async fn connect(
        shared: &Shared,
    ) -> hyper::client::conn::http1::SendRequest<http_body_util::Empty<bytes::Bytes>> {
        let (here, there) = tokio::io::duplex(1 << 16);
        let place = Places::new(1, None, &[]).take(None).unwrap();
        tokio::spawn(shared.connection(place).serve(there, None));
        let (sender, connection) = handshake(TokioIo::new(here)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// Otherwise a kept connection could be closed while a request is on its way.
    #[tokio::test]
    async fn a_connection_of_another_worker_may_be_idle() {
        let allowed = Duration::from_millis(20);
        let mut sender = connect(&owner(allowed)).await;
        for _ in 0..3 {
            sender.ready().await.unwrap();
            let request = request().body(http_body_util::Empty::new()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert!(answer.status().is_client_error(), "{answer:?}");
            drop(answer);
            sleep(10 * allowed).await;
            assert!(!sender.is_closed());
        }
    }

    /// What a worker adds does not make a head too long that the client's was not.
    #[tokio::test]
    async fn the_head_of_another_worker_may_be_longer_than_that_of_a_client() {
        let shared = owner(Duration::from_secs(30));
        let ask = async |certificate: usize, headers: usize| {
            let mut request = request().header("x-mcpbolt-certificate", "A".repeat(certificate));
            for number in 0..headers {
                request = request.header(format!("x-{number}"), "1");
            }
            let request = request.body(http_body_util::Empty::new()).unwrap();
            let answer = connect(&shared).await.send_request(request).await.unwrap();
            answer.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        };
        let client = MAX_HEAD_BYTES as usize;
        assert!(!ask(MAX_HOP_HEAD_BYTES - client, MAX_HOP_HEADERS - 10).await);
        assert!(ask(MAX_HOP_HEAD_BYTES, 0).await);
        assert!(ask(0, MAX_HOP_HEADERS).await);
    }

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
        "capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

    async fn post(
        endpoint: &Endpoint,
        session: Option<&HeaderValue>,
        body: &str,
    ) -> Response<HttpBody> {
        let request = request()
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body.to_owned());
        let (mut parts, body) = request.unwrap().into_parts();
        if let Some(session) = session {
            parts.headers.insert("mcp-session-id", session.clone());
        }
        endpoint.respond(&mut parts, body, None).await
    }

    /// A client knows what to do about a session that is gone (R-SES-05), not about one that cannot begin.
    #[tokio::test]
    async fn a_session_begins_although_sessions_are_given_up() {
        let endpoint = owner(Duration::from_secs(30)).endpoint;
        endpoint.give_up_sessions();
        let begun = post(&endpoint, None, HELLO).await;
        assert_eq!(begun.status(), 200, "{:?}", begun.headers());
        let session = begun.headers()["mcp-session-id"].clone();
        assert_eq!(post(&endpoint, Some(&session), PING).await.status(), 404);
    }

    #[cfg(feature = "sealing")]
    fn process(store: &Arc<crate::store::LocalStore>, server: &Server) -> HttpService {
        let keys = Arc::new(crate::store::StoreKeys::new([1; 32], [2; 32]));
        let shared = crate::io::http::SharedSessions::new(store.clone(), keys);
        let options = HttpOptions {
            shared_sessions: Some(shared),
            ..HttpOptions::default()
        };
        HttpService::new(server, options).unwrap()
    }

    /// R-CAN-02, R-BAT: a worker that was replaced takes what is about calls in flight there, and nothing else of a shared session.
    #[cfg(feature = "sealing")]
    #[tokio::test]
    async fn a_replaced_worker_takes_what_is_about_its_calls_alone() {
        use crate::server::{Arguments, Tool};
        let waits = |_: Arguments, _| std::future::pending::<String>();
        let server = Server::builder("a", "1").tool(Tool::new("waits"), waits);
        let process = process(&Arc::default(), &server.build().unwrap());
        let endpoint = process.endpoint();
        // A revision with batches.
        let hello = HELLO.replace("2025-06-18", "2025-03-26");
        let begun = post(endpoint, None, &hello).await;
        let session = &begun.headers()["mcp-session-id"];
        let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"waits","arguments":{}}}"#;
        let mut call = pin!(post(endpoint, Some(session), call));
        let answered = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
        assert!(answered.is_pending());
        let left = async |method: &str, session: &HeaderValue, body: &str| {
            let request = Request::builder().method(method).uri("/mcp");
            let request = request.header("mcp-session-id", session);
            let (parts, body) = request.body(body.to_owned()).unwrap().into_parts();
            assert!(endpoint.has_handed_over(&parts));
            let left = endpoint.left(&parts, body).await;
            left.map_err(|refusal| refusal.status)
        };
        let (cancel, other) = [7, 8].map(|id| format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)).into();
        let both = format!("[{cancel},{other}]");
        let answer = r#"{"jsonrpc":"2.0","id":123,"result":{}}"#;
        let (parts, ()) = request()
            .header("mcp-session-id", session)
            .body(())
            .unwrap()
            .into_parts();
        assert!(!endpoint.has_handed_over(&parts), "it serves");
        endpoint.give_up_sessions();
        for body in [PING, &other, &both, "[]", answer] {
            assert_eq!(left("POST", session, body).await, Err(421), "{body}");
        }
        for method in ["GET", "DELETE"] {
            assert_eq!(left(method, session, "").await, Err(421), "{method}");
        }
        for body in [cancel.clone(), format!(" [ {cancel} ] ")] {
            assert_eq!(
                left("POST", session, &body).await.as_deref(),
                Ok(body.as_bytes())
            );
        }
        assert_eq!(post(endpoint, Some(session), &cancel).await.status(), 202);
        assert_eq!(call.await.status(), 200);
        assert_eq!(
            left("POST", session, &cancel).await,
            Err(421),
            "it has ended"
        );
    }

    /// R-SES-05: a session that other processes accept, too, is not gone for its client while its worker ends.
    #[cfg(feature = "sealing")]
    #[tokio::test]
    async fn a_shared_session_goes_on_while_its_worker_ends() {
        let store = Arc::default();
        let server = Server::builder("a", "1").build().unwrap();
        let (ends, next) = (process(&store, &server), process(&store, &server));
        let begun = post(ends.endpoint(), None, HELLO).await;
        let session = Some(&begun.headers()["mcp-session-id"]);
        ends.endpoint().give_up_sessions();
        assert_eq!(post(ends.endpoint(), session, PING).await.status(), 200);
        ends.endpoint().stop();
        for place in [&ends, &ends, &next] {
            assert_eq!(post(place.endpoint(), session, PING).await.status(), 200);
        }
    }
}
