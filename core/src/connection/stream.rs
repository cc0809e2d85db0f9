//! One stream of a connection: its bytes in and out and the requests in flight on it.

use bytes::Bytes;

use super::actions::{Speech, Underway};
use super::admission::{Queue, Waiting};
use super::config::Config;
use super::host::Answer;
use super::overdue::Overdue;
use super::queue::Encoded;
use super::trace::{Direction, Trace};
use crate::buffer::{Input, Output};
use crate::correlate::{CancelToken, Incoming, IncomingKey, TimerKey};
use crate::frame::{Deframer, Framing, length, websocket};
use crate::mcp::revision::UnreadableId;
use crate::mcp::{Era, Revision};
use crate::message::{MessageRef, OwnedId, RequestId};

/// How frames leave on one stream.
#[derive(Debug)]
pub(crate) struct Wire {
    /// That of what the peer writes.
    pub framing: Framing,
    trace: Option<Trace>,
}

impl Wire {
    /// Nobody sees what goes out here.
    pub fn hide(&mut self) {
        self.trace = None;
    }

    /// Appends one framed message that `write` writes without its framing.
    pub fn append(&self, output: &mut Output, write: impl FnOnce(&mut Vec<u8>)) {
        output.append_with(|out| {
            let begin = out.len();
            match self.framing {
                Framing::Length => out.extend_from_slice(&[0; length::PREFIX_LEN]),
                Framing::WebSocket { .. } => websocket::reserve_head(out),
                Framing::Line | Framing::Detect | Framing::Whole => {}
            }
            let at = out.len();
            write(out);
            if let Some(trace) = &self.trace {
                trace.note(Direction::Out, &out[at..]);
            }
            match self.framing {
                Framing::Length => drop(length::fill_prefix(out, begin)),
                Framing::WebSocket { masked } => websocket::finish_message(out, begin, masked),
                Framing::Line | Framing::Detect | Framing::Whole => out.push(b'\n'),
            }
        });
    }

    /// For what is written and not sent.
    pub fn plain() -> Self {
        Self {
            framing: Framing::Whole,
            trace: None,
        }
    }

    /// A way to answer that request here and now.
    pub fn answer<'a>(
        &'a self,
        output: &'a mut Output,
        config: &'a Config,
        message: &MessageRef<'a>,
        revision: Revision,
    ) -> Answer<'a> {
        Answer {
            output,
            wire: self,
            id: message.echo().unwrap_or(RequestId::NONE),
            message: Some(*message),
            revision,
            config,
            watch: None,
        }
    }

    /// Queues one message that is encoded, without a copy when it is long.
    fn push(&self, output: &mut Output, frame: Bytes) {
        if let Some(trace) = &self.trace {
            trace.note(Direction::Out, &frame);
        }
        match self.framing {
            Framing::Line | Framing::Detect | Framing::Whole => {
                output.push(frame);
                output.append(b"\n");
            }
            Framing::Length => {
                if output.append_with(|out| length::append_prefix(out, frame.len())) {
                    output.push(frame);
                }
            }
            Framing::WebSocket { masked: false } => {
                output.append_with(|out| websocket::append_head(out, frame.len()));
                output.push(frame);
            }
            Framing::WebSocket { masked: true } => output.append_with(|out| {
                let begin = out.len();
                websocket::reserve_head(out);
                out.extend_from_slice(&frame);
                websocket::finish_message(out, begin, true);
            }),
        }
    }
}

/// What is known of a request in flight.
#[derive(Debug)]
pub(crate) struct Entry {
    pub cancel: CancelToken,
    /// The request itself, while it has not begun.
    pub waiting: Option<Box<Waiting>>,
    /// The newest progress notification that back-pressure held back (R-PRG-05).
    pub held: Option<Box<[u8]>>,
    /// What happens if it is not answered in time.
    pub limit: Option<(TimerKey, Overdue)>,
    /// What an action has beside all that.
    pub action: Option<Box<Underway>>,
}

impl Entry {
    pub fn new(cancel: CancelToken, waiting: Option<Box<Waiting>>) -> Self {
        Self {
            cancel,
            waiting,
            held: None,
            limit: None,
            action: None,
        }
    }
}

/// The reading half.
#[derive(Debug)]
pub(crate) struct Reading {
    pub input: Input,
    pub deframer: Deframer,
    pub ended: bool,
}

