//! Splits the bytes of one stream into messages and handles each.

use std::time::Instant;

use super::admission::RETRY_AFTER;
use super::core::Core;
use super::host::{Batch, Host, Record, Stray, StreamId};
use super::interceptor;
use super::session::Elsewhere;
use super::stream::{Exchange, Stream};
use super::streams::Streams;
use super::trace::Direction;
use crate::action::ErrorType;
use crate::correlate::RequestKey;
use crate::frame::{Event, Framing};
use crate::json::DecodeError;
use crate::limits::{COPY_OUT_BYTES, SMALL_BYTES};
use crate::mcp::profile::Failure;
use crate::mcp::{ErrorKind, Method, Revision, Side, revision::UnreadableId};
use crate::message::{
    self, Envelope, Fault, Frame, Kind, Message, MessageRef,
    encode::{self, ErrorId},
};

/// What one pass over the input collects, to be processed at its end.
#[derive(Default)]
pub(super) struct Turn {
    pub stream: StreamId,
    /// Deferred requests. Their frames are ranges of the input, counted from the start of the pass.
    pub records: Vec<Record>,
    /// Large answers: key, start, length, envelope. They leave with the block instead of being copied.
    pub answers: Vec<(RequestKey, usize, usize, Envelope)>,
    /// Cancellations of requests that are not in flight on this stream.
    pub elsewhere: Vec<Elsewhere>,
    /// Start of the current frame in the input.
    pub at: usize,
}

pub(super) fn receive(
    core: &mut Core,
    streams: &mut Streams,
    id: StreamId,
    now: Instant,
    host: &mut dyn Host,
) {
    let Some(Stream { reading, exchange }) = streams.get_mut(id) else {
        return;
    };
    core.liveness.note(now);
    let mut turn = Turn {
        stream: id,
        ..Turn::default()
    };
    let mut envelope = Envelope::new();
    exchange.wire.framing = reading.deframer.framing(reading.input.filled());
    while let Some(event) = reading.deframer.next(reading.input.filled()) {
        match event {
            Event::Frame(range) => {
                turn.at = range.start;
                let buf = reading.input.padded().get(range.start..);
                if let Some(frame) = buf.and_then(|buf| Frame::new(buf, range.len())) {
                    core.frame(exchange, &mut turn, (frame, &mut envelope), now, host);
                }
            }
            Event::Oversize { prefix } => {
                let head = reading.input.padded().get(prefix.start..);
                let head = head.and_then(|buf| Frame::new(buf, prefix.len()));
                core.oversize(exchange, head, host);
            }
        }
    }
    turn.at = reading.deframer.drain();
    let elsewhere = std::mem::take(&mut turn.elsewhere);
    finish(core, reading, turn, host);
    for cancel in elsewhere {
        core.cancel_elsewhere(streams, cancel, host);
    }
}

/// Handles the end of the input. Accepts a complete last message without its terminator (R-STD-03).
pub(super) fn end(
    core: &mut Core,
    streams: &mut Streams,
    id: StreamId,
    now: Instant,
    host: &mut dyn Host,
) {
    let Some(Stream { reading, exchange }) = streams.get_mut(id) else {
        return;
    };
    if reading.ended {
        return;
    }
    let framing = exchange.wire.framing;
    if framing == Framing::Whole {
        reading.deframer.end();
        receive(core, streams, id, now, host);
    } else if matches!(framing, Framing::Line | Framing::Detect)
        && !reading.input.filled().iter().all(u8::is_ascii_whitespace)
    {
        reading.input.extend(b"\n");
        receive(core, streams, id, now, host);
    }
    if let Some(Stream { reading, .. }) = streams.get_mut(id) {
        reading.ended = true;
    }
}

/// Makes room when all connections together hold too much: refuses a large message that has not fully
/// arrived, and shrinks the input buffer.
#[cold]
pub(super) fn give_way(core: &mut Core, streams: &mut Streams, id: StreamId, host: &mut dyn Host) {
    let Some(Stream { reading, exchange }) = streams.get_mut(id) else {
        return;
    };
    let input = &mut reading.input;
    if input.len() > SMALL_BYTES {
        let Some(prefix) = reading.deframer.give_up(input.filled()) else {
            return;
        };
        let head = input.padded().get(prefix.start..);
        let head = head.and_then(|buf| Frame::new(buf, prefix.len()));
        core.crowded_out(exchange, head, host);
        input.consume(reading.deframer.drain());
    }
    input.shrink();
}

