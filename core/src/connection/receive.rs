//! Splits the bytes of one stream into messages and handles each.

use std::mem;

use bytes::Bytes;

use super::actions::{
    self, Reading as ActionReading, Refusal,
    client::{self as action_client, ClientReading},
};
use super::call::Batch;
use super::cancelled::cancel_elsewhere;
use super::core::Core;
use super::host::{Host, Stray};
use super::incoming::{RETRY_AFTER, Started};
use super::keys::StreamId;
use super::messages::{Pass, kind_of};
use super::observer::RequestOutcome;
use super::stream::{Exchange, Reading, Stream};
use super::streams::Streams;
use super::trace::Direction;
use crate::action::{self, ErrorType};
use crate::error::RequestError;
use crate::frame::{Event, Framing};
use crate::limits::{COPY_OUT_BYTES, SMALL_BYTES};
use crate::mcp::{ErrorKind, Method, Side};
use crate::message::{self, Envelope, Fault, Frame, Kind, Message, MessageRef};

/// Handles what was read of a stream.
pub(super) fn receive(core: &mut Core, streams: &mut Streams, id: StreamId, host: &mut dyn Host) {
    let Some(Stream { reading, exchange }) = streams.get_mut(id) else {
        return;
    };
    core.liveness.note(core.clock);
    let mut pass = Pass::new(core, host, id);
    let mut envelope = Envelope::new();
    exchange.framer.framing = reading.deframer.framing(reading.input.filled());
    while let Some(event) = reading.deframer.next(reading.input.filled()) {
        match event {
            Event::Frame(range) => {
                pass.started.at = range.start;
                let buf = reading.input.padded().get(range.start..);
                if let Some(frame) = buf.and_then(|buf| Frame::new(buf, range.len())) {
                    frame_arrived(&mut pass, exchange, frame, &mut envelope);
                }
            }
            Event::Oversize { prefix } => {
                let head = reading.input.padded().get(prefix.start..);
                let head = head.and_then(|buf| Frame::new(buf, prefix.len()));
                oversize(&mut pass, exchange, head);
            }
        }
    }
    pass.started.at = reading.deframer.drain();
    let elsewhere = mem::take(&mut pass.elsewhere);
    finish(pass, reading);
    for cancel in elsewhere {
        cancel_elsewhere(core, streams, cancel, host);
    }
}

/// Handles the end of the input. Accepts a complete last message without its terminator (R-STD-03).
pub(super) fn end(core: &mut Core, streams: &mut Streams, id: StreamId, host: &mut dyn Host) {
    let Some(Stream { reading, exchange }) = streams.get_mut(id) else {
        return;
    };
    if reading.ended {
        return;
    }
    let framing = exchange.framer.framing;
    if framing == Framing::Whole {
        reading.deframer.end();
        receive(core, streams, id, host);
    } else if matches!(framing, Framing::Line | Framing::Detect)
        && !reading.input.filled().iter().all(u8::is_ascii_whitespace)
    {
        reading.input.extend(b"\n");
        receive(core, streams, id, host);
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
        crowded_out(&mut Pass::new(core, host, id), exchange, head);
        input.consume(reading.deframer.drain());
    }
    input.shrink();
}