/// The writing half, and what is in flight.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub output: Output,
    pub wire: Wire,
    pub incoming: Incoming<OwnedId, Entry>,
    /// Requests that have not begun.
    pub waiting: Queue,
    /// Requests whose newest progress is held back; those that have ended are still here.
    pub held: Vec<IncomingKey>,
    /// The form of an error's id when a frame's id cannot be read: that of the last envelope.
    pub unreadable: UnreadableId,
    /// Which of the languages is spoken.
    pub speech: Speech,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub reading: Reading,
    pub exchange: Exchange,
}

impl Reading {
    fn new(framing: Framing, config: &Config) -> Self {
        Self {
            input: Input::new(),
            deframer: Deframer::new(framing, config.limits.max_message_bytes),
            ended: false,
        }
    }
}

/// The form of an error's id before there is an envelope.
fn unreadable(config: &Config) -> UnreadableId {
    match config.revisions.newest(Era::Handshake) {
        Some(_) => UnreadableId::Null,
        None => UnreadableId::Omitted,
    }
}

impl Stream {
    pub fn new(framing: Framing, config: &Config) -> Self {
        Self {
            reading: Reading::new(framing, config),
            exchange: Exchange {
                output: Output::new(),
                wire: Wire {
                    framing,
                    trace: config.trace.clone(),
                },
                // Bounded by what they hold: `max_incoming` and `waiting_cap_bytes`.
                incoming: Incoming::new(usize::MAX),
                waiting: Queue::default(),
                held: Vec::new(),
                unreadable: unreadable(config),
                speech: Speech::default(),
            },
        }
    }

    /// Makes it as good as new, if nothing waits on it in either direction.
    #[cfg(feature = "http")]
    pub fn renew(&mut self, framing: Framing, config: &Config) -> bool {
        let Self { reading, exchange } = self;
        let blank = exchange.incoming.is_empty()
            && exchange.waiting.is_empty()
            && exchange.output.is_empty();
        if blank {
            *reading = Reading::new(framing, config);
            exchange.held.clear();
            exchange.wire.framing = framing;
            exchange.unreadable = unreadable(config);
            exchange.speech = Speech::default();
        }
        blank
    }
}

impl Exchange {
    /// Its one request is answered: nothing follows (R-HTP-08).
    pub fn is_over(&self) -> bool {
        self.wire.framing == Framing::Whole && self.incoming.is_empty()
    }

    /// A way to answer that request here and now.
    pub fn answer<'a>(
        &'a mut self,
        config: &'a Config,
        id: RequestId<'a>,
        revision: Revision,
    ) -> Answer<'a> {
        Answer {
            output: &mut self.output,
            wire: &self.wire,
            id,
            message: None,
            revision,
            config,
            watch: None,
        }
    }

    /// The same for a request in whichever language it came.
    pub fn answer_to<'a>(
        &'a mut self,
        config: &'a Config,
        message: &MessageRef<'a>,
        revision: Revision,
    ) -> Answer<'a> {
        self.wire
            .answer(&mut self.output, config, message, revision)
    }

    /// Appends one frame.
    pub fn append(&mut self, frame: &[u8]) {
        self.wire.append(&mut self.output, |out| {
            out.reserve(frame.len() + 1);
            out.extend_from_slice(frame);
        });
    }

    /// Appends a frame that was submitted.
    pub fn take_over(&mut self, frame: Encoded<'_>) {
        match frame {
            Encoded::Copied(frame) => self.append(frame),
            Encoded::Own(frame) => self.wire.push(&mut self.output, frame),
        }
    }

    /// The same for one that `end` brings to its end.
    pub fn take_over_and(&mut self, frame: Encoded<'_>, end: impl FnOnce(&mut Vec<u8>)) {
        match frame {
            Encoded::Copied(frame) => self.write(|out| {
                out.reserve(frame.len() + 128);
                out.extend_from_slice(frame);
                end(out);
            }),
            Encoded::Own(frame) => {
                let mut whole = Vec::from(frame);
                end(&mut whole);
                self.wire.push(&mut self.output, whole.into());
            }
        }
    }

    /// Appends one frame that `write` writes.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.wire.append(&mut self.output, write);
    }
}
