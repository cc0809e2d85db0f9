//! Passes requests of sessions that other workers have on to them, over their private sockets.
//!
//! ```text
//!   client ─▶ worker 3 ── Mcp-Session-Id: …-1 ──▶ private socket of worker 1 ─▶ gate ─▶ session
//!      ◀──────────────────────── the response, as it comes ───────────────────────╯
//! ```
//!
//! The id of a session, and of the stream of an action, ends with the number of its worker. Nothing of a request is checked
//! before it is passed on: the owner checks all of it, once, with the address and the certificate of the client, which go
//! along in headers that only private sockets read. Connections between workers are kept for further requests.
//!
//! | the owner | status |
//! |---|---|
//! | has removed its socket: it serves no more | 404, so the client begins another session; where processes share sessions, the request goes to the worker on which all agree as its successor |
//! | was replaced, has calls in flight, and the request is not about them, where processes share sessions | the owner answers 421, and the request goes to the successor |
//! | cannot be reached, but has its socket: there are no descriptors, or its queue is full | 503 with `Retry-After` |
//! | cannot be found, as somebody has removed the folder of the sockets | 503 with `Retry-After`, and once the supervisor has made it again, 404; where processes share sessions, the worker that the request came to serves it |
//! | has closed the connection with the request unread | the request is sent again; after three times, 503 with `Retry-After` |
//! | has closed the connection after it had read the request | 502, as the request may have run |

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Uri};

use super::carried::Carried;
use super::endpoint::Endpoint;
use super::headers::{SESSION, legacy_session, resumed_action};
use super::hop_body::{CopyBounds, HopBody};
use super::hop_pool::HopPool;
use super::peer::{PeerAddress, PeerCertificate};
use super::refusal::{HttpRefusal, OWNER_BUSY, OWNER_GONE, OWNERS_LOST, SESSION_GONE};
use super::response::refused;
use super::session_name::{without_worker, worker_of};
use super::sse::parse_id;
use crate::io::supervise::WorkerProcess;

const PEER: HeaderName = HeaderName::from_static("x-mcpbolt-peer");
const CERTIFICATE: HeaderName = HeaderName::from_static("x-mcpbolt-certificate");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// How many times in all a request may be left unread on a new connection, or be answered with 421.
const ATTEMPTS: usize = 3;

/// The way to the other workers.
pub struct WorkerHop {
    own: u64,
    pool: Arc<HopPool>,
    /// Whether this worker takes the sessions of an owner that has ended.
    shares_sessions: bool,
    copies: CopyBounds,
}

/// The address and the certificate of the client that another worker passes a request on for. Takes them out of the
/// headers.
pub fn arrived(parts: &mut Parts) -> Option<PeerAddress> {
    if let Some(shown) = parts.headers.remove(CERTIFICATE)
        && let Ok(shown) = STANDARD.decode(shown)
    {
        parts.extensions.insert(PeerCertificate(shown.into()));
    }
    let peer = parts.headers.remove(PEER)?;
    peer.to_str()
        .ok()?
        .parse::<SocketAddr>()
        .ok()
        .map(PeerAddress)
}

impl WorkerHop {
    pub fn new(worker: &WorkerProcess, endpoint: &Endpoint) -> Self {
        Self {
            own: worker.number(),
            pool: Arc::new(HopPool::new(worker.folder())),
            shares_sessions: endpoint.options().has_shared_sessions(),
            copies: endpoint.copy_bounds(),
        }
    }

    /// The other worker that has what a request names.
    pub fn owner(&self, parts: &Parts) -> Option<u64> {
        let headers = &parts.headers;
        if headers.contains_key(UPGRADE) {
            return None;
        }
        let session = headers.get(SESSION).and_then(|id| id.to_str().ok());
        let name = session.or_else(|| legacy_session(&parts.uri));
        let name = name.or_else(|| Some(parse_id(resumed_action(headers)?)?.0))?;
        worker_of(name).filter(|number| *number != self.own)
    }

    /// The worker that takes the requests of a session whose worker serves no more, if it is another one.
    fn successor(&self, parts: &Parts) -> Option<u64> {
        let session = parts.headers.get(SESSION).filter(|_| self.shares_sessions);
        let session = session.and_then(|id| id.to_str().ok())?;
        // One name, whichever worker is in it.
        let next = self.pool.successor(without_worker(session));
        next.filter(|next| *next != self.own)
    }

