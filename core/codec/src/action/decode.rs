//! Decodes messages of the action dialect.

use crate::json::DecodeError;
use crate::message::pass::{self, Level, MemberNames, Pass, Protocol, Value};
use crate::message::{Dialect, Envelope, Fault, Field, Frame, Kind, Span};

use super::{CONTEXT, OLDEST_VERSION, TOOL};

/// MemberNames that only decoding looks at. They take fields that no action has, until [`PASSING`] are
/// removed from the record.
const STATUS: Field = Field::Method;
const ERROR_TYPE: Field = Field::ClientInfo;
const OTHER_VERSION: Field = Field::Params;
const AUTH: Field = Field::Progress;
const STREAM: Field = Field::ProgressToken;
const SERVER_ID: Field = Field::Traceparent;
const EXECUTION_TIME: Field = Field::Tracestate;
const PASSING: [Field; 7] = [
    STATUS,
    ERROR_TYPE,
    OTHER_VERSION,
    AUTH,
    STREAM,
    SERVER_ID,
    EXECUTION_TIME,
];

/// Validates the whole frame as JSON and UTF-8, and records the message in `out`.
///
/// One pass, no allocation; the frame is not modified. Member order does not matter; unknown
/// members are skipped (R-ACT-08). JSON that is not a valid message gives `Ok`, with
/// [`Kind::Invalid`] and a [`Fault`]. A request without `params` is valid here; the server decides
/// about it (R-ACT-06).
///
/// A request is recorded as a tool call: the action is its [`Field::Name`], `params` are its
/// [`Field::Arguments`]. Its dialect is [`Dialect::ActionStream`] if the metadata ask for that. An
/// answer has [`Kind::Response`] or [`Kind::Error`], and [`Kind::Notification`] if it is a part of a
/// stream; `data` is its [`Field::Result`]. [`Field`] lists the other members.
///
/// # Errors
/// The frame is not JSON, not UTF-8, or nests deeper than `max_depth` (at most 1024). `out` is then
/// [`Kind::Invalid`]; it still has a `request_id` that was complete before the fault.
pub fn decode(frame: Frame<'_>, max_depth: usize, out: &mut Envelope) -> Result<(), DecodeError> {
    pass::decode::<Actions>(frame.padded(), frame.bytes(), max_depth, out)
}

/// The action dialect; a pass over its messages keeps no further state.
#[derive(Default)]
struct Actions;

struct Top;
struct Metadata;
struct ErrorObject;

impl Level<Actions> for Top {
    const MEMBERS: MemberNames = &[
        ("action", Field::Name),
        ("params", Field::Arguments),
        ("metadata", Field::Meta),
        ("status", STATUS),
        ("data", Field::Result),
        ("tool", TOOL),
        ("context", CONTEXT),
        ("error", Field::Error),
        ("type", Field::ResultType),
        // No action has this member: such a frame may be a JSON-RPC message.
        ("jsonrpc", Field::Version),
    ];

    #[inline(always)]
    fn value(
        pass: &mut Pass<'_, '_, Actions>,
        field: Field,
        value: Value,
        depth: usize,
    ) -> Option<usize> {
        match field {
            Field::Meta => pass.nested::<Metadata>(value, depth),
            Field::Error => pass.nested::<ErrorObject>(value, depth),
            _ => pass.value(value, depth),
        }
    }
}

impl Level<Actions> for Metadata {
    const MEMBERS: MemberNames = &[
        ("request_id", Field::Id),
        ("client_id", Field::RequestId),
        ("protocol_version", Field::ProtocolVersion),
        ("server_id", SERVER_ID),
        ("execution_time_ms", EXECUTION_TIME),
        ("version", OTHER_VERSION),
        ("min_protocol_version", OLDEST_VERSION),
        ("auth", AUTH),
        ("stream", STREAM),
    ];

    #[inline(always)]
    fn value(
        pass: &mut Pass<'_, '_, Actions>,
        field: Field,
        value: Value,
        depth: usize,
    ) -> Option<usize> {
        if field == STREAM && value.byte == b't' {
            pass.out.set_dialect(Dialect::ActionStream);
        }
        pass.value(value, depth)
    }
}

impl Level<Actions> for ErrorObject {
    const MEMBERS: MemberNames = &[
        ("type", ERROR_TYPE),
        ("message", Field::ErrorMessage),
        ("details", Field::ErrorData),
        ("code", Field::ErrorCode),
    ];
}

impl Protocol for Actions {
    type Top = Top;
    const DIALECT: Dialect = Dialect::Action;
    const HAS_BATCHES: bool = false;

    #[inline]
    fn classify(pass: &mut Pass<'_, '_, Self>) -> Result<Kind, Fault> {
        let is = |field, first| pass.is_absent_or_begins(field, first);
        Err(match () {
            () if !is(Field::Meta, b'{') => Fault::MetadataType,
            () if !pass.has(Field::Name) => return answer(pass),
            () if pass.has(STATUS) => Fault::RequestAndResponse,
            () if !is(Field::Name, b'"') => Fault::ActionType,
            () if !is(Field::Arguments, b'{') => Fault::ParamsType,
            () if !is(TOOL, b'"') => Fault::ToolType,
            () if !is(CONTEXT, b'"') => Fault::ContextType,
            () => return Ok(Kind::Request),
        })
    }

    #[inline]
    fn finish(pass: &mut Pass<'_, '_, Self>) {
        // R-ACT-39
        if !pass.has(Field::ProtocolVersion) {
            let version = pass.out.span(OTHER_VERSION);
            pass.out.set(Field::ProtocolVersion, version);
        }
        for field in PASSING {
            pass.out.set(field, Span::ABSENT);
        }
    }

    /// A `request_id` may be any value (R-ACT-04).
    #[inline(always)]
    fn is_id_valid(&self) -> bool {
        true
    }
}

/// Determines the kind of an answer, or of a part of one.
#[inline(always)]
fn answer(pass: &Pass<'_, '_, Actions>) -> Result<Kind, Fault> {
    let string = |field| {
        let token = pass.out.span(field).get(pass.bytes)?;
        token.starts_with(b"\"").then_some(token)
    };
    let kind = match (string(Field::ResultType), string(STATUS)) {
        (Some(br#""partial""#), None) => Kind::Notification,
        (None | Some(br#""complete""#), Some(br#""success""#)) | (Some(br#""complete""#), None) => {
            Kind::Response
        }
        (None | Some(br#""complete""# | br#""error""#), Some(br#""error""#))
        | (Some(br#""error""#), None) => Kind::Error,
        (None, None) if pass.has(Field::ResultType) => return Err(Fault::TypeWrong),
        (None, None) if !pass.has(STATUS) => return Err(Fault::ActionMissing),
        (None, _) => return Err(Fault::StatusWrong),
        _ => return Err(Fault::TypeWrong),
    };
    // R-ACT-05
    let is_shaped = match kind {
        Kind::Error => pass.begins(ERROR_TYPE, b'"'),
        _ => pass.is_absent_or_begins(Field::Error, b'n'),
    };
    is_shaped.then_some(kind).ok_or(Fault::ActionErrorShape)
}
