//! The application's side of a connection, called on the driver's thread.

use std::sync::Arc;

use bytes::Bytes;

use super::actions::{close_now, words};
use super::answer::{self, ResultWriter};
use super::config::Config;
#[cfg(feature = "server")]
use super::principal::Principal;
use super::stream::Wire;
use super::watch::{self, Watch};
use crate::action::encode::{self, ActionError};
use crate::buffer::Output;
use crate::correlate::{CancelToken, IncomingKey};
use crate::error::ConnectionError;
use crate::mcp::profile::{Failure, Spelt};
use crate::mcp::{Era, ErrorKind, LogLevel, Method, Revision};
use crate::message::{
    Dialect, Envelope, Field, Frame, Message, MessageRef, OwnedId, RequestId, encode::ErrorId,
};

/// One stream of a connection: a pipe, socket or WebSocket has one, HTTP one per exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl StreamId {
    /// The first stream that a connection opens, the only one on a pipe.
    pub const FIRST: Self = Self {
        index: 0,
        generation: 0,
    };
}

/// One request of the peer in flight: the stream it came on, and its slot and generation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    pub(crate) stream: StreamId,
    pub(crate) incoming: IncomingKey,
}

impl CallKey {
    /// The stream it came on.
    pub fn stream(self) -> StreamId {
        self.stream
    }
}

/// A request of the peer, borrowed from the input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The frame and its spans.
    pub message: MessageRef<'a>,
    /// The method, when some revision defines it; it is defined in `revision` then.
    pub method: Option<Method>,
    /// The revision that this request is served in.
    pub revision: Revision,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The answer is written.
    Answered,
    /// It leaves the driver's thread in the batch of this turn, marked with a number of the
    /// host's own, and is answered through [`Replies`](super::Replies).
    Deferred(u32),
}

/// What arrived and concerned nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stray {
    /// An answer that nobody waits for: late, repeated, cancelled or forged.
    Answer,
    /// A frame that is no valid message.
    BadFrame,
    /// A frame longer than the limit, discarded.
    Oversize,
    /// A valid message that this side cannot receive at this point.
    Unexpected,
    /// A cancel of an id that several streams of the session have in flight: it ended none.
    Cancel,
}

/// What a program does with the requests and events of a connection.
///
/// All methods are called on the driver's thread and must not block: what takes time is
/// deferred.
pub trait Host {
    /// A request that the protocol layer does not answer itself.
    fn request(&mut self, request: Incoming<'_>, answer: Answer<'_>) -> Disposition;

    /// Whether what the carrier says of a request, in headers for example, fits the request.
    /// Asked before anything else is made of it.
    ///
    /// # Errors
    /// What does not fit: the kind of the error that answers it, and a sentence.
    fn fits(&mut self, message: &MessageRef<'_>) -> Result<(), (ErrorKind, String)> {
        let _ = message;
        Ok(())
    }

    /// Whether requests of that method come here which the protocol layer answers otherwise: the
    /// handshake, pings and discovery. It settles the revision of a handshake in any case.
    fn opens(&self, method: Method) -> bool {
        let _ = method;
        false
    }

    /// The requests deferred in one turn, once per turn.
    fn dispatch(&mut self, batch: Batch);

    /// A deferred request was cancelled, or its connection ended: what it answers is discarded.
    fn cancelled(&mut self, key: CallKey, reason: Option<&str>);

    /// A notification that the protocol layer has dealt with: a cancel, or progress.
    fn overheard(&mut self, message: MessageRef<'_>) {
        let _ = message;
    }

    /// A notification that the protocol layer does not consume itself.
    fn notification(&mut self, message: MessageRef<'_>) {
        let _ = message;
    }

    /// The connection is open, in that revision.
    fn opened(&mut self, revision: Revision) {
        let _ = revision;
    }

    /// No further request is begun, and what is in flight is to end: what would stay open for
    /// ever is to be answered now.
    fn draining(&mut self) {}

    /// The connection has ended. Called once.
    fn closed(&mut self, reason: &ConnectionError) {
        let _ = reason;
    }

    /// Something arrived that concerned nobody. `frame` may be cut short.
    fn stray(&mut self, what: Stray, frame: &[u8]) {
        let _ = (what, frame);
    }
}

/// Answers one request at once, from the driver's thread.
#[derive(Debug)]
pub struct Answer<'a> {
    pub(crate) output: &'a mut Output,
    pub(crate) id: RequestId<'a>,
    /// The request, where it is known to be more than its id.
    pub(crate) message: Option<MessageRef<'a>>,
    pub(crate) revision: Revision,
    pub(crate) config: &'a Config,
    pub(crate) wire: &'a Wire,
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

