//! One stream of a connection: its bytes in and out, and the requests in flight on it.

use std::sync::Arc;
use std::time::Instant;

use super::actions::DialectState;
use super::answer::{Answer, Asked, Destination};
use super::batches::Batches;
use super::channel::Channel;
use super::config::Config;
use super::framer::Framer;
use super::keys::Member;
use super::observed::Observed;
use super::queue::LateAnswer;
use super::reply::{self, Closing};
use super::submitted_frame::Encoded;
use super::waiting::{Waiting, WaitingQueue};
use crate::buffer::{Input, Output};
use crate::correlate::{CancelToken, InFlight, IncomingKey, TimerKey};
use crate::frame::{Deframer, Framing};
use crate::mcp::profile::Spelt;
use crate::mcp::revision::UnreadableId;
use crate::mcp::{Era, Revision};
use crate::message::encode::ErrorId;
use crate::message::{Dialect, OwnedId, RequestId};

/// State of a request in flight.
#[derive(Debug)]
pub(crate) struct Entry {
    pub cancel: CancelToken,
    /// The request itself, while it waits to begin.
    pub waiting: Option<Box<Waiting>>,
    /// The newest progress notification that back-pressure held back (R-PRG-05).
    pub held: Option<Box<[u8]>>,
    /// The time limit of its handler: the timer, and how to answer when it fires.
    pub limit: Option<(TimerKey, LateAnswer)>,
    /// How the answer is completed, unless that is clear from the id.
    pub completion: Option<Box<Completion>>,
    /// The observer of the request, if it has one.
    pub observed: Option<Box<Observed>>,
}

/// How the answer to an action, or to a member of a batch, is completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub dialect: Dialect,
    pub begun: Instant,
    pub version: Option<&'static str>,
    pub member: Option<Member>,
}

impl Completion {
    /// `None` for a request of JSON-RPC that stands alone.
    #[inline]
    pub fn of(asked: &Asked<'_>, begun: Instant) -> Option<Box<Self>> {
        (asked.dialect != Dialect::Rpc || asked.member.is_some()).then(|| {
            Box::new(Self {
                dialect: asked.dialect,
                begun,
                version: asked.closing.version,
                member: asked.member,
            })
        })
    }

    /// The end of the answer if it is written `now`.
    pub fn closing(&self, now: Instant) -> Closing {
        let elapsed = now.saturating_duration_since(self.begun);
        Closing {
            version: self.version,
            elapsed_ms: Some(u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX)),
        }
    }
}

impl Entry {
    #[inline]
    pub fn new(cancel: CancelToken, completion: Option<Box<Completion>>) -> Self {
        Self {
            cancel,
            waiting: None,
            held: None,
            limit: None,
            completion,
            observed: None,
        }
    }

    /// The place in a batch, if the request is a member of one.
    pub fn member(&self) -> Option<Member> {
        self.completion.as_ref()?.member
    }

    /// The parts of the request that an immediate answer depends on.
    pub fn asked<'a>(
        &self,
        id: RequestId<'a>,
        revision: Revision,
        now: Option<Instant>,
    ) -> Asked<'a> {
        let mut asked = Asked::rpc(id, revision);
        if let Some(completion) = &self.completion {
            asked.dialect = completion.dialect;
            asked.member = completion.member;
            asked.closing = match now {
                Some(now) => completion.closing(now),
                None => Closing {
                    version: completion.version,
                    elapsed_ms: None,
                },
            };
        }
        asked
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
    pub framer: Framer,
    pub incoming: InFlight<OwnedId, Entry>,
    /// Requests that wait to begin.
    pub waiting: WaitingQueue,
    /// Requests whose newest progress is held back; may still contain requests that have ended.
    pub held: Vec<IncomingKey>,
    /// The form of an error's id when a frame's id cannot be read, according to the last envelope.
    pub unreadable: UnreadableId,
    pub dialects: DialectState,
    pub batches: Batches,
    /// How the messages of the stream travel, for observers.
    pub channel: Option<Arc<Channel>>,
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
                framer: Framer::new(framing, config.trace.clone()),
                // Bounded elsewhere: by `max_incoming` and `waiting_cap_bytes`.
                incoming: InFlight::new(usize::MAX),
                waiting: WaitingQueue::default(),
                held: Vec::new(),
                unreadable: unreadable(config),
                dialects: DialectState::default(),
                batches: Batches::default(),
                channel: None,
            },
        }
    }

    /// Resets the stream if nothing waits on it in either direction; returns whether it was reset.
    pub fn reset(&mut self, framing: Framing, config: &Config) -> bool {
        let Self { reading, exchange } = self;
        let blank = exchange.incoming.is_empty()
            && exchange.waiting.is_empty()
            && exchange.output.is_empty();
        if blank {
            *reading = Reading::new(framing, config);
            exchange.held.clear();
            exchange.framer.framing = framing;
            exchange.unreadable = unreadable(config);
            exchange.dialects = DialectState::default();
            exchange.channel = None;
        }
        blank
    }
}

impl Exchange {
    /// Whether the stream carries a single message whose requests are all answered: nothing may follow
    /// then (R-HTP-08).
    pub fn is_over(&self) -> bool {
        self.framer.framing == Framing::Whole && self.incoming.is_empty()
    }

    /// Whether requests are in flight, or output is to be written.
    pub fn is_busy(&self) -> bool {
        !self.incoming.is_empty() || !self.output.is_empty()
    }

    /// Returns what answers a request immediately.
    #[inline]
    pub fn answer<'a>(&'a mut self, config: &'a Config, asked: Asked<'a>) -> Answer<'a> {
        let to = Destination {
            output: &mut self.output,
            framer: &self.framer,
            finished: &mut self.batches.finished,
        };
        Answer::new(to, asked, config)
    }

    /// Answers a frame that cannot be served as a request. `id` is `None` if it cannot be read.
    pub fn refuse(&mut self, id: Option<RequestId<'_>>, error: &Spelt<'_>) {
        let id = match (id, self.unreadable) {
            (Some(id), _) => ErrorId::Id(id),
            (None, UnreadableId::Null) => ErrorId::Null,
            (None, UnreadableId::Omitted) => ErrorId::Omit,
        };
        self.write(|out| reply::error_frame(out, id, error));
    }

    /// Appends one frame.
    pub fn append(&mut self, frame: &[u8]) {
        self.take_over(Encoded::Copied(frame));
    }

    /// Appends a submitted frame.
    pub fn take_over(&mut self, frame: Encoded<'_>) {
        self.framer
            .append_frame(&mut self.output, frame, None::<fn(&mut Vec<u8>)>);
    }

    /// Appends one frame that `write` writes.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.framer.append(&mut self.output, write);
    }
}
