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

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::carried::Carried;
use super::headers::{SESSION, legacy_session, resumed_action};
use super::peer::{PeerAddress, PeerCertificate};
use super::refusal::{HttpRefusal, OWNER_GONE, SESSION_GONE};
use super::response::refused;
use super::session_name::worker_of;
use super::sse::parse_id;
use crate::io::supervise::{WorkerProcess, private_socket};
use crate::sync::lock;

/// The most connections to one worker that are kept while no request uses them.
const MAX_IDLE: usize = 64;

const PEER: HeaderName = HeaderName::from_static("x-mcpbolt-peer");
const CERTIFICATE: HeaderName = HeaderName::from_static("x-mcpbolt-certificate");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// The way to the other workers.
pub struct WorkerHop {
    folder: PathBuf,
    own: u64,
    idle: Mutex<HashMap<u64, Vec<SendRequest<Incoming>>>>,
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
    pub fn new(worker: &WorkerProcess) -> Arc<Self> {
        Arc::new(Self {
            folder: worker.folder().to_owned(),
            own: worker.number(),
            idle: Mutex::default(),
        })
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

    /// Passes a request on.
    ///
    /// # Errors
    /// The body of the request, which is unchanged, if there is no such worker.
    pub async fn pass(
        self: &Arc<Self>,
        owner: u64,
        parts: &mut Parts,
        body: Incoming,
        from: (Option<PeerAddress>, Option<&PeerCertificate>),
    ) -> Result<Response<Carried>, Incoming> {
        let mut body = body;
        loop {
            let (mut sender, is_new) = match self.kept(owner).await {
                Some(sender) => (sender, false),
                None => match self.connect(owner).await {
                    Ok(sender) => (sender, true),
                    Err(_) => return Err(body),
                },
            };
            match sender.try_send_request(onward(parts, from, body)).await {
                Ok(response) => return Ok(self.relayed(owner, sender, response)),
                Err(mut error) => match error.take_message() {
                    Some(request) if is_new => return Err(request.into_body()),
                    // The owner had closed a connection that was kept.
                    Some(request) => body = request.into_body(),
                    None => {
                        let refusal = lost(error.error());
                        return Ok(refused(refusal, false).map(Carried::Own));
                    }
                },
            }
        }
    }

    async fn kept(&self, owner: u64) -> Option<SendRequest<Incoming>> {
        loop {
            let mut sender = lock(&self.idle).get_mut(&owner)?.pop()?;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self, owner: u64) -> io::Result<SendRequest<Incoming>> {
        let connected = UnixStream::connect(private_socket(&self.folder, owner)).await;
        if connected.is_err() {
            lock(&self.idle).remove(&owner);
        }
        let stream = TokioIo::new(connected?);
        let (sender, connection) = handshake(stream).await.map_err(io::Error::other)?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn keep(&self, owner: u64, sender: SendRequest<Incoming>) {
        if !sender.is_closed() {
            let mut idle = lock(&self.idle);
            let idle = idle.entry(owner).or_default();
            if idle.len() < MAX_IDLE {
                idle.push(sender);
            }
        }
    }

    fn relayed(
        self: &Arc<Self>,
        owner: u64,
        sender: SendRequest<Incoming>,
        response: Response<Incoming>,
    ) -> Response<Carried> {
        let (mut parts, body) = response.into_parts();
        strip(&mut parts.headers);
        let mut relayed = Relayed {
            body,
            sender: Some(sender),
            hop: self.clone(),
            owner,
        };
        relayed.release();
        Response::from_parts(parts, Carried::Relayed(Box::new(relayed)))
    }
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

/// What is told of a request whose owner has closed the connection. A socket that is closed with something unread is reset:
/// then the owner has not taken the request. At the end of the stream it has, and may have run it.
fn lost(error: &hyper::Error) -> HttpRefusal {
    let mut cause = std::error::Error::source(error);
    let mut kind = None;
    while let Some(error) = cause {
        kind = kind.or(error.downcast_ref::<io::Error>().map(io::Error::kind));
        cause = error.source();
    }
    event!(debug, %error, "a worker has not answered");
    match kind {
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => SESSION_GONE,
        _ => OWNER_GONE,
    }
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
    sender: Option<SendRequest<Incoming>>,
    hop: Arc<WorkerHop>,
    owner: u64,
}

impl Relayed {
    /// Keeps the connection if the body is at its end. A connection whose body is not read to its end is closed.
    fn release(&mut self) {
        if self.body.is_end_stream()
            && let Some(sender) = self.sender.take()
        {
            self.hop.keep(self.owner, sender);
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
        self.release();
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
    use super::*;

    fn parts(
        change: impl FnOnce(hyper::http::request::Builder) -> hyper::http::request::Builder,
    ) -> Parts {
        let request = change(Request::post("https://example.com:8000/mcp?a=1"));
        request.body(()).unwrap().into_parts().0
    }

    fn hop() -> WorkerHop {
        WorkerHop {
            folder: PathBuf::new(),
            own: 3,
            idle: Mutex::default(),
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

    #[tokio::test]
    async fn few_connections_to_a_worker_are_kept() {
        let folder = std::env::temp_dir().join(format!("mcpbolt-hop-{}", std::process::id()));
        // What a process of this number left that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let _listener = tokio::net::UnixListener::bind(private_socket(&folder, 1)).unwrap();
        let hop = WorkerHop {
            folder: folder.clone(),
            ..hop()
        };
        for _ in 0..MAX_IDLE + 3 {
            let sender = hop.connect(1).await.unwrap();
            hop.keep(1, sender);
        }
        assert_eq!(lock(&hop.idle)[&1].len(), MAX_IDLE);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(hop.connect(1).await.is_err());
        assert!(lock(&hop.idle).is_empty(), "those of a worker that is gone");
    }
}