/// Ends the pass: takes the bytes of what was collected out of the input, completes the answers and
/// dispatches the requests.
fn finish(core: &mut Core, reading: &mut super::stream::Reading, turn: Turn, host: &mut dyn Host) {
    let Turn {
        records,
        answers,
        at,
        ..
    } = turn;
    if records.is_empty() && answers.is_empty() {
        return reading.input.consume(at);
    }
    let held = reading.input.held();
    // A stream that carries a single message hands over its block without a copy.
    let block = if at > COPY_OUT_BYTES || reading.deframer.is_whole() {
        let block = reading.input.take_block(at);
        core.config.budget.counted(block, held)
    } else {
        let block = reading.input.copy_block(at);
        reading.input.consume(at);
        core.config.budget.counted(block, at)
    };
    for (key, start, len, envelope) in answers {
        let Some(message) = Message::from_block(block.slice(start..), len, envelope) else {
            continue;
        };
        if core.shared().outgoing.complete(key, Ok(message)).is_err() {
            core.stray(Stray::Answer, b"", host);
        }
    }
    if !records.is_empty() {
        host.dispatch(Batch { block, records });
    }
}

impl Core {
    /// Handles one frame of a stream.
    fn frame(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        (frame, envelope): (Frame<'_>, &mut Envelope),
        now: Instant,
        host: &mut dyn Host,
    ) {
        if let Some(trace) = &self.config.trace {
            trace.note(Direction::In, frame.bytes());
        }
        if self.asks_in_actions() {
            return self.action_answered(frame, now, host);
        }
        if self.is_action(exchange, turn, frame, host) {
            return;
        }
        let decoded = message::decode(frame, self.config.limits.max_depth, envelope);
        if (decoded.is_err() || envelope.kind() == Kind::Invalid)
            && self.is_action_after_all(exchange, turn, (frame, envelope), host)
        {
            return;
        }
        exchange.speech.last = false;
        match decoded {
            Ok(()) if envelope.kind() == Kind::Batch => {
                self.batch(exchange, turn, frame, now, host)
            }
            Ok(()) => self.message(exchange, turn, MessageRef::new(frame, envelope), now, host),
            Err(error) => {
                self.stray(Stray::BadFrame, frame.bytes(), host);
                self.syntax_error(exchange, frame, envelope, error);
            }
        }
    }

    fn message(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        message: MessageRef<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        match message.kind() {
            Kind::Request => self.request(exchange, turn, message, now, host),
            Kind::Notification => self.notification(exchange, turn, message, now, host),
            Kind::Response | Kind::Error => self.answer(exchange, turn, message, now, host),
            Kind::Batch | Kind::Invalid => {
                self.stray(Stray::BadFrame, message.bytes(), host);
                let fault = message.envelope().fault().unwrap_or(Fault::UnknownShape);
                if fault != Fault::DuplicateMember {
                    self.bad_answer(message, fault.message());
                }
                if self.config.side == Side::Server && message.envelope().invites_answer() {
                    self.refuse(exchange, message.id(), fault.code().into(), fault.message());
                }
            }
        }
    }

    /// Handles a JSON array: a batch if the revision has batches, else an invalid message (R-BAT).
    fn batch(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        frame: Frame<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let allowed = self
            .handle
            .revision()
            .is_some_and(|revision| revision.rules().batches);
        let elements = message::batch(frame);
        let count = elements
            .clone()
            .take(self.config.limits.max_batch_len + 1)
            .count();
        if !allowed || count == 0 || count > self.config.limits.max_batch_len {
            self.stray(Stray::BadFrame, frame.bytes(), host);
            if self.config.side == Side::Server {
                let why = match (allowed, count) {
                    (false, _) => "batches are not part of this protocol revision",
                    (true, 0) => "an empty batch",
                    _ => "too many messages in one batch",
                };
                self.refuse(exchange, None, Fault::NotAnObject.code().into(), why);
            }
            return;
        }
        let begin = turn.at;
        for element in elements {
            turn.at =
                begin + (element.padded().as_ptr() as usize - frame.padded().as_ptr() as usize);
            let mut envelope = Envelope::new();
            if message::decode(element, self.config.limits.max_depth, &mut envelope).is_err() {
                continue;
            }
            let message = MessageRef::new(element, &envelope);
            let method = message.method().and_then(|method| Method::parse(&method));
            if method == Some(Method::Initialize) {
                // R-BAT-03
                self.reject(exchange, &message, "initialize stands alone", host);
            } else if envelope.kind() == Kind::Batch {
                self.reject(exchange, &message, "a batch within a batch", host);
            } else {
                self.message(exchange, turn, message, now, host);
            }
        }
        turn.at = begin;
    }

    /// Refuses an element that may not be part of a batch. A client does not answer it.
    fn reject(
        &self,
        exchange: &mut Exchange,
        message: &MessageRef<'_>,
        why: &str,
        host: &mut dyn Host,
    ) {
        self.stray(Stray::BadFrame, message.bytes(), host);
        if self.config.side == Side::Server {
            let code = Fault::UnknownShape.code().into();
            self.refuse(exchange, message.id(), code, why);
        }
    }

    /// Answers broken JSON. The error carries the request's id if it stood whole before the fault.
    fn syntax_error(
        &mut self,
        exchange: &mut Exchange,
        frame: Frame<'_>,
        envelope: &Envelope,
        error: DecodeError,
    ) {
        self.bad_answer(MessageRef::new(frame, envelope), "it is not JSON");
        if self.config.side == Side::Client || !envelope.invites_answer() {
            return;
        }
        let id = MessageRef::new(frame, envelope).id();
        self.refuse(exchange, id, error.code().into(), &error.to_string());
    }

    /// Refuses a message longer than the limit; the rest of it is discarded as it arrives.
    fn oversize(&mut self, exchange: &mut Exchange, head: Option<Frame<'_>>, host: &mut dyn Host) {
        self.stray(Stray::Oversize, b"", host);
        let limit = self.config.limits.max_message_bytes;
        let why = format!("the message is longer than {limit} bytes");
        if self.oversize_action(exchange, head, &why) {
            return;
        }
        let mut envelope = Envelope::new();
        if let Some(head) = head {
            // The message breaks off, so decoding fails; the members before the break are still of use.
            let _ = message::decode(head, self.config.limits.max_depth, &mut envelope);
            self.bad_answer(MessageRef::new(head, &envelope), "it is too long");
        }
        if self.config.side == Side::Server && envelope.invites_answer() {
            let id = head.and_then(|head| MessageRef::new(head, &envelope).id());
            let code = ErrorKind::InvalidRequest.code(self.fallback());
            self.refuse(exchange, id, code, &why);
        }
    }

    /// Refuses a message that has not fully arrived because there is no room for the rest, which is
    /// discarded as it arrives.
    fn crowded_out(
        &mut self,
        exchange: &mut Exchange,
        head: Option<Frame<'_>>,
        host: &mut dyn Host,
    ) {
        self.stray(Stray::Oversize, b"", host);
        let why = "there is no room for a message of this length now: try again later";
        let details = Some("{\"retry_after_seconds\":1}");
        let kind = ErrorType::RateLimitExceeded;
        if self.unfinished_action(exchange, head, (kind, why, details)) {
            return;
        }
        let mut envelope = Envelope::new();
        if let Some(head) = head {
            // The message breaks off, so decoding fails; the members before the break are still of use.
            let _ = message::decode(head, self.config.limits.max_depth, &mut envelope);
            self.bad_answer(MessageRef::new(head, &envelope), "there is no room for it");
        }
        if self.config.side == Side::Server && envelope.invites_answer() {
            let id = head.and_then(|head| MessageRef::new(head, &envelope).id());
            self.refuse_kind(
                exchange,
                id,
                (ErrorKind::Overloaded, why, Some(RETRY_AFTER)),
            );
        }
    }

    /// Answers a frame that cannot be served as a request with an error.
    pub(super) fn refuse(
        &self,
        exchange: &mut Exchange,
        id: Option<message::RequestId<'_>>,
        code: i64,
        why: &str,
    ) {
        let kind = [
            ErrorKind::Parse,
            ErrorKind::InvalidRequest,
            ErrorKind::InvalidParams,
        ]
        .into_iter()
        .find(|kind| kind.code(self.fallback()) == code);
        match kind {
            Some(kind) => self.refuse_kind(exchange, id, (kind, why, None)),
            None => {
                let id = error_id(exchange, id);
                exchange.write(|out| encode::error(out, id, code, why, None));
            }
        }
    }

    fn refuse_kind(
        &self,
        exchange: &mut Exchange,
        id: Option<message::RequestId<'_>>,
        (kind, why, data): (ErrorKind, &str, Option<&str>),
    ) {
        let id = error_id(exchange, id);
        let failure = Failure {
            kind,
            about: "",
            why,
            data,
        };
        let spelt = self.config.profile.spell(self.fallback(), failure);
        exchange.write(|out| interceptor::write(out, id, &spelt));
    }

    pub(super) fn stray(&self, what: Stray, frame: &[u8], host: &mut dyn Host) {
        self.shared()
            .strays
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        host.stray(what, frame);
    }

    /// The revision in which to word an error when the frame names none.
    pub(super) fn fallback(&self) -> Revision {
        self.handle.revision().unwrap_or(Revision::V2025_11_25)
    }
}

/// The form of an error's id, for a request whose id is known (`Some`) or unreadable (`None`).
fn error_id<'a>(exchange: &Exchange, id: Option<message::RequestId<'a>>) -> ErrorId<'a> {
    match (id, exchange.unreadable) {
        (Some(id), _) => ErrorId::Id(id),
        (None, UnreadableId::Null) => ErrorId::Null,
        (None, UnreadableId::Omitted) => ErrorId::Omit,
    }
}
