//! The interface that an application implements to serve a connection. Called on the driver's thread.

use std::sync::Arc;

use bytes::Bytes;

use super::actions::{close_now, words};
use super::answer::{self, ResultWriter};
use super::config::Config;
use super::interceptor::{self, Interceptor};
use super::operation::Operation;
#[cfg(feature = "server")]
use super::principal::Principal;
use super::stream::Wire;
use crate::action::encode::{self, ActionError};
use crate::buffer::Output;
use crate::correlate::{CancelToken, IncomingKey};
use crate::error::ConnectionError;
use crate::mcp::profile::{Failure, Spelt};
use crate::mcp::{Era, ErrorKind, LogLevel, Method, Revision};
use crate::message::{
    Dialect, Envelope, Field, Frame, Message, MessageRef, OwnedId, RequestId, encode::ErrorId,
};

/// One stream of a connection. A pipe, socket or WebSocket has one stream; HTTP has one per exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl StreamId {
    /// The first stream that a connection opens; on a pipe, the only one.
    pub const FIRST: Self = Self {
        index: 0,
        generation: 0,
    };
}

/// Key of one request of the peer in flight: its stream, and its slot and generation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    pub(crate) stream: StreamId,
    pub(crate) incoming: IncomingKey,
}

impl CallKey {
    /// The stream on which the request arrived.
    pub fn stream(self) -> StreamId {
        self.stream
    }
}

/// A request of the peer, borrowed from the input buffer.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The frame and the positions of its members.
    pub message: MessageRef<'a>,
    /// The method, if a revision defines it. It is then defined in `revision`, too.
    pub method: Option<Method>,
    /// The revision in which this request is served.
    pub revision: Revision,
}

/// How the host handled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The host has written the answer.
    Answered,
    /// The request is passed to [`Host::dispatch`] in the batch of this turn, with this operation. It is
    /// answered later through [`Replies`](super::Replies).
    Deferred(Operation),
}

/// Why something that arrived was of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stray {
    /// An answer that nobody waits for: late, repeated, cancelled or forged.
    Answer,
    /// A frame that is not a valid message.
    BadFrame,
    /// A frame longer than the limit, or one for which there was no room; it was discarded.
    Oversize,
    /// A valid message that this side cannot accept at this point.
    Unexpected,
    /// A cancellation of an id that several streams of the session have in flight. It cancelled none of
    /// them.
    Cancel,
}

/// Handles the requests and events of a connection.
///
/// All methods are called on the driver's thread and must not block; defer what takes time.
pub trait Host {
    /// Handles a request that the protocol layer does not answer itself.
    fn request(&mut self, request: Incoming<'_>, answer: Answer<'_>) -> Disposition;

    /// Checks that what the transport says about a request, for example in HTTP headers, agrees with
    /// the request. Called before the request is processed in any other way.
    ///
    /// # Errors
    /// The kind of error to answer with, and a message that says what disagrees.
    fn fits(&mut self, message: &MessageRef<'_>) -> Result<(), (ErrorKind, String)> {
        let _ = message;
        Ok(())
    }

    /// Whether requests of `method` are passed to [`request`](Self::request) although the protocol
    /// layer could answer them: `initialize`, `ping` and `server/discover`. The protocol layer settles
    /// the revision of an `initialize` in any case.
    fn opens(&self, method: Method) -> bool {
        let _ = method;
        false
    }

    /// Receives the requests that were deferred in one turn, in one call per turn.
    fn dispatch(&mut self, batch: Batch);

    /// Reports that a deferred request was cancelled, timed out or lost its stream; any answer to it is
    /// discarded.
    fn cancelled(&mut self, key: CallKey, reason: Option<&str>);

    /// Reports a notification that the protocol layer has processed: a cancellation or progress.
    fn overheard(&mut self, message: MessageRef<'_>) {
        let _ = message;
    }

