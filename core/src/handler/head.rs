//! Information about the transport's request that carried a message.

use std::net::SocketAddr;

use super::extensions::Extensions;

/// The head of the HTTP request that carried a message, unchanged. Nothing that the client wrote proves who sent
/// it.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The method, usually `POST`.
    pub method: Box<str>,
    /// The path and query.
    pub target: Box<str>,
    /// The headers in the order of arrival; names are in lower case.
    pub headers: Vec<(Box<str>, Box<[u8]>)>,
    /// The session that the request belongs to, or begins.
    pub session: Option<Box<str>>,
    /// The address that the request comes from, if known.
    pub peer: Option<SocketAddr>,
    /// The values that HTTP middleware, such as a layer of axum, put into the extensions of the request.
    pub extensions: Extensions,
}
