//! One stream of a connection: its bytes in and out, and the requests in flight on it.

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

/// Frames the output of one stream.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The framing that the peer uses.
    pub framing: Framing,
    trace: Option<Trace>,
}

impl Wire {
    /// Turns off tracing for this stream.
    pub fn hide(&mut self) {
        self.trace = None;
    }

    /// Appends one message, which `write` writes, with its framing.
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

    /// A wire for frames that are encoded but not sent.
    pub fn plain() -> Self {
        Self {
            framing: Framing::Whole,
            trace: None,
        }
    }

    /// Returns what answers the request immediately.
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
            interceptor: None,
        }
    }

    /// Queues one encoded message; a long one without a copy.
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

/// State of a request in flight.
#[derive(Debug)]
pub(crate) struct Entry {
    pub cancel: CancelToken,
    /// The request itself, while it waits to begin.
    pub waiting: Option<Box<Waiting>>,
    /// The newest progress notification that back-pressure held back (R-PRG-05).
    pub held: Option<Box<[u8]>>,
    /// The time limit of its handler: the timer, and how to answer when it fires.
    pub limit: Option<(TimerKey, Overdue)>,
    /// Further state of an action.
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

/// The reading half of a stream.
#[derive(Debug)]
pub(crate) struct Reading {
    pub input: Input,
    pub deframer: Deframer,
    pub ended: bool,
}

/// The writing half of a stream, and its requests in flight.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub output: Output,
    pub wire: Wire,
    pub incoming: Incoming<OwnedId, Entry>,
    /// Requests that wait to begin.
    pub waiting: Queue,
    /// Requests whose newest progress is held back; may still contain requests that have ended.
    pub held: Vec<IncomingKey>,
    /// The form of an error's id when a frame's id cannot be read, according to the last envelope.
    pub unreadable: UnreadableId,
    /// State of the dialects spoken on this stream.
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

/// The form of an error's id before the first envelope.
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
                // Bounded elsewhere: by `max_incoming` and `waiting_cap_bytes`.
                incoming: Incoming::new(usize::MAX),
                waiting: Queue::default(),
                held: Vec::new(),
                unreadable: unreadable(config),
                speech: Speech::default(),
            },
        }
    }

    /// Resets the stream if nothing waits on it in either direction; returns whether it was reset.
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
    /// Whether the stream carries a single message whose requests are all answered: nothing may follow
    /// then (R-HTP-08).
    pub fn is_over(&self) -> bool {
        self.wire.framing == Framing::Whole && self.incoming.is_empty()
    }

    /// Returns what answers the request immediately.
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
            interceptor: None,
        }
    }

    /// Returns what answers a request of any dialect immediately.
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

    /// Appends a submitted frame.
    pub fn take_over(&mut self, frame: Encoded<'_>) {
        match frame {
            Encoded::Copied(frame) => self.append(frame),
            Encoded::Own(frame) => self.wire.push(&mut self.output, frame),
        }
    }

    /// Appends a submitted frame that `end` completes.
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
