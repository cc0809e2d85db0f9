//! The client's side of the action dialect: encodes requests and handles answers.

use std::time::Instant;

use bytes::Bytes;

use super::super::config::Opening;
use super::super::core::Core;
use super::super::handle::ActOptions;
use super::super::host::{Host, Stray};
use super::super::params::{append_params, is_object};
use crate::action::{self, Field, Kind, Record};
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::json::{number, reader, string, writer};
use crate::mcp::Side;
use crate::message::{Envelope, Frame, Message};

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

impl Core {
    /// Whether this side is a client of the action dialect.
    #[inline]
    pub(in crate::connection) fn asks_in_actions(&self) -> bool {
        self.config.opening == Opening::Actions && self.config.side == Side::Client
    }

    /// Handles a frame from a server of the dialect. An answer without an id counts for the pending
    /// request if there is exactly one.
    #[cold]
    pub(in crate::connection) fn action_answered(
        &mut self,
        frame: Frame<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let mut record = Record::new();
        let decoded = action::decode(frame, self.config.limits.max_depth, &mut record);
        let answer = action::ActionRef::new(frame, &record);
        let key = match answer.raw(Field::RequestId) {
            Some(id) => RequestKey::from_token(id.trim_matches('"').as_bytes()),
            None => self.pending.only(),
        };
        let key = key.filter(|key| self.pending.contains(*key));
        let Some(key) = key else {
            return self.stray(Stray::Answer, frame.bytes(), host);
        };
        let outcome = match (decoded, record.kind()) {
            (Ok(()), Kind::Partial) => {
                self.pending.part(key, answer.data().unwrap_or("null"), now);
                return;
            }
            (Ok(()), Kind::Success | Kind::Error) => {
                let block = Bytes::copy_from_slice(frame.bytes());
                Ok(Message::from_bytes(block, Envelope::default()))
            }
            (Ok(()), _) => Err(RequestError::BadAnswer("it is no answer to an action")),
            (Err(_), _) => Err(RequestError::BadAnswer("it is not JSON")),
        };
        self.pending.remove(key, &mut self.timers);
        if self.shared().outgoing.complete(key, outcome).is_err() {
            self.stray(Stray::Answer, frame.bytes(), host);
        }
    }
}
