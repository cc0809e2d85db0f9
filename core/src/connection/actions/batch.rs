//! `batch.execute`: the operations of one request run one after another and are answered together
//! (R-ACT-16, R-ACT-17).
//!
//! In the table of requests in flight, a batch is represented by its current operation, which holds the
//! rest. So a batch counts as one request and is cancelled as one. The request is kept as it was sent;
//! each operation is decoded when its turn comes.

use std::ops::Range;

use super::super::StreamId;
use super::super::core::Core;
use super::super::host::{Batch, CallKey, Disposition, Host, Incoming, Record as Deferred};
use super::super::operation::Operation;
use super::super::stream::{Entry, Exchange, Wire};
use super::{REVISION, Underway, close_now};
use crate::action::encode::{self, ActionError};
use crate::action::{self, ErrorType, Kind, Record};
use crate::buffer::{Output, PADDING};
use crate::correlate::CancelToken;
use crate::json::{number, reader};
use crate::mcp::Method;
use crate::message::{Dialect, Field, Frame, Message, MessageRef, RequestId};

/// Longest `auth` that operations inherit, in bytes: each operation gets a copy.
const MAX_AUTH_BYTES: usize = 8 << 10;

/// A batch in progress.
#[derive(Debug)]
pub(crate) struct Run {
    /// The whole request.
    whole: Message,
    underway: Underway,
    /// The credentials in the request's metadata: raw JSON.
    auth: Option<Box<str>>,
    /// Positions in the request of the operations that have not begun.
    operations: std::vec::IntoIter<Range<usize>>,
    continues: bool,
    results: Vec<u8>,
    successes: u64,
    failures: u64,
}

#[derive(Debug)]
enum Item {
    Call(Box<Message>),
    /// An operation that cannot be run: the type of error and a message.
    Wrong(ErrorType, String),
}

/// Whether a request is a batch.
pub(super) fn is_one(message: &MessageRef<'_>) -> bool {
    message.name().is_some_and(|name| name == action::BATCH)
}

impl Item {
    /// Decodes the operation in `frame`; `auth` are the credentials of the whole batch.
    fn of(frame: Option<Frame<'_>>, auth: Option<&str>, max_depth: usize) -> Self {
        let mut record = Record::new();
        let Some(frame) = frame else {
            return Self::Wrong(ErrorType::Internal, "it cannot be read".into());
        };
        if let Some(block) = auth.and_then(|auth| with_auth(frame.bytes(), auth)) {
            let frame = Frame::new(&block, block.len() - PADDING);
            return Self::of(frame, None, max_depth);
        }
        if let Err(error) = action::decode(frame, max_depth, &mut record) {
            return Self::Wrong(ErrorType::Validation, error.to_string());
        }
        let envelope = record.as_call(Dialect::ActionPart);
        let message = MessageRef::new(frame, &envelope);
        match record.kind() {
            Kind::Request if is_one(&message) => {
                Self::Wrong(ErrorType::Validation, "a batch within a batch".into())
            }
            Kind::Request => Self::Call(Box::new(message.detach())),
            _ => {
                let fault = record.fault().unwrap_or(action::Fault::ActionMissing);
                Self::Wrong(fault.error_type(), fault.to_string())
            }
        }
    }
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

impl Run {
    /// # Errors
    /// Which parameter is wrong, and why.
    fn new(
        frame: Frame<'_>,
        message: &MessageRef<'_>,
        underway: Underway,
        max_len: usize,
    ) -> Result<Self, (&'static str, String)> {
        let params = message.arguments().unwrap_or("{}");
        let continues = match reader::find(params, "continue_on_error") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(("continue_on_error", "it must be a boolean".into())),
        };
        let operations = reader::find(params, "operations").unwrap_or("null");
        if !operations.starts_with('[') {
            return Err(("operations", "it must be an array of requests".into()));
        }
        if reader::elements(operations).nth(max_len).is_some() {
            return Err(("operations", format!("there may be {max_len} at most")));
        }
        let metadata = message.raw(Field::Meta);
        let auth = metadata.and_then(|metadata| reader::find(metadata, "auth"));
        if auth.is_some_and(|auth| auth.len() > MAX_AUTH_BYTES) {
            let why = format!("it may have {MAX_AUTH_BYTES} bytes at most");
            return Err(("metadata.auth", why));
        }
        let place = |one: &str| {
            let begin = one.as_ptr() as usize - frame.padded().as_ptr() as usize;
            begin..begin + one.len()
        };
        let operations: Vec<_> = reader::elements(operations).map(place).collect();
        Ok(Self {
            whole: message.detach(),
            underway,
            auth: auth.map(Into::into),
            operations: operations.into_iter(),
            continues,
            results: Vec::new(),
            successes: 0,
            failures: 0,
        })
    }

