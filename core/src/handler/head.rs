//! What brought a message, where that says more than the message does.

use std::net::SocketAddr;

/// The head of the request of HTTP that brings a message, as it came: nothing of it proves who sends
/// it.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// `POST`, mostly.
    pub method: Box<str>,
    /// Path and query.
    pub target: Box<str>,
    /// Names in lower case and values, in the order of arrival.
    pub headers: Vec<(Box<str>, Box<[u8]>)>,
    /// The session that it belongs to, or begins.
    pub session: Option<Box<str>>,
    /// Where it comes from, when that is known.
    pub peer: Option<SocketAddr>,
}
