//! A message as integers: its kind, and the positions of its parts in the bytes that it came in.
//!
//! ```text
//!   0 kind and flags   1-2 all of it   3-4 id   5 number of a known method   6-7 method
//!   8-9 params, result or error; if invalid: the number of the fault's sentence, and its offset
//!   10-11 name   12-13 uri   14-15 arguments   16-17 progress token   18 the id, if it is a short integer
//! ```
//!
//! Two numbers are the begin and the end of a part; they are equal if the part is absent.
//! `face/engine/message.ts` has the same layout.

use mcpbolt::json::{DecodeError, DecodeErrorKind};
use mcpbolt::mcp::Method;
use mcpbolt::message::{Envelope, Fault, Field, Kind, Span};

/// Integers per message.
pub const WIDTH: usize = 19;

/// Flags next to the kind.
const INVITES_ANSWER: i32 = 8;
const SHORT_ID: i32 = 16;

const INVALID: i32 = 5;

/// Why a message is invalid: the faults whose sentences the TypeScript side fetches once.
const FAULTS: [Fault; 16] = [
    Fault::NotAnObject,
    Fault::DuplicateMember,
    Fault::EscapedMember,
    Fault::VersionMissing,
    Fault::VersionWrong,
    Fault::IdType,
    Fault::IdTooLong,
    Fault::MethodType,
    Fault::ParamsType,
    Fault::RequestAndResponse,
    Fault::ResultAndError,
    Fault::NoContent,
    Fault::ResultType,
    Fault::ResultWithoutId,
    Fault::ErrorShape,
    Fault::UnknownShape,
];

const BROKEN: [DecodeErrorKind; 9] = [
    DecodeErrorKind::UnexpectedEnd,
    DecodeErrorKind::UnexpectedByte,
    DecodeErrorKind::ControlCharacter,
    DecodeErrorKind::BadEscape,
    DecodeErrorKind::BadNumber,
    DecodeErrorKind::TrailingBytes,
    DecodeErrorKind::BadUtf8,
    DecodeErrorKind::TooDeep,
    DecodeErrorKind::TooLong,
];

/// The number of the sentence for a message that is too long, after all others.
const OVERSIZE: i32 = (FAULTS.len() + BROKEN.len()) as i32;

/// Each sentence and the code to answer with, in the order of their numbers. TypeScript completes sentences
/// on broken JSON with the offset of the fault.
pub fn sentences() -> Vec<(i32, String)> {
    let faults = FAULTS.map(|fault| (fault.code(), fault.message().to_owned()));
    let broken = BROKEN.map(|kind| {
        let error = DecodeError { kind, offset: 0 };
        let sentence = error.to_string();
        let what = sentence.strip_suffix(" at byte 0").unwrap_or(&sentence);
        (error.code(), what.to_owned())
    });
    let oversize = (-32600, "the message is too long".to_owned());
    faults.into_iter().chain(broken).chain([oversize]).collect()
}

/// The row of a message whose bytes begin at `base` in JavaScript's buffer.
pub fn decoded(bytes: &[u8], base: usize, envelope: &Envelope) -> [i32; WIDTH] {
    let mut row = begin(bytes, base, envelope);
    let (kind, body) = match envelope.kind() {
        Kind::Request => (0, Field::Params),
        Kind::Notification => (1, Field::Params),
        Kind::Response => (2, Field::Result),
        Kind::Error => (3, Field::Error),
        Kind::Batch => (4, Field::Params),
        Kind::Invalid => {
            let fault = envelope.fault().unwrap_or(Fault::UnknownShape);
            let number = FAULTS.iter().position(|known| *known == fault);
            row[0] |= INVALID;
            row[8] = number.unwrap_or(FAULTS.len() - 1) as i32;
            row[9] = -1;
            return row;
        }
    };
    row[0] |= kind;
    put(&mut row, 8, base, envelope.span(body));
    row
}

/// The row of bytes that are not JSON, with the parts before the fault.
pub fn broken(bytes: &[u8], base: usize, envelope: &Envelope, why: DecodeError) -> [i32; WIDTH] {
    let mut row = begin(bytes, base, envelope);
    let number = BROKEN.iter().position(|known| *known == why.kind);
    row[0] |= INVALID;
    row[8] = (FAULTS.len() + number.unwrap_or_default()) as i32;
    row[9] = why.offset as i32;
    row
}

/// The row of the head of a message that is too long, the rest of which is discarded.
pub fn oversize(bytes: &[u8], base: usize, envelope: &Envelope) -> [i32; WIDTH] {
    let mut row = begin(bytes, base, envelope);
    row[0] |= INVALID;
    row[8] = OVERSIZE;
    row[9] = -1;
    row
}

fn begin(bytes: &[u8], base: usize, envelope: &Envelope) -> [i32; WIDTH] {
    let mut row = [0; WIDTH];
    row[1] = base as i32;
    row[2] = (base + bytes.len()) as i32;
    let id = envelope.span(Field::Id);
    if let Some(number) = id.get(bytes).and_then(short) {
        row[0] |= SHORT_ID;
        row[18] = number;
    }
    if envelope.invites_answer() {
        row[0] |= INVITES_ANSWER;
    }
    let method = envelope.span(Field::Method);
    row[5] = method.get(bytes).and_then(known).unwrap_or(-1);
    put(&mut row, 3, base, id);
    put(&mut row, 6, base, method);
    put(&mut row, 10, base, envelope.span(Field::Name));
    put(&mut row, 12, base, envelope.span(Field::Uri));
    put(&mut row, 14, base, envelope.span(Field::Arguments));
    put(&mut row, 16, base, envelope.span(Field::ProgressToken));
    row
}

fn put(row: &mut [i32; WIDTH], at: usize, base: usize, span: Span) {
    if span.is_some() {
        row[at] = (base + span.start()) as i32;
        row[at + 1] = (base + span.end()) as i32;
    }
}

/// An id that fits into an integer of the table: at most nine digits, without a sign.
fn short(token: &[u8]) -> Option<i32> {
    if token.len() > 9 {
        return None;
    }
    token.iter().try_fold(0, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + i32::from(byte - b'0'))
    })
}

fn known(token: &[u8]) -> Option<i32> {
    let name = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let method = Method::parse(std::str::from_utf8(name).ok()?)?;
    Some(method as i32)
}

/// The names of the methods by their numbers.
pub fn methods() -> Vec<&'static str> {
    Method::all().map(Method::name).collect()
}