impl Answer<'_> {
    /// Has `watch` look at what is answered here.
    #[must_use]
    pub fn watched(mut self, watch: Option<Arc<dyn Watch>>) -> Self {
        self.watch = watch;
        self
    }

    /// Who asks, where the request itself has proven it.
    #[cfg(feature = "server")]
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.watch.as_ref()?.principal()
    }

    /// Whether the request came by itself, with a carrier that has a word for how it was answered.
    #[cfg(feature = "server")]
    pub(crate) fn is_exchange(&self) -> bool {
        self.wire.framing == crate::frame::Framing::Whole
    }

    /// Answers with a result object.
    pub fn result(self, write: impl FnOnce(&mut ResultWriter<'_>)) -> Disposition {
        let (id, revision, config) = (self.id, self.revision, self.config);
        let watch = self.watch.clone();
        self.write(|out, dialect| match dialect {
            Dialect::Rpc => {
                let at = out.len();
                answer::result(out, id, revision, config, write);
                if let Some(watch) = &watch {
                    watch::review(out, at, id, watch.as_ref());
                }
            }
            dialect => words::result(out, dialect, revision, watch.as_deref(), write),
        })
    }

    /// Answers with an error.
    pub fn error(self, kind: ErrorKind, message: &str, data: Option<&str>) -> Disposition {
        self.refuse(Failure {
            kind,
            about: "",
            why: message,
            data,
        })
    }

    /// The same, where it matters what the error is about.
    pub fn refuse(self, failure: Failure<'_>) -> Disposition {
        let (id, revision, config) = (self.id, self.revision, self.config);
        let watch = self.watch.clone();
        self.write(|out, dialect| {
            let kind = failure.kind;
            let spelt = match &watch {
                None => config.profile.spell(revision, failure),
                Some(watch) => watch.error(Failure {
                    about: match failure.about {
                        "" => watch.about(),
                        about => about,
                    },
                    ..failure
                }),
            };
            match dialect {
                Dialect::Rpc => watch::write(out, ErrorId::Id(id), &spelt),
                dialect => words::error(out, dialect, kind, &spelt.message, spelt.data.as_deref()),
            }
        })
    }

    /// Answers an action with an error of its dialect; nothing else is answered so.
    pub(crate) fn action_error(self, error: &ActionError<'_>) -> Disposition {
        let watch = self.watch.clone();
        self.write(|out, dialect| {
            let spelt = watch.as_ref().map(|watch| {
                watch.coded(Spelt {
                    code: error.code.map_or(0, i64::from),
                    message: error.message.into(),
                    data: error.details.map(Into::into),
                })
            });
            let error = match &spelt {
                None => *error,
                Some(spelt) => ActionError {
                    message: &spelt.message,
                    details: spelt.data.as_deref(),
                    ..*error
                },
            };
            encode::open_error(out, dialect == Dialect::ActionStream, &error);
        })
    }

    /// Answers an action with `data`, a JSON object; nothing else is answered so.
    #[cfg(feature = "server")]
    pub(crate) fn action_data(self, data: &str) -> Disposition {
        if let Some(watch) = &self.watch {
            // It is the server's own: nothing to be changed, but to be written down.
            let _ = watch.result(data);
        }
        self.write(|out, dialect| {
            encode::open_success(out, dialect == Dialect::ActionStream, Some(data));
        })
    }

    /// Writes one frame; `open` leaves that of an action without its end.
    fn write(self, open: impl FnOnce(&mut Vec<u8>, Dialect)) -> Disposition {
        let Self {
            output,
            message,
            config,
            wire,
            ..
        } = self;
        let action = message.filter(|message| message.dialect() != Dialect::Rpc);
        wire.append(output, |out| match &action {
            None => open(out, Dialect::Rpc),
            Some(message) => {
                open(out, message.dialect());
                match message.dialect() {
                    Dialect::ActionPart => out.push(b'}'),
                    _ => close_now(out, &config.implementation, message, None),
                }
            }
        });
        Disposition::Answered
    }
}

/// Where an answer goes: everything that is needed to write it from another thread.
#[derive(Clone, Debug)]
pub struct ReplyTo {
    pub(crate) key: CallKey,
    pub(crate) revision: Revision,
    pub(crate) dialect: Dialect,
    pub(crate) id: OwnedId,
    pub(crate) progress_token: Option<OwnedId>,
    /// The level that the request itself asks for, where the revision has it so.
    pub(crate) log_level: Option<Option<LogLevel>>,
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

impl ReplyTo {
    /// The request in flight.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// The revision that the request is served in.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The request's id.
    pub fn id(&self) -> RequestId<'_> {
        self.id.as_ref()
    }