    /// Passes a request on.
    ///
    /// # Errors
    /// The body of the request, which is unchanged, if the owner serves no more, and no other worker takes its place.
    pub async fn pass(
        &self,
        mut owner: u64,
        parts: &mut Parts,
        body: Incoming,
        from: (Option<PeerAddress>, Option<&PeerCertificate>),
    ) -> Result<Response<Carried>, HopBody> {
        let copies = match self.shares_sessions && self.pool.is_retired(owner) {
            true => self.copies.clone(),
            false => self.copies.of_serving(),
        };
        let (mut body, kept) = HopBody::copied(body, copies);
        let mut failures = 0;
        loop {
            let (mut sender, is_new) = match self.pool.take(owner) {
                Some(sender) => (sender, false),
                None => match self.pool.connect(owner).await {
                    Ok(sender) => (sender, true),
                    Err(_) if !self.pool.has(owner) => {
                        if !self.shares_sessions && !self.pool.is_there() {
                            return Ok(refusal(OWNERS_LOST));
                        }
                        let Some(next) = self.successor(parts) else {
                            return Err(body);
                        };
                        owner = next;
                        continue;
                    }
                    Err(error) => {
                        event!(warn, owner, %error, "a worker cannot be reached");
                        drop(error);
                        return Ok(refusal(OWNER_BUSY));
                    }
                },
            };
            match sender.try_send_request(onward(parts, from, body)).await {
                Ok(response) => {
                    let mut answer = self.relayed(owner, sender, response);
                    if answer.status() != StatusCode::MISDIRECTED_REQUEST {
                        return Ok(answer);
                    }
                    // To its end, so that the connection may carry another request.
                    let _ = answer.body_mut().collect().await;
                    match kept.again() {
                        Some(again) => body = again,
                        None => return Ok(refusal(OWNER_BUSY)),
                    }
                    let Some(next) = self.successor(parts) else {
                        return Err(body);
                    };
                    owner = next;
                    failures += 1;
                }
                Err(mut error) => {
                    body = match error.take_message() {
                        Some(request) => request.into_body(),
                        None if !is_unread(owner, error.error()) => return Ok(refusal(OWNER_GONE)),
                        None => match kept.again() {
                            Some(again) => again,
                            None if self.shares_sessions || self.pool.has(owner) => {
                                return Ok(refusal(OWNER_BUSY));
                            }
                            None => return Ok(refusal(SESSION_GONE)),
                        },
                    };
                    // The owner has ended just now, or has closed the connection as it drains; or it has no place for another one.
                    failures += usize::from(is_new && self.pool.has(owner));
                }
            }
            if failures == ATTEMPTS {
                return Ok(refusal(OWNER_BUSY));
            }
        }
    }

    fn relayed(
        &self,
        owner: u64,
        sender: SendRequest<HopBody>,
        response: Response<Incoming>,
    ) -> Response<Carried> {
        let (mut parts, body) = response.into_parts();
        strip(&mut parts.headers);
        let mut relayed = Relayed {
            body,
            sender: Some(sender),
            pool: self.pool.clone(),
            owner,
        };
        if relayed.body.is_end_stream() {
            relayed.release();
        }
        Response::from_parts(parts, Carried::Relayed(Box::new(relayed)))
    }
}

/// Whether an owner that has closed the connection has not taken the request: a socket that is closed with something
/// unread is reset. At the end of the stream the owner has read it, and may have run it.
fn is_unread(owner: u64, error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    let mut kind = None;
    while let Some(error) = cause {
        kind = kind.or(error.downcast_ref::<io::Error>().map(io::Error::kind));
        cause = error.source();
    }
    event!(debug, owner, %error, "a worker has not answered");
    let _ = owner;
    matches!(
        kind,
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
    )
}

fn refusal(refusal: HttpRefusal) -> Response<Carried> {
    refused(refusal, false).map(Carried::Own)
}

/// The request of a client, as it goes to its owner.
fn onward<B>(
    parts: &Parts,
    (peer, certificate): (Option<PeerAddress>, Option<&PeerCertificate>),
    body: B,
) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    let target = parts.uri.path_and_query().cloned();
    *request.uri_mut() = target.map_or_else(|| Uri::from_static("/"), Uri::from);
    let mut headers = parts.headers.clone();
    strip(&mut headers);
    // HTTP/2 names the host in the URI.
    let host = parts
        .uri
        .authority()
        .filter(|_| !headers.contains_key(HOST));
    let host = host.and_then(|it| HeaderValue::from_str(it.as_str()).ok());
    let address = peer.and_then(|peer| HeaderValue::try_from(peer.0.to_string()).ok());
    let shown = certificate.and_then(|it| HeaderValue::try_from(STANDARD.encode(&it.0)).ok());
    // In place of what a client wrote there.
    headers.remove(PEER);
    headers.remove(CERTIFICATE);
    for (name, value) in [(HOST, host), (PEER, address), (CERTIFICATE, shown)] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    *request.headers_mut() = headers;
    request
}

