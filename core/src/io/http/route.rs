//! Decides how a POST is served: alone, in a session, or as the beginning of a session.

use std::sync::Arc;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::answers::{GONE, NO_SESSION, Refusal, UNKNOWN_VERSION};
use super::headers::VERSION;
use super::session::Session;
use super::sessions::Sessions;
use crate::buffer::Input;
use crate::connection::Principal;
use crate::mcp::{Era, Method, Revision, Revisions};
use crate::message::{self, Envelope, Field, Frame, MessageRef};

pub const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How the headers of a POST say it is served.
pub enum Route {
    Stateless,
    Session(Arc<Session>),
    /// The headers do not say; the body decides.
    Undecided,
}

/// Routes a POST by its headers (R-ERA-02, R-ERA-04, R-HTP-14, R-SES-09). `handshake` are the revisions
/// with sessions that this server speaks.
///
/// # Errors
/// When the revision is not spoken here, or the session does not exist.
pub fn route(
    headers: &HeaderMap,
    sessions: &Sessions,
    principal: Option<&Principal>,
    handshake: Revisions,
) -> Result<Route, Refusal> {
    let version = headers.get(VERSION).map(HeaderValue::as_bytes);
    let text = version.and_then(|version| std::str::from_utf8(version.trim_ascii()).ok());
    let spoken = |one: &Revision| one.era() == Era::Stateless || handshake.contains(*one);
    let revision = text.and_then(Revision::parse).filter(spoken);
    match (revision.map(Revision::era), headers.get(SESSION)) {
        (Some(Era::Stateless), _) => Ok(Route::Stateless),
        (None, Some(_)) if version.is_some() => Err(UNKNOWN_VERSION),
        (_, Some(_)) => session(headers, sessions, principal).map(Route::Session),
        (None, None) if version.is_some() => Ok(Route::Stateless),
        (_, None) => Ok(Route::Undecided),
    }
}

/// The session that the headers name (R-SES-04, R-SES-05, R-SES-08).
///
/// # Errors
/// When no session is named, or it does not exist.
pub fn session(
    headers: &HeaderMap,
    sessions: &Sessions,
    principal: Option<&Principal>,
) -> Result<Arc<Session>, Refusal> {
    let id = headers.get(SESSION).ok_or(NO_SESSION)?.to_str().ok();
    let session = id.and_then(|id| sessions.get(id, principal));
    session.ok_or(GONE)
}

/// Whether a GET comes from a client of 2024-11-05 (R-ERA-15).
pub fn is_legacy_stream(headers: &HeaderMap) -> bool {
    !headers.contains_key(SESSION) && !headers.contains_key(VERSION)
}

/// The query of the URI that clients of 2024-11-05 POST to (R-LEG-02).
pub fn legacy_query(session: &str) -> String {
    format!("?{LEGACY}{session}")
}

/// The session in the URI that such a client POSTs to.
pub fn legacy_session(uri: &Uri) -> Option<&str> {
    uri.query()?.strip_prefix(LEGACY)
}

const LEGACY: &str = "session=";

/// How a POST without routing headers is served, according to its body.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening {
    Handshake,
    /// Also invalid messages: the code for requests that stand alone reports what is wrong.
    Stateless,
    /// A message that needs a session.
    Neither,
}

impl Opening {
    /// Decodes the body to find out (R-ERA-02, R-ERA-04).
    pub fn of(body: &Input, max_depth: usize) -> Self {
        let mut envelope = Envelope::new();
        let Some(frame) = Frame::new(body.padded(), body.len()) else {
            return Self::Stateless;
        };
        if message::decode(frame, max_depth, &mut envelope).is_err() {
            return Self::Stateless;
        }
        let message = MessageRef::new(frame, &envelope);
        if message.raw(Field::ProtocolVersion).is_some() {
            return Self::Stateless;
        }
        match message.method().as_deref() == Some(Method::Initialize.name()) {
            true => Self::Handshake,
            false => Self::Neither,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ERA-02, R-ERA-04: the envelope decides, not the name of the method.
    #[test]
    fn a_body_without_headers_says_how_it_is_to_be_served() {
        let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        for (body, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#.to_owned(),
                Opening::Handshake,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
                Opening::Neither,
            ),
            ("[]".to_owned(), Opening::Neither),
            ("{".to_owned(), Opening::Stateless),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{modern}}}}}"#
                ),
                Opening::Stateless,
            ),
        ] {
            let mut input = Input::new();
            input.extend(body.as_bytes());
            assert_eq!(Opening::of(&input, 64), expected, "{body}");
        }
    }
}
