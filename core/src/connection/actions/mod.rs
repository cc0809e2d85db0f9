//! The server's side of the action dialect. A request is a tool call that needs no session and is
//! answered in the same dialect.
//!
//! JSON-RPC and actions may share a stream; the shape of each message tells them apart (R-ACT-01). A
//! message of neither shape is answered in the dialect of the message before, or in the only dialect
//! that the transport allows.
//!
//! Nothing here writes or changes a connection: [`judge`] says what a frame is, and the connection acts on
//! that as on any other request.

pub(super) mod batch;
pub(super) mod client;
pub(super) mod mapping;
#[cfg(feature = "server")]
pub(crate) mod references;

use std::borrow::Cow;

use super::config::Config;
use crate::action::encode::ActionError;
use crate::action::{self, ErrorType, TOOL, Version};
use crate::json::DecodeError;
use crate::limits::MAX_ID_BYTES;
use crate::mcp::{Revision, Side};
use crate::message::{Dialect, Envelope, Fault, Field, Frame, Kind, MessageRef};

/// The revision under which handlers see an action. In that revision, too, each request stands alone.
pub(super) const REVISION: Revision = Revision::NEWEST;

/// The dialects that a stream uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DialectState {
    /// The dialect of its answers, if the transport says that the stream carries only actions.
    pub only: Option<Dialect>,
    /// Whether the last message was an action.
    pub last: bool,
}

/// The kinds of frames that a server of the dialect receives.
pub(super) enum Reading {
    /// No action.
    Other,
    /// A request in the agreed version.
    Request(Option<&'static str>),
    /// An answer. A side that answers actions has not sent any.
    Answer,
    /// An action that cannot be served. `is_bad`: not even its shape is right.
    Refused { refusal: Refusal, is_bad: bool },
}

/// Why an action is refused.
#[derive(Debug)]
pub(in crate::connection) struct Refusal {
    pub kind: ErrorType,
    pub why: Cow<'static, str>,
    /// Raw JSON.
    pub details: Option<String>,
}

impl Refusal {
    fn new(kind: ErrorType, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            why: why.into(),
            details: None,
        }
    }

    /// The error to answer with.
    pub fn to_error(&self) -> ActionError<'_> {
        ActionError {
            details: self.details.as_deref(),
            ..ActionError::new(self.kind, &self.why)
        }
    }
}

/// Whether this side answers actions.
#[inline]
pub(super) fn are_served(config: &Config) -> bool {
    config.actions && config.side == Side::Server
}

/// Whether a frame that is not valid JSON-RPC has a member of it all the same.
pub(super) fn has_rpc_member(envelope: &Envelope) -> bool {
    let has = |field| envelope.span(field).is_some();
    has(Field::Version) || has(Field::Method) || has(Field::Result) || envelope.has_id_member()
}

/// The dialect in which a frame is answered, read as an action into `envelope`; `None` if it is not an action.
#[inline]
pub(super) fn dialect_of(
    state: DialectState,
    frame: Frame<'_>,
    envelope: &Envelope,
    is_broken: bool,
) -> Option<Dialect> {
    if state.only.is_some() {
        return state.only;
    }
    let is_other = match is_broken {
        false => envelope.span(Field::Version).is_some(),
        true => !action::is_of_no_other(frame.bytes()),
    };
    (!is_other).then_some(envelope.dialect())
}

/// Says what a frame is that was read as an action.
/// `certain` says that nothing else would answer it.
#[inline]
pub(super) fn judge(
    config: &Config,
    decoded: Result<(), DecodeError>,
    message: &MessageRef<'_>,
    certain: bool,
) -> Reading {
    let refused = |kind, why: Cow<'static, str>| Reading::Refused {
        refusal: Refusal::new(kind, why),
        is_bad: true,
    };
    let has = |field| message.envelope().span(field).is_some();
    let looks_like_one =
        || has(Field::Name) || has(Field::Arguments) || has(Field::Meta) || has(TOOL);
    match (decoded, message.kind()) {
        (Ok(()), Kind::Request) => match checked(config, message) {
            Ok(version) => Reading::Request(version),
            Err(refusal) => Reading::Refused {
                refusal,
                is_bad: false,
            },
        },
        (Ok(()), Kind::Response | Kind::Error | Kind::Notification) if certain => Reading::Answer,
        (Ok(()), Kind::Invalid) if certain || looks_like_one() => {
            let fault = message.fault().unwrap_or(Fault::NotAnObject);
            refused(fault.into(), fault.message().into())
        }
        (Err(error), _) if certain => refused(ErrorType::InvalidJson, error.to_string().into()),
        _ => Reading::Other,
    }
}

/// Checks a request as far as the protocol layer can; returns the agreed version.
#[inline]
fn checked(config: &Config, message: &MessageRef<'_>) -> Result<Option<&'static str>, Refusal> {
    if has_long_id(message) {
        let why = format!("request_id is longer than {MAX_ID_BYTES} bytes");
        return Err(Refusal::new(ErrorType::Validation, why));
    }
    let version = agreed(message)?;
    if message.arguments().is_none() && !config.lenient {
        let why = "params is missing: an action without parameters has {}";
        return Err(Refusal {
            details: Some("{\"parameter\":\"params\"}".into()),
            ..Refusal::new(ErrorType::Validation, why)
        });
    }
    Ok(version)
}

/// Whether the id is too long to be repeated in an answer.
pub(super) fn has_long_id(message: &MessageRef<'_>) -> bool {
    message.id().is_some_and(|id| id.raw().len() > MAX_ID_BYTES)
}

/// Reads the head of a frame that breaks off into `envelope`, if it is an action that this side has to
/// answer.
pub(super) fn read_unfinished(
    config: &Config,
    state: DialectState,
    head: Option<Frame<'_>>,
    envelope: &mut Envelope,
) -> bool {
    let Some(head) = head.filter(|_| are_served(config)) else {
        return false;
    };
    let begins = || action::begins(head.bytes()) && action::is_of_no_other(head.bytes());
    if state.only.is_none() && !state.last && !begins() {
        return false;
    }
    // The action breaks off, so decoding fails; an id before the break is still of use.
    let _ = action::decode(head, config.limits.max_depth, envelope);
    envelope.set_dialect(state.only.unwrap_or(Dialect::Action));
    true
}

/// The protocol version in which to serve a request, as its answer spells it; `None` if the request
/// names none.
///
/// # Errors
/// If the version is not supported (R-ACT-38).
pub(super) fn agreed(message: &MessageRef<'_>) -> Result<Option<&'static str>, Refusal> {
    let Some(token) = message.raw_bytes(Field::ProtocolVersion) else {
        return Ok(None);
    };
    let oldest = message.decoded(action::OLDEST_VERSION);
    if let Some(known) = action::known(token).filter(|_| oldest.is_none()) {
        return Ok(Some(known));
    }
    let Some(said) = message.decoded(Field::ProtocolVersion) else {
        let why = "protocol_version must be a string";
        return Err(Refusal::new(ErrorType::Validation, why));
    };
    match action::agree(&said, oldest.as_deref()) {
        Ok(Some(version)) => Ok(Some(version)),
        Ok(None) => Err(not_spoken()),
        Err(why) => Err(Refusal::new(ErrorType::Validation, why)),
    }
}

#[cold]
fn not_spoken() -> Refusal {
    let supported = Version::SUPPORTED.map(|version| format!("\"{version}\""));
    let supported = supported.join(",");
    let why = "this version of the protocol is not spoken here";
    Refusal {
        details: Some(format!("{{\"supported\":[{supported}]}}")),
        ..Refusal::new(ErrorType::Validation, why)
    }
}
