//! `batch.execute`: the operations of one request run one after another and are answered together
//! (R-ACT-16, R-ACT-17). The request is kept as it was sent; each operation is decoded when its turn comes.

use std::ops::Range;

use crate::action::encode::{self, ActionError};
use crate::action::{self, ErrorType};
use crate::buffer::PADDING;
use crate::connection::batches::{BatchMembers, MemberAnswer};
use crate::json::{number, reader};
use crate::limits::Limits;
use crate::message::{Dialect, Envelope, Fault, Field, Frame, Kind, Message, MessageRef};

use super::Refusal;

/// Longest `auth` that operations inherit, in bytes: each operation gets a copy.
const MAX_AUTH_BYTES: usize = 8 << 10;

/// The operations of a batch.
#[derive(Debug)]
pub(in crate::connection) struct Operations {
    /// The whole request.
    whole: Message,
    /// The credentials in the request's metadata: raw JSON.
    auth: Option<Box<str>>,
    /// Positions of the operations in the request.
    places: Vec<Range<usize>>,
    continues: bool,
    max_depth: usize,
}

/// Whether a request is a batch.
pub(in crate::connection) fn is_one(message: &MessageRef<'_>) -> bool {
    message.name().is_some_and(|name| name == action::BATCH)
}

impl Operations {
    /// # Errors
    /// Says which parameter is wrong, and why.
    pub fn read(message: &MessageRef<'_>, limits: &Limits) -> Result<Self, Refusal> {
        let wrong = |parameter: &str, why: String| {
            Err(Refusal {
                kind: ErrorType::Validation,
                why: format!("{parameter}: {why}").into(),
                details: Some(format!("{{\"parameter\":\"{parameter}\"}}")),
            })
        };
        let params = message.arguments().unwrap_or("{}");
        let continues = match reader::find(params, "continue_on_error") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return wrong("continue_on_error", "it must be a boolean".into()),
        };
        let operations = reader::find(params, "operations").unwrap_or("null");
        if !operations.starts_with('[') {
            return wrong("operations", "it must be an array of requests".into());
        }
        let max_len = limits.max_batch_len;
        if reader::elements(operations).nth(max_len).is_some() {
            return wrong("operations", format!("there may be {max_len} at most"));
        }
        let metadata = message.raw(Field::Meta);
        let auth = metadata.and_then(|metadata| reader::find(metadata, "auth"));
        if auth.is_some_and(|auth| auth.len() > MAX_AUTH_BYTES) {
            let why = format!("it may have {MAX_AUTH_BYTES} bytes at most");
            return wrong("metadata.auth", why);
        }
        let place = |one: &str| {
            let begin = one.as_ptr() as usize - message.bytes().as_ptr() as usize;
            begin..begin + one.len()
        };
        Ok(Self {
            whole: message.detach(),
            auth: auth.map(Into::into),
            places: reader::elements(operations).map(place).collect(),
            continues,
            max_depth: limits.max_depth,
        })
    }

    /// Decodes the operation in `frame`; `auth` are the credentials of the whole batch.
    fn decode(&self, frame: Frame<'_>, auth: Option<&str>) -> Result<Message, MemberAnswer> {
        if let Some(block) = auth.and_then(|auth| with_auth(frame.bytes(), auth)) {
            let frame = Frame::new(&block, block.len() - PADDING);
            return self.decode(frame.ok_or_else(unreadable)?, None);
        }
        let mut envelope = Envelope::new();
        if let Err(error) = action::decode(frame, self.max_depth, &mut envelope) {
            return Err(failed(ErrorType::Validation, &error.to_string()));
        }
        envelope.set_dialect(Dialect::ActionPart);
        let message = MessageRef::new(frame, &envelope);
        match envelope.kind() {
            Kind::Request if is_one(&message) => {
                Err(failed(ErrorType::Validation, "a batch within a batch"))
            }
            Kind::Request => Ok(message.detach()),
            _ => {
                let fault = envelope.fault().unwrap_or(Fault::ActionMissing);
                Err(failed(fault.into(), &fault.to_string()))
            }
        }
    }
}

impl BatchMembers for Operations {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn one_by_one(&self) -> Option<bool> {
        Some(self.continues)
    }

    fn request(&self, index: usize) -> Result<Message, MemberAnswer> {
        let Range { start, end } = self.places[index].clone();
        let frame = self.whole.frame().and_then(|whole| whole.part(start, end));
        self.decode(frame.ok_or_else(unreadable)?, self.auth.as_deref())
    }

    fn overdue(&self) -> MemberAnswer {
        failed(ErrorType::Timeout, "the batch took too long")
    }

    fn join(&self, answers: &[Option<MemberAnswer>]) -> String {
        let mut data = b"{\"results\":[".to_vec();
        for answer in answers.iter().flatten() {
            if !data.ends_with(b"[") {
                data.push(b',');
            }
            data.extend_from_slice(&answer.json);
        }
        data.push(b']');
        let answers = answers.iter().flatten();
        let failures = answers.clone().filter(|answer| answer.is_error).count();
        for (name, count) in [
            ("success_count", answers.count() - failures),
            ("error_count", failures),
            ("failure_count", failures),
        ] {
            data.extend_from_slice(format!(",\"{name}\":").as_bytes());
            number::append(&mut data, count as u64);
        }
        data.push(b'}');
        String::from_utf8(data).unwrap_or_default()
    }
}

fn failed(kind: ErrorType, why: &str) -> MemberAnswer {
    let mut json = Vec::new();
    encode::open_error(&mut json, false, &ActionError::new(kind, why));
    json.push(b'}');
    MemberAnswer {
        is_error: true,
        json,
    }
}

fn unreadable() -> MemberAnswer {
    failed(ErrorType::Internal, "it cannot be read")
}

/// Adds the batch's credentials to an operation that has none of its own; `None` if it has. The result
/// is padded.
fn with_auth(operation: &[u8], auth: &str) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(operation).ok()?;
    let (at, said) = match reader::find(text, "metadata") {
        None => {
            let open = text.strip_prefix('{')?.strip_suffix('}')?.trim_end();
            let comma = if open.is_empty() { "" } else { "," };
            let said = format!("{comma}\"metadata\":{{\"auth\":{auth}}}");
            (1 + open.len(), said)
        }
        Some(own) => {
            let open = own.strip_prefix('{')?;
            if reader::find(own, "auth").is_some() {
                return None;
            }
            let comma = if reader::members(own).next().is_none() {
                ""
            } else {
                ","
            };
            let at = open.as_ptr() as usize - text.as_ptr() as usize;
            (at, format!("\"auth\":{auth}{comma}"))
        }
    };
    let (before, after) = text.split_at_checked(at)?;
    let mut block = [before, &said, after].concat().into_bytes();
    block.resize(block.len() + PADDING, 0);
    Some(block)
}
