//! Decodes JSON-RPC messages.

use super::envelope::{Dialect, Envelope, Field, Kind, Span};
use super::fault::Fault;
use super::frame::Frame;
use super::pass::{self, Level, MemberNames, Pass, Protocol, Value};
use crate::buffer::PADDING;
use crate::json::walk::short_integer;
use crate::json::{DecodeError, JsonStr};
use crate::limits::MAX_ID_BYTES;

/// Validates the whole frame as JSON and UTF-8, and records the message in `out`.
///
/// One pass, no allocation; the frame is not modified. Member order does not matter. JSON that is
/// not a valid JSON-RPC message gives `Ok`, with [`Kind::Invalid`] and a [`Fault`].
///
/// # Errors
/// The frame is not JSON, not UTF-8, or nests deeper than `max_depth` (at most 1024). `out` is then
/// [`Kind::Invalid`]; it still has the id if a complete, unrepeated top-level `id` member came
/// before the fault.
pub fn decode(frame: Frame<'_>, max_depth: usize, out: &mut Envelope) -> Result<(), DecodeError> {
    pass::decode::<JsonRpc>(frame.padded(), frame.bytes(), max_depth, out)
}

/// Decodes bytes without padding, such as those in a foreign buffer; slower than [`decode`] by some
/// nanoseconds. Short messages are copied to a padded buffer first.
///
/// # Errors
/// As [`decode`].
pub fn decode_unpadded(
    bytes: &[u8],
    max_depth: usize,
    out: &mut Envelope,
) -> Result<(), DecodeError> {
    const SHORT: usize = 448;
    if bytes.len() > SHORT {
        return pass::decode::<JsonRpc>(bytes, bytes, max_depth, out);
    }
    let mut copy = [0; SHORT + PADDING];
    for (to, byte) in copy.iter_mut().zip(bytes) {
        *to = *byte;
    }
    pass::decode::<JsonRpc>(&copy, bytes, max_depth, out)
}

/// The state of a pass over a JSON-RPC message.
#[derive(Default)]
struct JsonRpc {
    id: Id,
    is_code_integer: bool,
}

/// The kind of value in the `id` member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Id {
    #[default]
    Absent,
    Valid,
    Null,
    Bad,
}

struct Top;
struct Params;
struct Meta;
struct ResultObject;
struct ErrorObject;

impl Level<JsonRpc> for Top {
    const MEMBERS: MemberNames = &[
        ("jsonrpc", Field::Version),
        ("id", Field::Id),
        ("method", Field::Method),
        ("params", Field::Params),
        ("result", Field::Result),
        ("error", Field::Error),
    ];

    #[inline(always)]
    fn value(
        pass: &mut Pass<'_, '_, JsonRpc>,
        field: Field,
        value: Value,
        depth: usize,
    ) -> Option<usize> {
        match field {
            Field::Version => version(pass, value, depth),
            Field::Id => id(pass, value, depth),
            Field::Params => pass.nested::<Params>(value, depth),
            Field::Result => {
                pass.out.answer = true;
                pass.nested::<ResultObject>(value, depth)
            }
            Field::Error => {
                pass.out.answer = true;
                pass.nested::<ErrorObject>(value, depth)
            }
            _ => pass.value(value, depth),
        }
    }
}

impl Level<JsonRpc> for Params {
    const MEMBERS: MemberNames = &[
        ("name", Field::Name),
        ("arguments", Field::Arguments),
        ("_meta", Field::Meta),
        ("uri", Field::Uri),
        ("progressToken", Field::Progress),
        ("requestId", Field::RequestId),
        ("cursor", Field::Cursor),
    ];

    #[inline(always)]
    fn value(
        pass: &mut Pass<'_, '_, JsonRpc>,
        field: Field,
        value: Value,
        depth: usize,
    ) -> Option<usize> {
        match field {
            Field::Meta => pass.nested::<Meta>(value, depth),
            _ => pass.value(value, depth),
        }
    }
}

impl Level<JsonRpc> for Meta {
    const MEMBERS: MemberNames = &[
        ("progressToken", Field::ProgressToken),
        ("traceparent", Field::Traceparent),
        ("tracestate", Field::Tracestate),
        ("baggage", Field::Baggage),
    ];
    const PREFIX: &'static str = "io.modelcontextprotocol/";
    const PREFIXED: MemberNames = &[
        ("protocolVersion", Field::ProtocolVersion),
        ("clientCapabilities", Field::ClientCapabilities),
        ("clientInfo", Field::ClientInfo),
        ("logLevel", Field::LogLevel),
        ("subscriptionId", Field::SubscriptionId),
    ];
}

impl Level<JsonRpc> for ResultObject {
    const MEMBERS: MemberNames = &[("resultType", Field::ResultType)];
}

impl Level<JsonRpc> for ErrorObject {
    const MEMBERS: MemberNames = &[
        ("code", Field::ErrorCode),
        ("message", Field::ErrorMessage),
        ("data", Field::ErrorData),
    ];

