//! The server's side of the action dialect. A request is a tool call that needs no session and is
//! answered in the same dialect.
//!
//! JSON-RPC and actions may share a stream; the shape of each message tells them apart (F-63). A
//! message of neither shape is answered in the dialect of the message before, or in the only dialect
//! that the transport allows.

mod asking;
mod batch;
#[cfg(feature = "server")]
pub(crate) mod references;
pub(crate) mod words;

use std::time::Instant;

use bytes::Bytes;

pub(super) use self::asking::request;
pub(crate) use self::batch::Run;
use super::core::Core;
use super::host::{Answer, Host, Incoming, Stray};
use super::implementation::Implementation;
use super::queue::Encoded;
use super::receive::Turn;
use super::stream::{Entry, Exchange, Wire};
use crate::action::encode::{self, ActionError, AnswerMetadata};
use crate::action::{self, ErrorType, Fault, Field, Kind, Record, Version};
use crate::buffer::Output;
use crate::limits::MAX_ID_BYTES;
use crate::mcp::{ErrorKind, Method, Revision, Side};
use crate::message::{self, Dialect, Envelope, Frame, Message, MessageRef, OwnedId, RequestId};

/// The revision under which handlers see an action. In that revision, too, each request stands alone.
pub(super) const REVISION: Revision = Revision::V2026_07_28;

/// Which dialects a stream uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Speech {
    /// The dialect of its answers, if the transport says that the stream carries only actions.
    pub only: Option<Dialect>,
    /// Whether the last message was an action.
    pub last: bool,
}

/// State of an action in flight.
#[derive(Debug)]
pub(crate) struct Underway {
    begun: Instant,
    version: Option<&'static str>,
    streamed: bool,
    /// The batch that the action belongs to, if any.
    batch: Option<Box<Run>>,
}

impl Underway {
    pub fn new(message: &MessageRef<'_>, begun: Instant) -> Self {
        Self {
            begun,
            version: agreed(message).ok().flatten(),
            streamed: message.dialect() == Dialect::ActionStream,
            batch: None,
        }
    }
}

impl Core {
    /// Handles a frame that may be an action, before it is decoded as JSON-RPC. Returns whether it was
    /// one.
    #[inline]
    pub(super) fn is_action(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        frame: Frame<'_>,
        host: &mut dyn Host,
    ) -> bool {
        let only = exchange.speech.only.is_some();
        (only || action::begins(frame.bytes()))
            && self.takes_actions()
            && self.action(exchange, turn, frame, host, true)
    }