/// Ends the pass: takes the bytes of what was collected out of the input, completes the answers and
/// dispatches the requests.
fn finish(pass: Pass<'_>, reading: &mut Reading) {
    let Pass {
        core,
        host,
        started: Started { records, at, .. },
        answers,
        ..
    } = pass;
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

/// Handles one frame of a stream.
fn frame_arrived(
    pass: &mut Pass<'_>,
    exchange: &mut Exchange,
    frame: Frame<'_>,
    envelope: &mut Envelope,
) {
    let config = &pass.core.config;
    if let Some(trace) = &config.trace {
        trace.note(Direction::In, frame.bytes());
    }
    if action_client::is_one(config) {
        return action_answered(pass, frame);
    }
    let may_be_action = actions::are_served(config);
    if may_be_action
        && (exchange.dialects.only.is_some() || action::begins(frame.bytes()))
        && is_action(pass, exchange, frame, true)
    {
        return;
    }
    let decoded = message::decode(frame, pass.core.config.limits.max_depth, envelope);
    if may_be_action
        && (decoded.is_err() || envelope.kind() == Kind::Invalid)
        && !actions::has_rpc_member(envelope)
    {
        let certain = exchange.dialects.last;
        if is_action(pass, exchange, frame, certain) {
            return;
        }
    }
    exchange.dialects.last = false;
    match decoded {
        Ok(()) if envelope.kind() == Kind::Batch => batch(pass, exchange, frame),
        Ok(()) => message_arrived(pass, exchange, MessageRef::new(frame, envelope)),
        Err(error) => {
            pass.stray(Stray::BadFrame, frame.bytes());
            // The error carries the request's id if it stood whole before the fault.
            let message = MessageRef::new(frame, envelope);
            pass.bad_answer(message, "it is not JSON");
            if pass.core.config.side == Side::Server && envelope.invites_answer() {
                let why = error.to_string();
                pass.refuse(exchange, message.id(), (kind_of(error.code()), &why, None));
            }
        }
    }
}

fn message_arrived(pass: &mut Pass<'_>, exchange: &mut Exchange, message: MessageRef<'_>) {
    match message.kind() {
        Kind::Request => pass.request(exchange, message, None),
        Kind::Notification => pass.notification(exchange, message),
        Kind::Response | Kind::Error => pass.answer(exchange, message),
        Kind::Batch | Kind::Invalid => {
            pass.stray(Stray::BadFrame, message.bytes());
            let fault = message.envelope().fault().unwrap_or(Fault::UnknownShape);
            if fault != Fault::DuplicateMember {
                pass.bad_answer(message, fault.message());
            }
            if pass.core.config.side == Side::Server && message.envelope().invites_answer() {
                let error = (kind_of(fault.code()), fault.message(), None);
                pass.refuse(exchange, message.id(), error);
            }
        }
    }
}

/// Handles a JSON array: a batch if the revision has batches, else an invalid message (R-BAT).
fn batch(pass: &mut Pass<'_>, exchange: &mut Exchange, frame: Frame<'_>) {
    let revision = pass.core.handle.revision();
    let allowed = revision.is_some_and(|revision| revision.rules().batches);
    let limits = &pass.core.config.limits;
    let (max_len, max_depth) = (limits.max_batch_len, limits.max_depth);
    let elements = message::batch(frame);
    let count = elements.clone().take(max_len + 1).count();
    // A client does not answer what may not be part of a batch.
    let reject = |pass: &mut Pass<'_>, exchange: &mut Exchange, message: MessageRef<'_>, why| {
        pass.stray(Stray::BadFrame, message.bytes());
        if pass.core.config.side == Side::Server {
            let error = (ErrorKind::InvalidRequest, why, None);
            pass.refuse(exchange, message.id(), error);
        }
    };
    let why = match (allowed, count) {
        (false, _) => Some("batches are not part of this protocol revision"),
        (true, 0) => Some("an empty batch"),
        (true, count) => (count > max_len).then_some("too many messages in one batch"),
    };
    if let Some(why) = why {
        let nameless = Envelope::new();
        return reject(pass, exchange, MessageRef::new(frame, &nameless), why);
    }
    let begin = pass.started.at;
    for element in elements {
        let offset = element.padded().as_ptr() as usize - frame.padded().as_ptr() as usize;
        pass.started.at = begin + offset;
        let mut envelope = Envelope::new();
        if message::decode(element, max_depth, &mut envelope).is_err() {
            continue;
        }
        let message = MessageRef::new(element, &envelope);
        let method = message.method().and_then(|method| Method::parse(&method));
        if method == Some(Method::Initialize) {
            // R-BAT-03
            reject(pass, exchange, message, "initialize stands alone");
        } else if envelope.kind() == Kind::Batch {
            reject(pass, exchange, message, "a batch within a batch");
        } else {
            message_arrived(pass, exchange, message);
        }
    }
    pass.started.at = begin;
}

/// Handles a frame as an action, if it is one. `certain` says that nothing else would answer it.
fn is_action(
    pass: &mut Pass<'_>,
    exchange: &mut Exchange,
    frame: Frame<'_>,
    certain: bool,
) -> bool {
    let config = &pass.core.config;
    let mut envelope = Envelope::new();
    let decoded = action::decode(frame, config.limits.max_depth, &mut envelope);
    let dialect = actions::dialect_of(exchange.dialects, frame, &envelope, decoded.is_err());
    let Some(dialect) = dialect else {
        return false;
    };
    envelope.set_dialect(dialect);
    let message = MessageRef::new(frame, &envelope);
    match actions::judge(config, decoded, &message, certain) {
        ActionReading::Other => return false,
        ActionReading::Answer => pass.stray(Stray::Answer, frame.bytes()),
        ActionReading::Request(version) => {
            exchange.dialects.last = true;
            pass.act(exchange, message, version);
        }
        ActionReading::Refused { refusal, is_bad } => {
            exchange.dialects.last = true;
            if is_bad {
                pass.stray(Stray::BadFrame, frame.bytes());
            }
            pass.refuse_action(exchange, &message, &refusal);
        }
    }
    true
}

/// Handles a frame from a server of the action dialect.
#[cold]
fn action_answered(pass: &mut Pass<'_>, frame: Frame<'_>) {
    let core = &mut *pass.core;
    let (pending, now) = (&mut core.pending, core.clock);
    let (key, is_answer) = match action_client::read(&core.config, frame, pending, now) {
        ClientReading::Part => return,
        ClientReading::Stray => return pass.stray(Stray::Answer, frame.bytes()),
        ClientReading::Answer(key, is_answer) => (key, is_answer),
    };
    let outcome = match is_answer {
        Ok(_) => {
            let block = Bytes::copy_from_slice(frame.bytes());
            Ok(Message::from_bytes(block, Envelope::default()))
        }
        Err(why) => Err(RequestError::BadAnswer(why)),
    };
    let bytes = frame.bytes().len();
    core.pending.end(key, || {
        (is_answer.unwrap_or(RequestOutcome::BadAnswer), bytes)
    });
    if core.shared().outgoing.complete(key, outcome).is_err() {
        pass.stray(Stray::Answer, frame.bytes());
    }
}

/// Refuses a message longer than the limit; the rest of it is discarded as it arrives.
fn oversize(pass: &mut Pass<'_>, exchange: &mut Exchange, head: Option<Frame<'_>>) {
    let limit = pass.core.config.limits.max_message_bytes;
    let why = format!("the message is longer than {limit} bytes");
    let in_actions = Refusal {
        kind: ErrorType::Validation,
        why: why.clone().into(),
        details: Some(format!("{{\"max_bytes\":{limit}}}")),
    };
    let error = (ErrorKind::InvalidRequest, &*why, None);
    refuse_unfinished(pass, exchange, head, &in_actions, error, "it is too long");
}

/// Refuses a message that has not fully arrived because there is no room for the rest, which is
/// discarded as it arrives.
fn crowded_out(pass: &mut Pass<'_>, exchange: &mut Exchange, head: Option<Frame<'_>>) {
    let why = "there is no room for a message of this length now: try again later";
    let in_actions = Refusal {
        kind: ErrorType::RateLimitExceeded,
        why: why.into(),
        details: Some("{\"retry_after_seconds\":1}".into()),
    };
    let error = (ErrorKind::Overloaded, why, Some(RETRY_AFTER));
    let of_answer = "there is no room for it";
    refuse_unfinished(pass, exchange, head, &in_actions, error, of_answer);
}

/// Refuses a message of which only `head` was read. `of_answer` is what is wrong if it is an answer.
fn refuse_unfinished(
    pass: &mut Pass<'_>,
    exchange: &mut Exchange,
    head: Option<Frame<'_>>,
    in_actions: &Refusal,
    error: (ErrorKind, &str, Option<&str>),
    of_answer: &'static str,
) {
    pass.stray(Stray::Oversize, b"");
    let mut envelope = Envelope::new();
    let config = &pass.core.config;
    if actions::read_unfinished(config, exchange.dialects, head, &mut envelope)
        && let Some(head) = head
    {
        return pass.refuse_action(exchange, &MessageRef::new(head, &envelope), in_actions);
    }
    if let Some(head) = head {
        // The message breaks off, so decoding fails; the members before the break are still of use.
        let _ = message::decode(head, config.limits.max_depth, &mut envelope);
        pass.bad_answer(MessageRef::new(head, &envelope), of_answer);
    }
    if pass.core.config.side == Side::Server && envelope.invites_answer() {
        let id = head.and_then(|head| MessageRef::new(head, &envelope).id());
        pass.refuse(exchange, id, error);
    }
}
