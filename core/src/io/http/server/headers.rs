//! The headers and URIs of this endpoint, and what they say about a request.

use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use smallvec::SmallVec;

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

/// All values of one header. Most headers occur once.
pub type Values<'h> = SmallVec<[&'h HeaderValue; 1]>;

/// The headers that the checks of every POST read, found in one pass. A look-up by name for each of them would
/// take several times as long.
pub struct RequestHeaders<'h> {
    /// All headers, also those that are not listed here.
    pub all: &'h HeaderMap,
    pub host: Values<'h>,
    pub origin: Values<'h>,
    /// `Sec-Fetch-Site`
    pub site: Values<'h>,
    /// `Sec-Fetch-Mode`
    pub mode: Values<'h>,
    pub accept: Values<'h>,
    pub content_type: Values<'h>,
    /// The announced length of the body. hyper has checked it.
    pub content_length: Option<&'h HeaderValue>,
    pub session: Option<&'h HeaderValue>,
    pub version: Values<'h>,
    pub method: Values<'h>,
    pub name: Values<'h>,
    /// Whether the request names a version of the action dialect.
    pub names_action_version: bool,
}

impl<'h> RequestHeaders<'h> {
    pub fn of(all: &'h HeaderMap) -> Self {
        let mut found = Self {
            all,
            host: Values::new(),
            origin: Values::new(),
            site: Values::new(),
            mode: Values::new(),
            accept: Values::new(),
            content_type: Values::new(),
            content_length: None,
            session: None,
            version: Values::new(),
            method: Values::new(),
            name: Values::new(),
            names_action_version: false,
        };
        for (name, value) in all {
            match name.as_str() {
                "host" => found.host.push(value),
                "origin" => found.origin.push(value),
                "sec-fetch-site" => found.site.push(value),
                "sec-fetch-mode" => found.mode.push(value),
                "accept" => found.accept.push(value),
                "content-type" => found.content_type.push(value),
                "content-length" => found.content_length = Some(value),
                "mcp-session-id" => found.session = found.session.or(Some(value)),
                "mcp-protocol-version" => found.version.push(value),
                "mcp-method" => found.method.push(value),
                "mcp-name" => found.name.push(value),
                "mcp-version" => found.names_action_version = true,
                _ => {}
            }
        }
        found
    }

    /// The revision that the request names, or would name if it were readable.
    pub fn revision(&self) -> Option<&'h str> {
        let version = self.version.first()?.as_bytes();
        Some(std::str::from_utf8(version.trim_ascii()).unwrap_or_default())
    }

    /// Whether the request names neither a revision nor a session: then a POST may be an action, and a GET comes
    /// from a client of 2024-11-05 (R-ERA-15).
    pub fn names_nothing(&self) -> bool {
        self.version.is_empty() && self.session.is_none()
    }
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

/// The URI that a client of 2024-11-05 POSTs to (R-LEG-02).
pub fn legacy_uri(path: &str, session: &str) -> String {
    format!("{path}?{LEGACY}{session}")
}

/// The session in the URI that such a client POSTs to.
pub fn legacy_session(uri: &Uri) -> Option<&str> {
    uri.query()?.strip_prefix(LEGACY)
}