    /// Handles a frame that turned out not to be JSON-RPC and has no member of it. Returns whether it
    /// was an action.
    #[cold]
    pub(super) fn is_action_after_all(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        (frame, envelope): (Frame<'_>, &Envelope),
        host: &mut dyn Host,
    ) -> bool {
        let has = |field| envelope.span(field).is_some();
        let of_rpc = has(message::Field::Version)
            || has(message::Field::Method)
            || has(message::Field::Result)
            || envelope.has_id_member();
        let last = exchange.speech.last;
        !of_rpc && self.takes_actions() && self.action(exchange, turn, frame, host, last)
    }

    fn takes_actions(&self) -> bool {
        self.config.actions && self.config.side == Side::Server
    }

    /// Handles a frame as an action, if it is one. `certain` says that nothing else would answer it.
    fn action(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        frame: Frame<'_>,
        host: &mut dyn Host,
        certain: bool,
    ) -> bool {
        let mut record = Record::new();
        let decoded = action::decode(frame, self.config.limits.max_depth, &mut record);
        let is_other = match decoded {
            Ok(()) => record.span(Field::JsonRpc).is_some(),
            Err(_) => !action::is_of_no_other(frame.bytes()),
        };
        if is_other && exchange.speech.only.is_none() {
            return false;
        }
        let stream = action::ActionRef::new(frame, &record).raw(Field::Stream);
        let asked = match stream == Some("true") {
            true => Dialect::ActionStream,
            false => Dialect::Action,
        };
        let envelope = record.as_call(exchange.speech.only.unwrap_or(asked));
        let message = MessageRef::new(frame, &envelope);
        let has = |field| record.span(field).is_some();
        match (decoded, record.kind()) {
            (Ok(()), Kind::Request) => {
                exchange.speech.last = true;
                self.act(exchange, turn, frame, message, host);
            }
            // A side that answers actions has not sent any.
            (Ok(()), Kind::Success | Kind::Error | Kind::Partial) if certain => {
                self.stray(Stray::Answer, frame.bytes(), host);
            }
            (Ok(()), Kind::Invalid)
                if certain
                    || has(Field::Action)
                    || has(Field::Params)
                    || has(Field::Metadata)
                    || has(Field::Tool) =>
            {
                exchange.speech.last = true;
                self.stray(Stray::BadFrame, frame.bytes(), host);
                let fault = record.fault().unwrap_or(Fault::NotAnObject);
                let kind = fault.error_type();
                self.refuse_action(exchange, message, kind, fault.message(), None);
            }
            (Err(error), _) if certain => {
                self.stray(Stray::BadFrame, frame.bytes(), host);
                let kind = ErrorType::InvalidJson;
                self.refuse_action(exchange, message, kind, &error.to_string(), None);
            }
            _ => return false,
        }
        true
    }

    /// Handles a request: checks it as far as the protocol layer can, then passes it to the host.
    fn act(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        frame: Frame<'_>,
        message: MessageRef<'_>,
        host: &mut dyn Host,
    ) {
        if message.id().is_some_and(|id| id.raw().len() > MAX_ID_BYTES) {
            let why = format!("request_id is longer than {MAX_ID_BYTES} bytes");
            let nameless = Envelope::of_request(message.dialect(), &[]);
            let message = MessageRef::new(frame, &nameless);
            return self.refuse_action(exchange, message, ErrorType::Validation, &why, None);
        }
        if let Err((why, details)) = agreed(&message) {
            let kind = ErrorType::Validation;
            return self.refuse_action(exchange, message, kind, &why, details.as_deref());
        }
        if message.arguments().is_none() && !self.config.lenient {
            let why = "params is missing: an action without parameters has {}";
            let details = Some("{\"parameter\":\"params\"}");
            return self.refuse_action(exchange, message, ErrorType::Validation, why, details);
        }
        if self.drain.is_some() {
            let answer = exchange.answer_to(&self.config, &message, REVISION);
            answer.error(ErrorKind::ShuttingDown, "shutting down", None);
        } else if self.is_asking_too_fast(self.clock) {
            super::admission::refuse(exchange.answer_to(&self.config, &message, REVISION));
        } else if batch::is_one(&message) {
            self.begin_batch(exchange, turn.stream, frame, message, host);
        } else {
            let request = Incoming {
                message,
                method: Some(Method::CallTool),
                revision: REVISION,
            };
            let id = message.echo().unwrap_or(RequestId::NONE);
            self.admit(exchange, turn, request, (id, None), host);
        }
    }

    fn refuse_action(
        &self,
        exchange: &mut Exchange,
        message: MessageRef<'_>,
        kind: ErrorType,
        why: &str,
        details: Option<&str>,
    ) {
        let error = ActionError {
            details,
            ..ActionError::new(kind, why)
        };
        let answer = exchange.answer_to(&self.config, &message, REVISION);
        answer.action_error(&error);
    }

    /// Refuses an action longer than the limit; returns whether the frame was an action.
    pub(super) fn oversize_action(
        &self,
        exchange: &mut Exchange,
        head: Option<Frame<'_>>,
        why: &str,
    ) -> bool {
        let limit = format!("{{\"max_bytes\":{}}}", self.config.limits.max_message_bytes);
        let why = (ErrorType::Validation, why, Some(&*limit));
        self.unfinished_action(exchange, head, why)
    }

    /// Refuses an action of which only `head` was read; returns whether the frame was an action.
    pub(super) fn unfinished_action(
        &self,
        exchange: &mut Exchange,
        head: Option<Frame<'_>>,
        (kind, why, details): (ErrorType, &str, Option<&str>),
    ) -> bool {
        let begins = head.is_some_and(|head| {
            action::begins(head.bytes()) && action::is_of_no_other(head.bytes())
        });
        let said = exchange.speech.only.is_some() || exchange.speech.last || begins;
        let Some(head) = head.filter(|_| said && self.takes_actions()) else {
            return false;
        };
        let mut record = Record::new();
        // The action breaks off, so decoding fails; an id before the break is still of use.
        let _ = action::decode(head, self.config.limits.max_depth, &mut record);
        let envelope = record.as_call(exchange.speech.only.unwrap_or(Dialect::Action));
        let message = MessageRef::new(head, &envelope);
        self.refuse_action(exchange, message, kind, why, details);
        true
    }

    /// Writes the answer of a finished action, or continues the batch that it belongs to.
    pub(super) fn finish_action(
        &mut self,
        exchange: &mut Exchange,
        stream: super::StreamId,
        (id, underway): (OwnedId, Box<Underway>),
        frame: Encoded<'_>,
        host: &mut dyn Host,
    ) {
        let Underway {
            begun,
            version,
            batch,
            ..
        } = *underway;
        if let Some(mut run) = batch {
            run.note(&frame);
            return self.go_on(exchange, stream, run, host);
        }
        let metadata = AnswerMetadata {
            request_id: Some(id.as_ref().raw()).filter(|id| !id.is_empty()),
            server_id: self.config.implementation.name(),
            execution_time_ms: Some(self.elapsed_ms(begun)),
            protocol_version: version,
        };
        exchange.take_over_and(frame, |out| encode::close(out, metadata));
    }

    /// Ends an action whose time limit has passed with what `answer` writes.
    pub(super) fn overdue_action(
        &mut self,
        exchange: &mut Exchange,
        stream: super::StreamId,
        (id, underway): (OwnedId, Box<Underway>),
        answer: impl FnOnce(Answer<'_>),
        host: &mut dyn Host,
    ) {
        let (mut output, wire) = (Output::new(), Wire::plain());
        let envelope = Envelope::of_request(Dialect::ActionPart, &[]);
        let nobody = Message::from_bytes(Bytes::new(), envelope);
        answer(wire.answer(&mut output, &self.config, &nobody.as_ref(), REVISION));
        let said: Vec<u8> = output.take().flatten().collect();
        let open = said.strip_suffix(b"}\n").unwrap_or(&said);
        let open = match (
            underway.streamed,
            open.strip_prefix(b"{\"status\":\"error\""),
        ) {
            (true, Some(rest)) => [b"{\"type\":\"error\"", rest].concat(),
            _ => open.to_vec(),
        };
        self.finish_action(
            exchange,
            stream,
            (id, underway),
            Encoded::Copied(&open),
            host,
        );
    }

    fn elapsed_ms(&self, begun: Instant) -> u64 {
        self.clock.saturating_duration_since(begun).as_millis() as u64
    }
}

impl Entry {
    /// Makes this the entry of an action.
    pub fn of_action(mut self, underway: Underway) -> Self {
        self.action = Some(Box::new(underway));
        self
    }
}

/// Appends the metadata of an answer that is written at once, and its last brace.
pub(super) fn close_now(
    out: &mut Vec<u8>,
    implementation: &Implementation,
    message: &MessageRef<'_>,
    execution_time_ms: Option<u64>,
) {
    encode::close(
        out,
        AnswerMetadata {
            request_id: message.id().map(RequestId::raw),
            server_id: implementation.name(),
            execution_time_ms,
            protocol_version: agreed(message).ok().flatten(),
        },
    );
}

/// The protocol version in which to serve a request, as its answer spells it; `None` if the request
/// names none.
///
/// # Errors
/// A message and details if the version is not supported (R-ACT-38).
fn agreed(message: &MessageRef<'_>) -> Result<Option<&'static str>, (String, Option<String>)> {
    let Some(token) = message.raw_bytes(message::Field::ProtocolVersion) else {
        return Ok(None);
    };
    let oldest = message.decoded(action::OLDEST_VERSION);
    if let Some(known) = action::known(token).filter(|_| oldest.is_none()) {
        return Ok(Some(known));
    }
    let Some(said) = message.decoded(message::Field::ProtocolVersion) else {
        return Err(("protocol_version must be a string".into(), None));
    };
    let version = action::agree(&said, oldest.as_deref());
    match version.map_err(|why| (why.to_owned(), None))? {
        Some(version) => Ok(Some(version)),
        None => Err(not_spoken()),
    }
}

#[cold]
fn not_spoken() -> (String, Option<String>) {
    let supported = Version::SUPPORTED.map(|version| format!("\"{version}\""));
    let supported = supported.join(",");
    (
        "this version of the protocol is not spoken here".into(),
        Some(format!("{{\"supported\":[{supported}]}}")),
    )
}
