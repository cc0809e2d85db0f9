//! The headers and URIs of this endpoint, and what they say about a request.

use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Uri};

use crate::action::STREAM;
use crate::io::net::handshake::lists;

pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The version of the action dialect that a client speaks, and the oldest that it speaks.
pub const ACTION_VERSION: HeaderName = HeaderName::from_static("mcp-version");
pub const ACTION_MIN_VERSION: HeaderName = HeaderName::from_static("mcp-min-version");

/// The query of the URI that clients of 2024-11-05 POST to, before the name of their session.
const LEGACY: &str = "session=";

/// Whether the answer to a request is written in the action dialect, even if it is refused.
pub fn is_in_actions(headers: &HeaderMap) -> bool {
    headers.contains_key(ACTION_VERSION)
}

/// Whether the headers leave open whether a POST is an action.
pub fn may_be_action(headers: &HeaderMap) -> bool {
    !headers.contains_key(VERSION) && !headers.contains_key(SESSION)
}

/// Whether a request asks for the stream of an action: a GET of the endpoint's path with `/stream`.
pub fn is_action_stream(parts: &Parts, endpoint: &str) -> bool {
    let path = parts.uri.path().strip_suffix(STREAM);
    // Where any path may be the endpoint, the query must name an action.
    let named = |query: &str| query.split('&').any(|pair| pair.starts_with("action="));
    parts.method == Method::GET
        && path.is_some_and(|path| match endpoint {
            "*" => parts.uri.query().is_some_and(named) || resumed_action(&parts.headers).is_some(),
            own => path == own.trim_end_matches('/'),
        })
}

/// The id of the event after which the stream of an action is to resume.
pub fn resumed_action(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(LAST_EVENT)?.to_str().unwrap_or("?");
    (!headers.contains_key(SESSION)).then_some(id)
}

/// Whether a request asks to upgrade to WebSocket.
pub fn is_websocket(parts: &Parts) -> bool {
    parts.method == Method::GET
        && lists(&parts.headers, UPGRADE, "websocket")
        && lists(&parts.headers, CONNECTION, "upgrade")
}

/// The revision that a request names, or would name if it were readable.
pub fn version(headers: &HeaderMap) -> Option<&str> {
    let version = headers.get(VERSION).map(HeaderValue::as_bytes)?;
    Some(std::str::from_utf8(version.trim_ascii()).unwrap_or_default())
}

/// Whether a GET comes from a client of 2024-11-05 (R-ERA-15).
pub fn is_legacy_stream(headers: &HeaderMap) -> bool {
    !headers.contains_key(SESSION) && !headers.contains_key(VERSION)
}

/// The URI that a client of 2024-11-05 POSTs to (R-LEG-02).
pub fn legacy_uri(path: &str, session: &str) -> String {
    format!("{path}?{LEGACY}{session}")
}

/// The session in the URI that such a client POSTs to.
pub fn legacy_session(uri: &Uri) -> Option<&str> {
    uri.query()?.strip_prefix(LEGACY)
}