    /// Receives a notification that the protocol layer does not process itself.
    fn notification(&mut self, message: MessageRef<'_>) {
        let _ = message;
    }

    /// Reports that the connection is open, in `revision`.
    fn opened(&mut self, revision: Revision) {
        let _ = revision;
    }

    /// Reports that the connection is shutting down: no further request is accepted. Requests that
    /// would otherwise stay open for ever must be answered now.
    fn draining(&mut self) {}

    /// Reports that the connection has ended. Called once.
    fn closed(&mut self, reason: &ConnectionError) {
        let _ = reason;
    }

    /// Reports a frame that was of no use. `frame` may be cut short or empty.
    fn stray(&mut self, what: Stray, frame: &[u8]) {
        let _ = (what, frame);
    }
}

/// Answers one request immediately, on the driver's thread.
#[derive(Debug)]
pub struct Answer<'a> {
    pub(crate) output: &'a mut Output,
    pub(crate) id: RequestId<'a>,
    /// The request's message; `None` if only its id is known.
    pub(crate) message: Option<MessageRef<'a>>,
    pub(crate) revision: Revision,
    pub(crate) config: &'a Config,
    pub(crate) wire: &'a Wire,
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
}

impl Answer<'_> {
    /// Sets the interceptor that inspects, and may change, what is answered here.
    #[must_use]
    pub fn intercepted(mut self, interceptor: Option<Arc<dyn Interceptor>>) -> Self {
        self.interceptor = interceptor;
        self
    }

    /// Who sent the request, if the request itself carried proof of it.
    #[cfg(feature = "server")]
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.interceptor.as_ref()?.principal()
    }

    /// Whether the stream carries this one exchange, as over HTTP, so that the transport can report how
    /// the request was answered (HTTP status).
    #[cfg(feature = "server")]
    pub(crate) fn is_exchange(&self) -> bool {
        self.wire.framing == crate::frame::Framing::Whole
    }

    /// Answers with a result object.
    pub fn result(self, write: impl FnOnce(&mut ResultWriter<'_>)) -> Disposition {
        let (id, revision, config) = (self.id, self.revision, self.config);
        let interceptor = self.interceptor.clone();
        self.write(|out, dialect| match dialect {
            Dialect::Rpc => {
                let at = out.len();
                answer::result(out, id, revision, config, write);
                if let Some(interceptor) = &interceptor {
                    interceptor::review(out, at, id, interceptor.as_ref());
                }
            }
            dialect => words::result(out, dialect, revision, interceptor.as_deref(), write),
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

    /// Answers with an error whose [`Failure`] also names what the error is about.
    pub fn refuse(self, failure: Failure<'_>) -> Disposition {
        let (id, revision, config) = (self.id, self.revision, self.config);
        let interceptor = self.interceptor.clone();
        self.write(|out, dialect| {
            let kind = failure.kind;
            let spelt = match &interceptor {
                None => config.profile.spell(revision, failure),
                Some(interceptor) => interceptor.error(Failure {
                    about: match failure.about {
                        "" => interceptor.about(),
                        about => about,
                    },
                    ..failure
                }),
            };
            match dialect {
                Dialect::Rpc => interceptor::write(out, ErrorId::Id(id), &spelt),
                dialect => words::error(out, dialect, kind, &spelt.message, spelt.data.as_deref()),
            }
        })
    }

    /// Answers an action with an error of the action dialect. For actions only.
    pub(crate) fn action_error(self, error: &ActionError<'_>) -> Disposition {
        let interceptor = self.interceptor.clone();
        self.write(|out, dialect| {
            let spelt = interceptor.as_ref().map(|interceptor| {
                interceptor.coded(Spelt {
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

    /// Answers an action with `data`, a JSON object. For actions only.
    #[cfg(feature = "server")]
    pub(crate) fn action_data(self, data: &str) -> Disposition {
        if let Some(interceptor) = &self.interceptor {
            // The server's own data is not subject to change; the interceptor only records the answer.
            let _ = interceptor.result(data);
        }
        self.write(|out, dialect| {
            encode::open_success(out, dialect == Dialect::ActionStream, Some(data));
        })
    }

    /// Writes one frame. For an action, `open` leaves out the frame's end, which is added here.
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

/// Where an answer goes: what is needed to write it from another thread.
#[derive(Clone, Debug)]
pub struct ReplyTo {
    pub(crate) key: CallKey,
    pub(crate) revision: Revision,
    pub(crate) dialect: Dialect,
    pub(crate) id: OwnedId,
    pub(crate) progress_token: Option<OwnedId>,
    /// The log level that the request asks for, in revisions in which requests carry it.
    pub(crate) log_level: Option<Option<LogLevel>>,
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
}

impl ReplyTo {
    /// The key of the request in flight.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// The revision in which the request is served.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The request's id.
    pub fn id(&self) -> RequestId<'_> {
        self.id.as_ref()
    }

    /// The dialect in which the request is answered.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Who sent the request, if the request itself carried proof of it.
    #[cfg(feature = "server")]
    pub fn principal(&self) -> Option<&Principal> {
        self.interceptor.as_ref()?.principal()
    }

    /// The token with which the peer requested progress.
    #[cfg(feature = "server")]
    pub(crate) fn progress_token(&self) -> Option<RequestId<'_>> {
        self.progress_token.as_ref().map(OwnedId::as_ref)
    }

    /// Whether the peer requested progress.
    pub fn wants_progress(&self) -> bool {
        self.progress_token.is_some()
    }
}

/// The requests deferred in one turn: one block of bytes, and a record per request whose frame is a
/// range of the block.
///
/// If the turn read few bytes, the block is a copy; if many, it is the input buffer's own block.
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
    pub operation: Operation,
    pub cancel: CancelToken,
    pub interceptor: Option<Arc<dyn Interceptor>>,
}

impl Batch {
    /// Sets, for each request, the interceptor that inspects its answer.
    pub fn intercept(
        &mut self,
        mut interceptor: impl FnMut(&Incoming<'_>, CallKey) -> Option<Arc<dyn Interceptor>>,
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
            record.interceptor = interceptor(&request, record.key);
        }
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the batch is empty. A host never receives an empty batch.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Request number `index`; `None` if there are fewer.
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
            // A client that reads a stream always wants progress.
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
            interceptor: record.interceptor.clone(),
        };
        Some(Call {
            message: Message::from_block(self.block.slice(start..), len, record.envelope)?,
            reply,
            method: record.method,
            operation: record.operation,
            cancel: record.cancel.clone(),
        })
    }

    /// Removes and returns the requests with that operation.
    #[cfg(feature = "server")]
    pub(crate) fn take(&mut self, operation: Operation) -> Vec<Call> {
        self.take_those(|record| record.operation == operation)
    }

    /// Removes and returns one request.
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

    /// All requests in the order of arrival, created one by one; owns the batch.
    pub fn into_calls(self) -> impl Iterator<Item = Call> + Send {
        (0..self.len()).filter_map(move |index| self.call(index))
    }

    /// All requests in the order of arrival, created one by one.
    pub fn calls(&self) -> impl Iterator<Item = Call> {
        (0..self.len()).filter_map(|index| self.call(index))
    }
}

/// A deferred request.
#[derive(Clone, Debug)]
pub struct Call {
    /// The request's frame and the positions of its members; shares the batch's block.
    pub message: Message,
    /// Where the answer goes.
    pub reply: ReplyTo,
    /// The method, if a revision defines it.
    pub method: Option<Method>,
    /// What remains to be done: the host chose it in [`Disposition::Deferred`].
    pub operation: Operation,
    /// Cancelled when the peer cancels the request, its time is up or the connection ends.
    pub cancel: CancelToken,
}
