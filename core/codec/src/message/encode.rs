//! Appends messages to a buffer, without a line end.
//!
//! Members are passed as raw JSON, as serde values (functions ending in `_value`) or as closures
//! that write them (functions ending in `_by`). Raw JSON must be one valid value. If it contains
//! raw line breaks, as only pretty-printed text does, the whitespace between its tokens is dropped,
//! so that the message fits on one line (R-STD-01).

use std::borrow::Cow;

use serde::Serialize;

use super::envelope::{Envelope, Field, Span};
use super::id::{RequestId, WriteId};
use super::view::MessageRef;
use crate::json::{append_value, number, string, writer};

/// Appends a request; `params` is a raw JSON object.
pub fn request(out: &mut Vec<u8>, id: impl WriteId, method: &str, params: Option<&str>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_id(out);
    out.extend_from_slice(b",\"method\":");
    method_and_params(out, method, params);
}

/// Appends a notification; `params` is a raw JSON object.
pub fn notification(out: &mut Vec<u8>, method: &str, params: Option<&str>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    method_and_params(out, method, params);
}

fn method_and_params(out: &mut Vec<u8>, method: &str, params: Option<&str>) {
    string::append(out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        writer::append_compact(out, params);
    }
    out.push(b'}');
}

/// Appends a response; `result` is a raw JSON object.
pub fn response(out: &mut Vec<u8>, id: impl WriteId, result: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    id.write_id(out);
    out.extend_from_slice(b",\"result\":");
    writer::append_compact(out, result);
    out.push(b'}');
}

/// Appends a request whose `params` are a serde value: a struct or a map.
///
/// # Errors
/// The value cannot be serialised; nothing is appended.
pub fn request_value<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: impl WriteId,
    method: &str,
    params: &T,
) -> serde_json::Result<()> {
    request_by(out, id, method, |out| append_value(out, params))
}

/// Appends a request whose `params` are written by `write`: one JSON object, on one line.
///
/// # Errors
/// The error of `write`; nothing is appended.
pub fn request_by<E>(
    out: &mut Vec<u8>,
    id: impl WriteId,
    method: &str,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let head = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write_id(out);
        out.extend_from_slice(b",\"method\":");
        string::append(out, method);
        out.extend_from_slice(b",\"params\":");
    };
    ending_in(out, head, write)
}

/// Appends a notification whose `params` are a serde value: a struct or a map.
///
/// # Errors
/// The value cannot be serialised; nothing is appended.
pub fn notification_value<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: &T,
) -> serde_json::Result<()> {
    let head = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
        string::append(out, method);
        out.extend_from_slice(b",\"params\":");
    };
    ending_in(out, head, |out| append_value(out, params))
}

/// Appends a response whose `result` is a serde value: a struct or a map.
///
/// # Errors
/// The value cannot be serialised; nothing is appended.
pub fn response_value<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    id: impl WriteId,
    result: &T,
) -> serde_json::Result<()> {
    response_by(out, id, |out| append_value(out, result))
}

/// Appends a response whose `result` is written by `write`: one JSON object, on one line.
///
/// # Errors
/// The error of `write`; nothing is appended.
pub fn response_by<E>(
    out: &mut Vec<u8>,
    id: impl WriteId,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let head = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        id.write_id(out);
        out.extend_from_slice(b",\"result\":");
    };
    ending_in(out, head, write)
}

/// Appends a message whose last member `write` appends; appends nothing if `write` fails.
fn ending_in<E>(
    out: &mut Vec<u8>,
    head: impl FnOnce(&mut Vec<u8>),
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    head(out);
    let done = write(out);
    match done {
        Ok(()) => out.push(b'}'),
        Err(_) => out.truncate(start),
    }
    done
}

/// The `id` member of an error response.
#[derive(Clone, Copy, Debug)]
pub enum ErrorId<'a> {
    /// The id of the request that the error answers.
    Id(RequestId<'a>),
    /// `null`, for revisions that use it when the request's id could not be read (R-RPC-21).
    Null,
    /// No `id` member, for the other revisions.
    Omit,
}

/// Longest error message, in characters.
const MAX_SENTENCE_CHARS: usize = 1000;

/// Normalizes an error message to one line of at most [`MAX_SENTENCE_CHARS`] (R-RPC-14).
fn sentence(text: &str) -> Cow<'_, str> {
    let is_short = text.len() <= MAX_SENTENCE_CHARS;
    if is_short && !text.contains(['\n', '\r']) && !text.is_empty() {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return Cow::Borrowed("unknown error");
    }
    if let Some((end, _)) = line.char_indices().nth(MAX_SENTENCE_CHARS - 1) {
        line.truncate(end);
        line.push('\u{2026}');
    }
    Cow::Owned(line)
}

/// Appends an error response. `data` is raw JSON of any type; `message` is joined to one line and
/// cut to at most 1000 characters.
pub fn error(out: &mut Vec<u8>, id: ErrorId<'_>, code: i64, message: &str, data: Option<&str>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    match id {
        ErrorId::Id(id) => {
            out.extend_from_slice(b"\"id\":");
            id.write_id(out);
            out.push(b',');
        }
        ErrorId::Null => out.extend_from_slice(b"\"id\":null,"),
        ErrorId::Omit => {}
    }
    out.extend_from_slice(b"\"error\":");
    error_object(out, code, message, data);
    out.push(b'}');
}

/// Appends the `error` member of an error response alone; see [`error`].
#[inline]
pub fn error_object(out: &mut Vec<u8>, code: i64, message: &str, data: Option<&str>) {
    out.extend_from_slice(b"{\"code\":");
    number::append(out, code);
    out.extend_from_slice(b",\"message\":");
    string::append(out, &sentence(message));
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        writer::append_compact(out, data);
    }
    out.push(b'}');
}

/// Appends `message` byte for byte, with `id` in place of its own id; a message without an id is
/// copied unchanged.
pub fn with_id(out: &mut Vec<u8>, message: MessageRef<'_>, id: impl WriteId) {
    let bytes = message.bytes();
    let span = message.envelope().span(Field::Id);
    let parts = (bytes.get(..span.start()), bytes.get(span.end()..));
    match parts {
        (Some(head), Some(tail)) if span.is_some() => {
            out.reserve(bytes.len() + 24);
            out.extend_from_slice(head);
            id.write_id(out);
            out.extend_from_slice(tail);
        }
        _ => out.extend_from_slice(bytes),
    }
}

/// Overwrites the message's id in place with `id`, padded with spaces, and shortens its span to
/// match. Returns `false` and changes nothing if the message has no id or `id` does not fit into
/// its place.
///
/// ```text
///   …,"id":1234567,"method"…   →   …,"id":42     ,"method"…
/// ```
pub fn rewrite_id(bytes: &mut [u8], envelope: &mut Envelope, id: u64) -> bool {
    let span = envelope.span(Field::Id);
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(id).as_bytes();
    let Some(room) = bytes.get_mut(span.start()..span.end()) else {
        return false;
    };
    let Some((head, pad)) = room.split_at_mut_checked(digits.len()) else {
        return false;
    };
    head.copy_from_slice(digits);
    pad.fill(b' ');
    let end = span.start() + digits.len();
    envelope.set(Field::Id, Span::new(span.start(), end));
    true
}
