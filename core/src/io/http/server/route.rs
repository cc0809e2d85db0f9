//! Decides how a POST is served: by its headers, or else by its body.

use hyper::header::HeaderValue;

use super::gate::Admitted;
use super::headers::legacy_session;
use super::media::check_accept;
use super::refusal::{HttpRefusal, NO_SESSION, UNKNOWN_VERSION};
use crate::action;
use crate::buffer::Input;
use crate::json::reader;
use crate::mcp::{Era, Method, Revision, Revisions};
use crate::message::{self, Envelope, Field, Frame, Kind, MessageRef};

/// How a POST is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// As an action.
    Action,
    /// As a request that stands alone. Also for invalid messages, whose answer says what is wrong.
    Alone,
    /// In the session that the headers name.
    Session,
    /// In the session that the URI names (2024-11-05).
    LegacySession,
    /// As the beginning of a session.
    Initialize,
}

/// The revisions and dialects that an endpoint speaks.
pub struct Spoken {
    /// The revisions with sessions; `None` if there are none.
    pub handshake: Option<Revisions>,
    /// Revision 2024-11-05, with a stream beside the messages.
    pub legacy: bool,
    pub actions: bool,
    pub max_depth: usize,
}

impl Spoken {
    /// Routes a POST by its headers (R-ERA-02, R-ERA-04, R-HTP-14, R-SES-09); `None` if the body decides.
    ///
    /// # Errors
    /// When the revision is not spoken here, or the client does not accept the answer.
    pub fn by_headers(&self, request: &Admitted<'_>) -> Result<Option<Route>, HttpRefusal> {
        let headers = request.headers();
        if self.legacy && legacy_session(&request.parts().uri).is_some() {
            check_accept(&headers.accept)?;
            return Ok(Some(Route::LegacySession));
        }
        if request.in_actions() {
            return Ok(Some(Route::Action));
        }
        if self.actions && headers.names_nothing() {
            return Ok(None);
        }
        check_accept(&headers.accept)?;
        let Some(handshake) = self.handshake else {
            return Ok(Some(Route::Alone));
        };
        let spoken = |one: &Revision| one.era() == Era::Stateless || handshake.contains(*one);
        let said = headers.revision();
        let era = said.and_then(Revision::parse).filter(spoken);
        match (era.map(Revision::era), headers.session.is_some()) {
            (Some(Era::Stateless), _) => Ok(Some(Route::Alone)),
            (None, true) if said.is_some() => Err(UNKNOWN_VERSION),
            (_, true) => Ok(Some(Route::Session)),
            (None, false) if said.is_some() => Ok(Some(Route::Alone)),
            (_, false) => Ok(None),
        }
    }

    /// Routes a POST by its body (R-ERA-02, R-ERA-04).
    ///
    /// # Errors
    /// When the message needs a session, or the client does not accept the answer.
    pub fn by_body(&self, accept: &[&HeaderValue], body: &Input) -> Result<Route, HttpRefusal> {
        let is_plain = |body| action::begins(body) && action::is_of_no_other(body);
        if self.actions && is_plain(body.filled()) {
            return Ok(Route::Action);
        }
        let Some(frame) = Frame::new(body.padded(), body.len()) else {
            return Ok(Route::Alone);
        };
        let mut envelope = Envelope::new();
        let decoded = message::decode(frame, self.max_depth, &mut envelope);
        let is_invalid = decoded.is_err() || envelope.kind() == message::Kind::Invalid;
        if is_invalid && self.actions && self.is_action(frame) {
            return Ok(Route::Action);
        }
        check_accept(accept)?;
        let message = MessageRef::new(frame, &envelope);
        let names_revision = message.raw(Field::ProtocolVersion).is_some();
        if decoded.is_err() || names_revision || self.handshake.is_none() {
            return Ok(Route::Alone);
        }
        match message.method().as_deref() == Some(Method::Initialize.name()) {
            true => Ok(Route::Initialize),
            false => Err(NO_SESSION),
        }
    }

    /// Whether a body that is not JSON-RPC is an action, or an invalid attempt at one.
    #[cold]
    fn is_action(&self, frame: Frame<'_>) -> bool {
        let text = std::str::from_utf8(frame.bytes()).unwrap_or_default();
        let has = |name| reader::find(text, name).is_some();
        let mut envelope = Envelope::new();
        action::decode(frame, self.max_depth, &mut envelope).is_ok()
            && (envelope.kind() == Kind::Request || envelope.span(Field::Name).is_some())
            && !has("jsonrpc")
            && !has("method")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ERA-02, R-ERA-04: the envelope decides, not the name of the method.
    #[test]
    fn a_body_without_headers_says_how_it_is_to_be_served() {
        let spoken = Spoken {
            handshake: Some(Revisions::ALL),
            legacy: true,
            actions: true,
            max_depth: 64,
        };
        let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        for (body, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#.to_owned(),
                Ok(Route::Initialize),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
                Err(NO_SESSION),
            ),
            ("[]".to_owned(), Err(NO_SESSION)),
            ("{".to_owned(), Ok(Route::Alone)),
            (
                r#"{"params":{},"action":"a"}"#.to_owned(),
                Ok(Route::Action),
            ),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{modern}}}}}"#
                ),
                Ok(Route::Alone),
            ),
        ] {
            let mut input = Input::new();
            input.extend(body.as_bytes());
            assert_eq!(spoken.by_body(&[], &input), expected, "{body}");
        }
    }
}
