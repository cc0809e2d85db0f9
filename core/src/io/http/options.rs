//! How a server on HTTP is set up.

use std::time::Duration;

use crate::limits::Limits;

/// The endpoint and its bounds. The defaults are those of a server for programs of the same
/// machine: who is to be reached by another name says so.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The path of the endpoint; `*` is any, where the application that it is part of decides.
    pub path: String,
    /// The names, without port, that requests may be addressed to, and that pages may come from:
    /// `Host` and `Origin` are held against them, which stops DNS rebinding (R-HTP-06). `*`
    /// stands for any.
    pub hosts: Vec<String>,
    /// Further origins, whole (`https://example.com`), whose pages may ask.
    pub origins: Vec<String>,
    /// The bounds of each exchange; `max_message_bytes` is that of a body.
    pub limits: Limits,
    /// How long all headers of a request may take.
    pub header_timeout: Duration,
    /// Silence on a stream of events after which a comment keeps it open (R-SUB-13).
    pub comment_interval: Duration,
    /// Whether clients of 2024-11-05 are served, too, who get a stream at the same path and are
    /// told there where to post (R-LEG-07).
    pub sse: bool,
    /// Sessions of the handshake era at a time; the longest unused gives way to a new one.
    pub max_sessions: usize,
    /// How long a session is kept that no client has anything to do with.
    pub session_ttl: Duration,
    /// Bytes of messages that a session, or the stream of an action, keeps for clients that come back
    /// for them (R-SSE-10).
    pub replay_bytes: usize,
    /// How long an action goes on whose stream broke off, and how long the events of its stream are
    /// kept, for a client that comes back with `Last-Event-ID` (R-ACT-26). When zero, a connection
    /// that ends takes the action with it at once.
    pub action_ttl: Duration,
    /// Whether browsers are told that pages of the welcome origins may read the answers (CORS):
    /// without it they may ask, but the browser keeps the answer from them.
    pub cors: bool,
    /// Whether answers of JSON that are long go to clients that accept it compressed with gzip:
    /// less to carry for more work. Streams of events never do, so that nothing of them waits. Not
    /// where an answer holds a secret beside what somebody else may choose: its length tells of it.
    #[cfg(feature = "compression")]
    pub compression: bool,
    /// Whether clients may go on as WebSockets, at the same path.
    pub websocket: bool,
    /// Silence on a WebSocket after which the client is pinged; silent for as long again, it is
    /// taken for dead (R-WSK-03). Never when `None`.
    pub heartbeat: Option<Duration>,
    /// How long what is in flight may take when the server ends.
    pub grace: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            hosts: ["localhost", "127.0.0.1", "[::1]"].map(Into::into).into(),
            origins: Vec::new(),
            limits: Limits::NETWORK,
            header_timeout: Duration::from_secs(30),
            comment_interval: Duration::from_secs(15),
            sse: true,
            max_sessions: 10_000,
            session_ttl: Duration::from_secs(30 * 60),
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