    /// Adds the answer of an operation; `answer` lacks its last brace.
    pub fn note(&mut self, answer: &[u8]) {
        match answer.starts_with(b"{\"status\":\"success\"") {
            true => self.successes += 1,
            false => self.failures += 1,
        }
        if !self.results.is_empty() {
            self.results.push(b',');
        }
        self.results.extend_from_slice(answer);
        self.results.push(b'}');
    }

    fn next(&mut self, max_depth: usize) -> Option<Item> {
        if self.failures > 0 && !self.continues {
            return None;
        }
        let place = self.operations.next()?;
        let whole = self.whole.frame();
        let frame = whole.and_then(|whole| whole.part(place.start, place.end));
        Some(Item::of(frame, self.auth.as_deref(), max_depth))
    }

    fn data(&self) -> String {
        let mut data = b"{\"results\":[".to_vec();
        data.extend_from_slice(&self.results);
        data.push(b']');
        for (name, count) in [
            ("success_count", self.successes),
            ("error_count", self.failures),
            ("failure_count", self.failures),
        ] {
            data.extend_from_slice(format!(",\"{name}\":").as_bytes());
            number::append(&mut data, count);
        }
        data.push(b'}');
        String::from_utf8(data).unwrap_or_default()
    }
}

impl Core {
    pub(super) fn begin_batch(
        &mut self,
        exchange: &mut Exchange,
        stream: StreamId,
        frame: Frame<'_>,
        message: MessageRef<'_>,
        host: &mut dyn Host,
    ) {
        let limits = &self.config.limits;
        let max_len = limits.max_batch_len;
        if self.in_flight >= limits.max_incoming || self.is_over_budget() {
            let answer = exchange.answer_to(&self.config, &message, REVISION);
            super::super::admission::refuse(answer);
            return;
        }
        let underway = Underway::new(&message, self.clock);
        match Run::new(frame, &message, underway, max_len) {
            Ok(run) => self.go_on(exchange, stream, Box::new(run), host),
            Err((parameter, why)) => {
                let details = format!("{{\"parameter\":\"{parameter}\"}}");
                let why = format!("{parameter}: {why}");
                let kind = ErrorType::Validation;
                self.refuse_action(exchange, message, kind, &why, Some(&details));
            }
        }
    }

    /// Runs operations until one is deferred or all are done.
    pub(super) fn go_on(
        &mut self,
        exchange: &mut Exchange,
        stream: StreamId,
        mut run: Box<Run>,
        host: &mut dyn Host,
    ) {
        while let Some(operation) = run.next(self.config.limits.max_depth) {
            let message = match operation {
                Item::Call(message) => *message,
                Item::Wrong(kind, why) => {
                    let mut answer = Vec::new();
                    encode::open_error(&mut answer, false, &ActionError::new(kind, &why));
                    run.note(&answer);
                    continue;
                }
            };
            let (mut output, wire) = (Output::new(), Wire::plain());
            let request = Incoming {
                message: message.as_ref(),
                method: Some(Method::CallTool),
                revision: REVISION,
            };
            let answer = wire.answer(&mut output, &self.config, &request.message, REVISION);
            match host.request(request, answer) {
                Disposition::Answered => {
                    let answer: Vec<u8> = output.take().flatten().collect();
                    // The answer is a whole line.
                    run.note(answer.strip_suffix(b"}\n").unwrap_or(&answer));
                }
                Disposition::Deferred(operation) => {
                    let call = (message, operation);
                    return self.defer(exchange, stream, run, call, host);
                }
            }
        }
        self.end_batch(exchange, &run);
    }

    fn defer(
        &mut self,
        exchange: &mut Exchange,
        stream: StreamId,
        run: Box<Run>,
        (message, operation): (Message, Operation),
        host: &mut dyn Host,
    ) {
        let cancel = CancelToken::new();
        let mut underway = Underway::new(&message.as_ref(), self.clock);
        underway.batch = Some(run);
        let entry = Entry::new(cancel.clone(), None).of_action(underway);
        // The table has no limit of its own.
        let Ok(incoming) = exchange.incoming.insert_unnamed(RequestId::NONE, entry) else {
            return;
        };
        self.in_flight += 1;
        self.calls += 1;
        let record = Deferred {
            start: 0,
            len: message.bytes().len() as u32,
            envelope: *message.as_ref().envelope(),
            key: CallKey { stream, incoming },
            method: Some(Method::CallTool),
            revision: REVISION,
            operation,
            cancel,
            interceptor: None,
        };
        host.dispatch(Batch {
            block: message.into_block(),
            records: vec![record],
        });
    }

    fn end_batch(&mut self, exchange: &mut Exchange, run: &Run) {
        let data = run.data();
        let whole = run.whole.as_ref();
        let streamed = whole.dialect() == Dialect::ActionStream;
        let time = self.elapsed_ms(run.underway.begun);
        let implementation = &self.config.implementation;
        exchange.write(|out| {
            encode::open_success(out, streamed, Some(&data));
            close_now(out, implementation, &whole, Some(time));
        });
    }
}
