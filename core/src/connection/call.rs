//! Requests of the peer as the application sees them: borrowed while they are admitted, owned afterwards.

use std::sync::Arc;

use bytes::Bytes;

use super::interceptor::Interceptor;
use super::keys::CallKey;
use super::observer::RequestScope;
use super::operation::Operation;
use super::principal::Principal;
use crate::correlate::CancelToken;
use crate::mcp::{Era, LogLevel, Method, Revision};
use crate::message::{Dialect, Envelope, Field, Frame, Message, MessageRef, OwnedId, RequestId};

/// A request of the peer, borrowed from the input buffer.
#[derive(Clone, Copy, Debug)]
pub struct IncomingRequest<'a> {
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
    /// The request is passed to [`Host::dispatch`](super::Host::dispatch) in the batch of this turn, with
    /// this operation. It is answered later through [`Replies`](super::Replies).
    Deferred(Operation),
}

/// Where an answer goes: what is needed to write it from another thread.
#[derive(Clone, Debug)]
pub struct ReplyTo {
    pub(crate) key: CallKey,
    pub(crate) revision: Revision,
    pub(crate) dialect: Dialect,
    /// Whether the request is a member of a batch, which collects the answers of its members.
    pub(crate) is_member: bool,
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

    /// The sender of the request, if the request itself carried proof of it.
    pub fn principal(&self) -> Option<&Principal> {
        self.interceptor.as_ref()?.principal()
    }

    /// The log level that the request asks for, in revisions in which requests carry it.
    #[cfg(all(feature = "server", feature = "client"))]
    pub(crate) fn log_level(&self) -> Option<Option<LogLevel>> {
        self.log_level
    }

    /// The token with which the peer requested progress.
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
    pub scope: Option<RequestScope>,
    pub is_member: bool,
}

impl Batch {
    /// Sets, for each request, the interceptor that inspects its answer.
    pub fn intercept(
        &mut self,
        mut interceptor: impl FnMut(&IncomingRequest<'_>, CallKey) -> Option<Arc<dyn Interceptor>>,
    ) {
        for record in &mut self.records {
            let frame = self.block.get(record.start as usize..);
            let frame = frame.and_then(|frame| Frame::new(frame, record.len as usize));
            let Some(frame) = frame else { continue };
            let request = IncomingRequest {
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
            is_member: record.is_member,
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
            scope: record.scope.clone(),
        })
    }

    /// Removes and returns the requests with that operation.
    pub(crate) fn take(&mut self, operation: Operation) -> Vec<Call> {
        self.take_those(|record| record.operation == operation)
    }

    /// Removes and returns one request.
    pub(crate) fn take_one(&mut self, key: CallKey) -> Option<Call> {
        self.take_those(|record| record.key == key).pop()
    }

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
    /// The remaining work, which the host chose in [`Disposition::Deferred`].
    pub operation: Operation,
    /// Cancelled when the peer cancels the request, its time is up or the connection ends.
    pub cancel: CancelToken,
    /// What surrounds the handler, if the observer of the request has something. The host enters it.
    pub scope: Option<RequestScope>,
}
