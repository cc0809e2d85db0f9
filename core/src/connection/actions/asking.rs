//! The client's side: requests as bytes, and the answers to them.

use std::time::Instant;

use bytes::Bytes;

use super::super::config::Opening;
use super::super::core::Core;
use super::super::handle::ActOptions;
use super::super::host::{Host, Stray};
use crate::action::encode::{self, RequestParts};
use crate::action::{self, Field, Kind, Record, Version};
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::json::{self, reader, writer};
use crate::mcp::Side;
use crate::message::{Envelope, Frame, Message};

/// How deep params and metadata may nest.
const MAX_DEPTH: usize = 512;

/// Appends a request, whose id is the key in digits (R-ACT-02, R-ACT-03).
///
/// # Errors
/// When `params` or the metadata is no JSON object.
pub(in crate::connection) fn request(
    out: &mut Vec<u8>,
    key: RequestKey,
    (action, params): (&str, &str),
    options: &ActOptions,
) -> Result<(), RequestError> {
    let is_object = |text: &str| {
        text.trim_start().starts_with('{') && json::validate(text.as_bytes(), MAX_DEPTH).is_ok()
    };
    if !is_object(params) {
        return Err(RequestError::Misuse("params must be a JSON object"));
    }
    let more = options.metadata.as_deref().unwrap_or("{}");
    if !is_object(more) {
        return Err(RequestError::Misuse("metadata must be a JSON object"));
    }
    let newest = Version::SUPPORTED.last().copied();
    let newest = newest
        .map(|version| version.to_string())
        .unwrap_or_default();
    let mut metadata = format!(
        "{{\"request_id\":\"{}\",\"protocol_version\":\"{newest}\"",
        key.get()
    )
    .into_bytes();
    for (name, value) in reader::members(more) {
        if !matches!(name.raw(), "request_id" | "protocol_version" | "stream") {
            metadata.extend_from_slice(b",\"");
            metadata.extend_from_slice(name.raw().as_bytes());
            metadata.extend_from_slice(b"\":");
            writer::append_compact(&mut metadata, value);
        }
    }
    if options.streamed {
        metadata.extend_from_slice(b",\"stream\":true");
    }
    metadata.push(b'}');
    let parts = RequestParts {
        tool: options.tool.as_deref(),
        context: options.context.as_deref(),
        metadata: std::str::from_utf8(&metadata).ok(),
    };
    encode::request(out, action, params, parts);
    Ok(())
}

impl Core {
    /// Whether this side asks in the action dialect.
    #[inline]
    pub(in crate::connection) fn asks_in_actions(&self) -> bool {
        self.config.opening == Opening::Actions && self.config.side == Side::Client
    }

    /// A frame of a server of the dialect. One that does not echo ids is believed where one
    /// request alone waits.
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
        let said = answer.raw(Field::RequestId);
        let digits = said.map(|id| reader::as_str(id).unwrap_or(id.into()));
        let key = match digits {
            Some(digits) => digits.parse().ok().and_then(RequestKey::from_wire),
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