    /// The language that the request is answered in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Who asks, where the request itself has proven it.
    #[cfg(feature = "server")]
    pub fn principal(&self) -> Option<&Principal> {
        self.watch.as_ref()?.principal()
    }

    /// The token under which the peer asked for progress.
    #[cfg(feature = "server")]
    pub(crate) fn progress_token(&self) -> Option<RequestId<'_>> {
        self.progress_token.as_ref().map(OwnedId::as_ref)
    }

    /// Whether the peer asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.progress_token.is_some()
    }
}

/// The requests deferred in one turn: one block of bytes and a record for each.
///
/// The block is a copy when the turn's bytes are few, and the reader's own block, handed over,
/// when they are many; each record's frame is a range of it.
#[derive(Debug)]
pub struct Batch {
    pub(crate) block: Bytes,
    pub(crate) records: Vec<Record>,
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub start: u32,
    pub len: u32,
    pub envelope: Envelope,
    pub key: CallKey,
    pub method: Option<Method>,
    pub revision: Revision,
    pub target: u32,
    pub cancel: CancelToken,
    pub watch: Option<Arc<dyn Watch>>,
}

impl Batch {
    /// Has `watch` say of each request who looks at its answer.
    pub fn watch(
        &mut self,
        mut watch: impl FnMut(&Incoming<'_>, CallKey) -> Option<Arc<dyn Watch>>,
    ) {
        for record in &mut self.records {
            let frame = self.block.get(record.start as usize..);
            let frame = frame.and_then(|frame| Frame::new(frame, record.len as usize));
            let Some(frame) = frame else { continue };
            let request = Incoming {
                message: MessageRef::new(frame, &record.envelope),
                method: record.method,
                revision: record.revision,
            };
            record.watch = watch(&request, record.key);
        }
    }

    /// How many requests.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none; a host never sees such a batch.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Request `index`; `None` if there are not so many.
    pub fn call(&self, index: usize) -> Option<Call> {
        let record = self.records.get(index)?;
        let (start, len) = (record.start as usize, record.len as usize);
        let frame = Frame::new(self.block.get(start..)?, len)?;
        let view = MessageRef::new(frame, &record.envelope);
        let reply = ReplyTo {
            key: record.key,
            revision: record.revision,
            dialect: view.dialect(),
            id: view.echo()?.to_owned(),
            // Whoever reads a stream wants all that comes.
            progress_token: match view.dialect() {
                Dialect::ActionStream => Some(RequestId::NONE.to_owned()),
                _ => view.progress_token().map(|token| token.to_owned()),
            },
            log_level: match record.revision.era() {
                Era::Handshake => None,
                Era::Stateless => Some(
                    view.decoded(Field::LogLevel)
                        .and_then(|level| LogLevel::parse(&level)),
                ),
            },
            watch: record.watch.clone(),
        };
        Some(Call {
            message: Message::from_block(self.block.slice(start..), len, record.envelope)?,
            reply,
            method: record.method,
            target: record.target,
            cancel: record.cancel.clone(),
        })
    }

    /// Takes those out that the host marked with `target`.
    #[cfg(feature = "server")]
    pub(crate) fn take(&mut self, target: u32) -> Vec<Call> {
        self.take_those(|record| record.target == target)
    }

    /// Takes one out.
    #[cfg(feature = "server")]
    pub(crate) fn take_one(&mut self, key: CallKey) -> Option<Call> {
        self.take_those(|record| record.key == key).pop()
    }

    #[cfg(feature = "server")]
    fn take_those(&mut self, is_one: impl Fn(&Record) -> bool) -> Vec<Call> {
        if !self.records.iter().any(&is_one) {
            return Vec::new();
        }
        let ones = (0..self.len()).filter(|index| is_one(&self.records[*index]));
        let calls = ones.filter_map(|index| self.call(index)).collect();
        self.records.retain(|record| !is_one(record));
        calls
    }

    /// All of them, in the order of arrival, made one by one.
    pub fn into_calls(self) -> impl Iterator<Item = Call> + Send {
        (0..self.len()).filter_map(move |index| self.call(index))
    }

    /// All of them, in the order of arrival.
    pub fn calls(&self) -> impl Iterator<Item = Call> {
        (0..self.len()).filter_map(|index| self.call(index))
    }
}

/// A deferred request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The request's frame and spans; shares the batch's block.
    pub message: Message,
    /// Where its answer goes.
    pub reply: ReplyTo,
    /// The method, when some revision defines it.
    pub method: Option<Method>,
    /// The host's own number, from [`Disposition::Deferred`].
    pub target: u32,
    /// Cancelled when the peer gives up or the connection ends.
    pub cancel: CancelToken,
}
