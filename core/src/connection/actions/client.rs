//! The client's side of the action dialect: encodes requests and reads answers.

use std::time::Instant;

use crate::action;
use crate::connection::config::{Config, OpeningMode};
use crate::connection::observer::RequestOutcome;
use crate::connection::options::ActOptions;
use crate::connection::params::{append_params, is_object};
use crate::connection::pending::Pending;
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::json::{number, reader, string, writer};
use crate::mcp::Side;
use crate::message::{Envelope, Field, Frame, Kind, MessageRef};

/// Appends a request whose id is the key in digits (R-ACT-02, R-ACT-03).
///
/// # Errors
/// If `params` or the metadata is not a JSON object.
pub(in crate::connection) fn request(
    out: &mut Vec<u8>,
    key: RequestKey,
    (action, params): (&str, &str),
    options: &ActOptions,
) -> Result<(), RequestError> {
    let more = options.metadata.as_deref().map(str::trim_ascii);
    if more.is_some_and(|more| !is_object(more)) {
        return Err(RequestError::Misuse("metadata must be a JSON object"));
    }
    out.extend_from_slice(b"{\"action\":");
    string::append(out, action);
    append_params(out, Some(params))?;
    for (name, value) in [
        (",\"tool\":", &options.tool),
        (",\"context\":", &options.context),
    ] {
        if let Some(value) = value {
            out.extend_from_slice(name.as_bytes());
            string::append(out, value);
        }
    }
    out.extend_from_slice(b",\"metadata\":{\"request_id\":\"");
    number::append(out, key.get());
    out.extend_from_slice(b"\",\"protocol_version\":\"");
    out.extend_from_slice(action::NEWEST.as_bytes());
    out.push(b'"');
    for (name, value) in reader::members(more.unwrap_or("{}")) {
        if !matches!(name.raw(), "request_id" | "protocol_version" | "stream") {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.raw().as_bytes());
            out.extend_from_slice(b"\":");
            writer::append_compact(out, value);
        }
    }
    if options.streamed {
        out.extend_from_slice(b",\"stream\":true");
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

/// An answer of a server of the dialect.
pub(in crate::connection) enum ClientReading {
    /// A part of the answer to a pending request, which was reported.
    Part,
    /// The answer to a pending request, by its outcome, or why it is not one.
    Answer(RequestKey, Result<RequestOutcome, &'static str>),
    /// An answer that no pending request has.
    Stray,
}

/// Whether this side is a client of the action dialect.
#[inline]
pub(in crate::connection) fn is_one(config: &Config) -> bool {
    config.opening == OpeningMode::Actions && config.side == Side::Client
}

/// Reads a frame from a server of the dialect, and reports a part of an answer. An answer without an id counts for the pending request
/// if there is exactly one.
#[inline]
pub(in crate::connection) fn read(
    config: &Config,
    frame: Frame<'_>,
    pending: &mut Pending,
    now: Instant,
) -> ClientReading {
    let mut envelope = Envelope::new();
    let decoded = action::decode(frame, config.limits.max_depth, &mut envelope);
    let answer = MessageRef::new(frame, &envelope);
    let key = match answer.raw(Field::Id) {
        Some(id) => RequestKey::from_token(id.trim_matches('"').as_bytes()),
        None => pending.only(),
    };
    let Some(key) = key.filter(|key| pending.contains(*key)) else {
        return ClientReading::Stray;
    };
    let is_answer = match (decoded, envelope.kind()) {
        (Ok(()), Kind::Notification) => {
            pending.part(key, answer.result().unwrap_or("null"), now);
            return ClientReading::Part;
        }
        (Ok(()), Kind::Response) => Ok(RequestOutcome::Done),
        (Ok(()), Kind::Error) => Ok(RequestOutcome::ToolFailed),
        (Ok(()), _) => Err("not an answer to an action"),
        (Err(_), _) => Err("not JSON"),
    };
    ClientReading::Answer(key, is_answer)
}