/// Removes what is of one connection alone (RFC 9110, section 7.6.1).
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let own = [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in named.into_iter().chain(own) {
        headers.remove(name);
    }
}

/// The body of a response of another worker, as it comes.
pub struct Relayed {
    body: Incoming,
    /// The connection that it comes on; `None` once it may carry another request.
    sender: Option<SendRequest<HopBody>>,
    pool: Arc<HopPool>,
    owner: u64,
}

impl Relayed {
    /// Keeps the connection, when the body is at its end. A connection whose body is not read to its end is closed.
    fn release(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.pool.keep(self.owner, sender);
        }
    }
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        // A body in chunks is known to be at its end when nothing follows.
        if frame.is_none() || self.body.is_end_stream() {
            self.release();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::PathBuf;

    use http_body_util::Full;
    use hyper::client::conn::http1::handshake;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{UnixListener, UnixStream};

    use super::super::hop_body::MAX_COPIED_BYTES;
    use super::*;
    use crate::connection::Budget;
    use crate::io::supervise::{private_socket, ready_file};
    use crate::limits::TotalLimits;

    fn parts(
        change: impl FnOnce(hyper::http::request::Builder) -> hyper::http::request::Builder,
    ) -> Parts {
        let request = change(Request::post("https://example.com:8000/mcp?a=1"));
        request.body(()).unwrap().into_parts().0
    }

    /// A message may have a MiB.
    fn copies() -> CopyBounds {
        let all = Arc::new(Budget::new(TotalLimits::default()));
        CopyBounds { each: 1 << 20, all }
    }

    fn hop() -> WorkerHop {
        WorkerHop {
            own: 3,
            pool: Arc::new(HopPool::new("".as_ref())),
            shares_sessions: false,
            copies: copies(),
        }
    }

    #[test]
    fn the_name_of_a_session_or_stream_tells_its_worker() {
        let owner = |name: &'static str, value: &str| {
            hop().owner(&parts(|request| request.header(name, value)))
        };
        assert_eq!(owner("mcp-session-id", "abc-3"), None, "its own");
        assert_eq!(owner("mcp-session-id", "abc-12"), Some(12));
        assert_eq!(owner("mcp-session-id", "abc"), None);
        assert_eq!(owner("last-event-id", "abc-4_17"), Some(4));
        let legacy = parts(|request| request.uri("/mcp?session=abc-5"));
        assert_eq!(hop().owner(&legacy), Some(5));
        let upgrade = parts(|it| {
            it.header("mcp-session-id", "a-5")
                .header("upgrade", "websocket")
        });
        assert_eq!(hop().owner(&upgrade), None);
    }

    /// A client that names another address than its own is not believed.
    #[test]
    fn the_owner_learns_who_asks_from_the_other_worker_alone() {
        let asked = parts(|request| {
            let request = request.header("x-mcpbolt-peer", "9.9.9.9:9");
            let request = request.header("x-mcpbolt-certificate", "AAAA");
            let request = request.header("connection", "x-own, close");
            request.header("x-own", "1").header("accept", "text/html")
        });
        let peer = PeerAddress(([1, 2, 3, 4], 5).into());
        let shown = PeerCertificate([1, 2, 3].into());
        let sent = |from| onward(&asked, from, ()).into_parts().0;
        let mut unknown = sent((None, None));
        assert!(arrived(&mut unknown).is_none());
        assert!(unknown.extensions.get::<PeerCertificate>().is_none());
        let mut known = sent((Some(peer), Some(&shown)));
        let mut names: Vec<_> = known.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = ["accept", "host", "x-mcpbolt-certificate", "x-mcpbolt-peer"];
        assert_eq!(names, expected);
        assert_eq!(known.uri, "/mcp?a=1");
        assert_eq!(known.headers["host"], "example.com:8000");
        assert_eq!(arrived(&mut known).map(|it| it.0), Some(peer.0));
        let arrived = known.extensions.get::<PeerCertificate>();
        assert_eq!(arrived.unwrap().0, shown.0);
        assert_eq!(known.headers.len(), 2);
    }

    /// A folder for the sockets of a test, and a hop of worker 3 to the workers there.
    struct Folder(PathBuf, Arc<WorkerHop>);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("mcpbolt-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            // What a process of this number left that was killed.
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            let pool = Arc::new(HopPool::new(&folder));
            Self(
                folder,
                Arc::new(WorkerHop {
                    own: 3,
                    pool,
                    shares_sessions: false,
                    copies: copies(),
                }),
            )
        }

        /// Has processes share sessions.
        fn share(&mut self) {
            Arc::get_mut(&mut self.1).unwrap().shares_sessions = true;
        }

        fn socket(&self) -> PathBuf {
            private_socket(&self.0, 1)
        }

        /// The answer to a request of a session of worker 1. Its own answer to one that the owner serves no more is 410.
        async fn pass(&self) -> Response<Bytes> {
            self.pass_body("{}".to_owned()).await
        }

        async fn pass_body(&self, sent: String) -> Response<Bytes> {
            let len = sent.len();
            let hop = self.1.clone();
            let respond = service_fn(move |request: Request<Incoming>| {
                let hop = hop.clone();
                async move {
                    let (mut parts, body) = request.into_parts();
                    let passed = hop.pass(1, &mut parts, body, (None, None)).await;
                    let gone = HttpRefusal {
                        status: 410,
                        ..SESSION_GONE
                    };
                    Ok::<_, Infallible>(match passed {
                        Ok(response) => response,
                        Err(body) => {
                            let body = body.collect().await.unwrap().to_bytes();
                            assert_eq!(body.len(), len, "the body is unchanged");
                            refusal(gone)
                        }
                    })
                }
            });
            let (client, server) = tokio::io::duplex(1 << 16);
            let server = http1::Builder::new().serve_connection(TokioIo::new(server), respond);
            tokio::spawn(server);
            let (mut sender, client) = handshake(TokioIo::new(client)).await.unwrap();
            tokio::spawn(client);
            let request = Request::post("/mcp").body(sent).unwrap();
            let (head, body) = sender.send_request(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            Response::from_parts(head, body)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Reads a request to its end, which is the body of [`Folder::pass`].
    async fn read(stream: &mut UnixStream) {
        let mut text = Vec::new();
        while !text.ends_with(b"{}") {
            assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0);
        }
    }

    /// R-SES-05: a client throws its session away at 404, so it gets that only when the session is gone.
    #[tokio::test]
    async fn an_owner_that_cannot_be_reached_is_not_gone() {
        let folder = Folder::new("unreached");
        assert_eq!(folder.pass().await.status(), 410, "it has no socket");
        let own = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&own, &SocketAddrUnix::new(folder.socket()).unwrap()).unwrap();
        listen(&own, 0).unwrap();
        let first = UnixStream::connect(folder.socket()).await.unwrap();
        let busy = folder.pass().await;
        assert_eq!(busy.status(), 503, "its queue is full: {busy:?}");
        assert_eq!(busy.headers()["retry-after"], "1");
        drop((own, first));
        assert_eq!(folder.pass().await.status(), 503, "nobody listens");
        std::fs::remove_file(folder.socket()).unwrap();
        assert_eq!(folder.pass().await.status(), 410);
    }

    /// R-SES-05: the owner still serves, though nobody finds it.
    #[tokio::test]
    async fn a_folder_that_was_removed_ends_no_session() {
        for (shares, status) in [(false, 503), (true, 410)] {
            let mut folder = Folder::new("removed");
            std::fs::remove_dir(&folder.0).unwrap();
            if shares {
                folder.share();
            }
            assert_eq!(folder.pass().await.status(), status);
        }
    }

    /// A worker that has no place left closes what it accepts.
    #[tokio::test]
    async fn a_request_that_the_owner_has_not_read_may_be_sent_again() {
        let folder = Folder::new("unread");
        let listener = UnixListener::bind(folder.socket()).unwrap();
        let closes = async {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.readable().await.unwrap();
            }
        };
        let status = tokio::select! {
            passed = folder.pass() => passed.status(),
            () = closes => unreachable!(),
        };
        assert_eq!(status, 503);
    }

    /// An owner that drains closes connections, also one on which a request has just been sent.
    #[tokio::test]
    async fn a_request_that_crosses_the_end_of_its_connection_is_sent_again() {
        let folder = Folder::new("crosses");
        let listener = UnixListener::bind(folder.socket()).unwrap();
        let owner = async {
            let (stream, _) = listener.accept().await.unwrap();
            stream.readable().await.unwrap();
            drop(stream);
            let (mut stream, _) = listener.accept().await.unwrap();
            read(&mut stream).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        };
        let (passed, ()) = tokio::join!(folder.pass(), owner);
        assert_eq!(passed.status(), 200);
    }

    /// Where sessions are shared, a request that its owner has not read before it ended is served by the worker that it
    /// came to.
    #[tokio::test]
    async fn a_short_body_is_sent_again() {
        for (len, status) in [
            (0, 410),
            (2, 410),
            (MAX_COPIED_BYTES, 410),
            (MAX_COPIED_BYTES + 1, 503),
        ] {
            let mut folder = Folder::new("again");
            folder.share();
            std::fs::write(ready_file(&folder.0, 1), "").unwrap();
            let listener = UnixListener::bind(folder.socket()).unwrap();
            let ends = async {
                let (stream, _) = listener.accept().await.unwrap();
                stream.readable().await.unwrap();
                std::fs::remove_file(folder.socket()).unwrap();
                // Time for the whole body to be on its way.
                let mut seen = 0;
                while seen < len.min(MAX_COPIED_BYTES) {
                    seen = rustix::io::ioctl_fionread(&stream).unwrap() as usize;
                    tokio::task::yield_now().await;
                }
            };
            let (passed, ()) = tokio::join!(folder.pass_body("x".repeat(len)), ends);
            assert_eq!(passed.status(), status, "{len}");
        }
    }

    /// An owner that was replaced leaves what is not about its calls to the worker that the request came to.
    #[tokio::test]
    async fn a_request_that_the_owner_leaves_to_others_is_served_here() {
        for (len, is_retired, status) in [
            (0, false, 410),
            (MAX_COPIED_BYTES, false, 410),
            (MAX_COPIED_BYTES + 1, false, 503),
            (MAX_COPIED_BYTES + 1, true, 410),
            (1 << 20, true, 410),
            ((1 << 20) + 1, true, 503),
        ] {
            let mut folder = Folder::new("leaves");
            folder.share();
            if !is_retired {
                std::fs::write(ready_file(&folder.0, 1), "").unwrap();
            }
            let listener = UnixListener::bind(folder.socket()).unwrap();
            let owner = tokio::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let leave = service_fn(async |request: Request<Incoming>| {
                    request.into_body().collect().await.unwrap();
                    let mut left = Response::new(Full::new(Bytes::from_static(b"elsewhere")));
                    *left.status_mut() = StatusCode::MISDIRECTED_REQUEST;
                    Ok::<_, Infallible>(left)
                });
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), leave);
                served.await.unwrap();
            });
            let passed = folder.pass_body("x".repeat(len)).await;
            assert_eq!(passed.status(), status, "{len}");
            assert_eq!(folder.1.pool.idle(1), Some(1), "the connection is kept");
            drop(folder);
            owner.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_connection_is_kept_after_any_body_and_leaves_with_its_owner() {
        let folder = Folder::new("kept");
        let listener = UnixListener::bind(folder.socket()).unwrap();
        let bodies = [
            "Content-Length: 1\r\n\r\na",
            "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "Content-Length: 0\r\n\r\n",
        ];
        let (hang_up, hung_up) = tokio::sync::oneshot::channel::<()>();
        let owner = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for body in bodies {
                read(&mut stream).await;
                let answer = format!("HTTP/1.1 200 OK\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            let _ = hung_up.await;
        });
        let pool = &folder.1.pool;
        for body in bodies {
            assert_eq!(folder.pass().await.status(), 200, "{body}");
            while pool.idle(1) != Some(1) {
                tokio::task::yield_now().await;
            }
        }
        hang_up.send(()).unwrap();
        owner.await.unwrap();
        while pool.idle(1).is_some() {
            tokio::task::yield_now().await;
        }
    }

    /// An answer may come before its request is complete. The connection is then of use to nobody, for as long as the
    /// client takes.
    #[tokio::test]
    async fn a_connection_that_still_sends_is_not_waited_for() {
        let folder = Folder::new("sends");
        let listener = UnixListener::bind(folder.socket()).unwrap();
        let owner = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 1024]).await.unwrap(), 0);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .await
                .unwrap();
            (stream, listener)
        });
        // A client that has announced more than it sends.
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let hop = folder.1.clone();
        let respond = service_fn(move |request: Request<Incoming>| {
            let hop = hop.clone();
            async move {
                let (mut parts, body) = request.into_parts();
                Ok::<_, Infallible>(hop.pass(1, &mut parts, body, (None, None)).await.unwrap())
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(server), respond));
        let head = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{";
        client.write_all(head).await.unwrap();
        let (_stream, listener) = owner.await.unwrap();
        while folder.1.pool.idle(1) != Some(1) {
            tokio::task::yield_now().await;
        }
        let owner = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read(&mut stream).await;
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            stream
        };
        let (passed, _stream) = tokio::join!(folder.pass(), owner);
        assert_eq!(passed.status(), 200);
    }
}
