//! How a server on HTTP is set up.

use std::time::Duration;

use crate::limits::Limits;

/// The endpoint and its bounds. The defaults are those of a server for programs of the same
/// machine: who is to be reached by another name says so.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The path of the endpoint.
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
    /// Bytes of messages that a session keeps for clients that come back for them (R-SSE-10).
    pub replay_bytes: usize,
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
            grace: Duration::from_secs(5),
        }
    }
}