    #[inline(always)]
    fn value(
        pass: &mut Pass<'_, '_, JsonRpc>,
        field: Field,
        value: Value,
        depth: usize,
    ) -> Option<usize> {
        let end = pass.value(value, depth)?;
        if field == Field::ErrorCode {
            let is_number = matches!(value.byte, b'-' | b'0'..=b'9');
            pass.state.is_code_integer = is_number && pass.walker.integer;
        }
        Some(end)
    }
}

/// Walks the version. One that is not spelled `"2.0"` may still be that string, with escapes.
#[inline(always)]
fn version(pass: &mut Pass<'_, '_, JsonRpc>, value: Value, depth: usize) -> Option<usize> {
    const SPELLED: u64 = u64::from_le_bytes(*b"\"2.0\"\0\0\0");
    if value.ahead & 0xff_ffff_ffff == SPELLED {
        return Some(value.start + 5);
    }
    let end = pass.value(value, depth)?;
    other_version(pass, value.start, end);
    Some(end)
}

#[cold]
fn other_version(pass: &mut Pass<'_, '_, JsonRpc>, start: usize, end: usize) {
    let version = pass.text(start, end).and_then(JsonStr::from_token);
    if version.is_none_or(|version| version != "2.0") {
        pass.fault.get_or_insert(Fault::VersionWrong);
    }
}

/// Walks the id. If ids are repeated, the first counts.
#[inline(always)]
fn id(pass: &mut Pass<'_, '_, JsonRpc>, value: Value, depth: usize) -> Option<usize> {
    let is_first = !pass.has(Field::Id);
    if is_first && let Some((len, b',' | b'}')) = short_integer(value.ahead) {
        pass.state.id = Id::Valid;
        return Some(value.start + len);
    }
    let end = pass.value(value, depth)?;
    if is_first {
        pass.state.id = match value.byte {
            b'"' => Id::Valid,
            b'-' | b'0'..=b'9' if pass.walker.integer => Id::Valid,
            b'n' => Id::Null,
            _ => Id::Bad,
        };
        if end - value.start > MAX_ID_BYTES && pass.state.id == Id::Valid {
            pass.state.id = Id::Bad;
            pass.fault.get_or_insert(Fault::IdTooLong);
        }
    }
    Some(end)
}

impl Protocol for JsonRpc {
    type Top = Top;
    const DIALECT: Dialect = Dialect::Rpc;
    const HAS_BATCHES: bool = true;

    #[inline]
    fn classify(pass: &mut Pass<'_, '_, Self>) -> Result<Kind, Fault> {
        let has = |field| pass.has(field);
        match (has(Field::Method), has(Field::Result), has(Field::Error)) {
            _ if !has(Field::Version) => Err(other_shape(pass)),
            (true, false, false) => request(pass),
            (false, true, false) => result(pass),
            (false, false, true) => error(pass),
            _ => Err(other_shape(pass)),
        }
    }

    #[inline(always)]
    fn finish(pass: &mut Pass<'_, '_, Self>) {
        if !pass.state.is_id_valid() {
            pass.out.set(Field::Id, Span::ABSENT);
        }
    }

    #[inline(always)]
    fn is_id_valid(&self) -> bool {
        matches!(self.id, Id::Valid | Id::Absent)
    }
}

#[inline(always)]
fn request(pass: &Pass<'_, '_, JsonRpc>) -> Result<Kind, Fault> {
    match pass.state.id {
        Id::Null | Id::Bad => Err(Fault::IdType),
        _ if !pass.begins(Field::Method, b'"') => Err(Fault::MethodType),
        _ if !pass.is_absent_or_begins(Field::Params, b'{') => Err(Fault::ParamsType),
        Id::Absent => Ok(Kind::Notification),
        Id::Valid => Ok(Kind::Request),
    }
}

#[inline(always)]
fn result(pass: &Pass<'_, '_, JsonRpc>) -> Result<Kind, Fault> {
    match pass.state.id {
        Id::Null | Id::Bad => Err(Fault::IdType),
        Id::Absent => Err(Fault::ResultWithoutId),
        Id::Valid if !pass.begins(Field::Result, b'{') => Err(Fault::ResultType),
        Id::Valid => Ok(Kind::Response),
    }
}

/// An error may have `id: null`: the answer to a request whose id could not be read (R-RPC-21).
#[inline(always)]
fn error(pass: &Pass<'_, '_, JsonRpc>) -> Result<Kind, Fault> {
    match pass.state {
        JsonRpc { id: Id::Bad, .. } => Err(Fault::IdType),
        JsonRpc {
            is_code_integer: true,
            ..
        } if pass.begins(Field::ErrorMessage, b'"') => Ok(Kind::Error),
        _ => Err(Fault::ErrorShape),
    }
}

/// Why an object is not a message that has the members of a kind.
#[cold]
fn other_shape(pass: &Pass<'_, '_, JsonRpc>) -> Fault {
    match (
        pass.has(Field::Method),
        pass.has(Field::Result),
        pass.state.id,
    ) {
        _ if !pass.has(Field::Version) => Fault::VersionMissing,
        (_, _, Id::Null | Id::Bad) => Fault::IdType,
        (true, ..) => Fault::RequestAndResponse,
        (false, true, _) => Fault::ResultAndError,
        (false, false, Id::Valid) => Fault::NoContent,
        (false, false, Id::Absent) => Fault::UnknownShape,
    }
}
