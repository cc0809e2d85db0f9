//! Options of a server on HTTP.

use std::time::Duration;

use super::forwarded::Network;
#[cfg(feature = "sealing")]
use super::shared_sessions::SharedSessions;
use crate::limits::Limits;

/// The origins of pages served by this machine.
const LOCAL: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// The endpoint and its limits. The defaults suit a server for programs on the same machine; a server
/// that is reached under another name must add it to `hosts`.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The path of the endpoint. `*` stands for any path, where the surrounding application routes
    /// requests.
    pub path: String,
    /// The host names, without port, that requests may be sent to. The `Host` header is checked against
    /// them, which stops DNS rebinding (R-HTP-06). `*` stands for any name. `localhost`, `127.0.0.1`
    /// and `[::1]` by default; [`serve`](crate::io::serve) adds the name of its address.
    pub hosts: Vec<String>,
    /// The origins whose pages may send requests, written in full: `https://example.com`, or
    /// `http://localhost:*` for any port. `*` stands for any origin. The default is this machine's
    /// origins on any port. A page of the server's own origin may always send requests; where `hosts`
    /// is `*`, only if its origin is `https`, an address or `localhost`, since any other name could be
    /// made to point to this server. Requests from any other page get 403, whatever their method and
    /// kind.
    pub origins: Vec<String>,
    /// Whether clients without credentials may be served beyond this machine. If `false`, a server
    /// whose policy has no [verifier](crate::policy::Policy::verifier), and that does not ask clients
    /// for certificates, listens on loopback addresses only. Applies to this crate's own listeners, on
    /// TCP and HTTP; a service inside another server has no address of its own.
    pub anonymous: bool,
    /// The limits of each exchange. `max_message_bytes` is the limit of a body.
    pub limits: Limits,
    /// Longest time in which all headers of a request must arrive.
    pub header_timeout: Duration,
    /// Silence on a stream of events after which a comment is sent to keep it open (R-SUB-13).
    pub comment_interval: Duration,
    /// Whether clients of 2024-11-05 are served as well. They open a stream at the same path, whose
    /// first event tells them where to POST (R-LEG-07).
    pub sse: bool,
    /// Proxies whose `Forwarded` (RFC 7239) or `X-Forwarded-For` header is trusted. A request from one
    /// of them is attributed to the last forwarded address that is not itself a trusted proxy. None by
    /// default: each request is attributed to its peer address.
    pub trusted_proxies: Vec<Network>,
    /// Maximum number of sessions of the handshake era at a time, 10,000 by default. When the table is
    /// full, a session that has received no message is closed, oldest first; then one whose handshake is
    /// not finished, oldest first; then the longest unused session of the client that has the most. A
    /// session never gives way to a client that has more sessions.
    pub max_sessions: usize,
    /// Maximum number of sessions of one client at a time; a client is identified by its principal,
    /// else by its address. By default three quarters of `max_sessions`; the last quarter is left for
    /// clients that have few.
    pub max_sessions_per_peer: Option<usize>,
    /// How long a session is kept that no client uses.
    pub session_ttl: Duration,
    /// Has sessions accepted by other processes, too. By default each process knows its own.
    #[cfg(feature = "sealing")]
    pub shared_sessions: Option<SharedSessions>,
    /// Bytes of messages that a session, or the stream of an action, keeps for clients that reconnect
    /// (R-SSE-10).
    pub replay_bytes: usize,
    /// How long an action runs on after its stream broke off, and how long the events of the stream are
    /// kept, for a client that reconnects with `Last-Event-ID` (R-ACT-26). If zero, a connection that
    /// ends cancels its action at once.
    pub action_ttl: Duration,
    /// Whether browsers are told that pages of `origins` may read the answers (CORS). If `false`, such
    /// pages may send requests, but the browser does not show them the answers.
    pub cors: bool,
    /// Whether long JSON answers are compressed with gzip for clients that accept it: fewer bytes for
    /// more CPU. Streams of events are never compressed, so no event is delayed. Do not enable this
    /// where an answer contains a secret beside text that somebody else may choose: its length leaks
    /// the secret.
    #[cfg(feature = "compression")]
    pub compression: bool,
    /// Whether clients may upgrade to WebSocket at the same path.
    pub websocket: bool,
    /// Silence on a WebSocket after which the client is pinged. After the same time without an answer,
    /// it is considered dead (R-WSK-03). `None` disables the pings.
    pub heartbeat: Option<Duration>,
    /// How long requests in flight may take when the server stops.
    pub grace: Duration,
}

impl HttpOptions {
    /// Whether other processes accept the sessions, too.
    #[cfg(unix)]
    pub(super) fn has_shared_sessions(&self) -> bool {
        #[cfg(feature = "sealing")]
        return self.shared_sessions.is_some();
        #[cfg(not(feature = "sealing"))]
        false
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            hosts: ["localhost", "127.0.0.1", "[::1]"].map(Into::into).into(),
            origins: LOCAL.map(Into::into).into(),
            anonymous: false,
            limits: Limits::NETWORK,
            header_timeout: Duration::from_secs(30),
            comment_interval: Duration::from_secs(15),
            sse: true,
            trusted_proxies: Vec::new(),
            max_sessions: 10_000,
            max_sessions_per_peer: None,
            session_ttl: Duration::from_secs(30 * 60),
            #[cfg(feature = "sealing")]
            shared_sessions: None,
            replay_bytes: 256 << 10,
            action_ttl: Duration::from_secs(30),
            cors: false,
            #[cfg(feature = "compression")]
            compression: false,
            websocket: true,
            heartbeat: Some(Duration::from_secs(20)),
            grace: Duration::from_secs(5),
        }
    }
}
