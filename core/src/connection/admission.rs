//! Decides which requests of the peer begin at once, which wait for room, and which are refused.
//!
//! ```text
//!   requests in flight and output below their limits, no other waiting  ─▶ begins
//!   otherwise, while the waiting frames stay below their cap            ─▶ waits, in order
//!   otherwise, or if all connections together are over their budget     ─▶ overload error
//! ```
//!
//! Answers, cancellations and notifications never wait, so reading continues under load. Requests of a
//! stream begin in the order of arrival.

use std::collections::VecDeque;

use bytes::Bytes;

use super::actions::Underway;
use super::core::Core;
use super::host::{Answer, Batch, CallKey, Disposition, Host, Incoming, Record, StreamId};
use super::receive::Turn;
use super::stream::{Entry, Exchange, Stream};
use super::streams::Streams;
use crate::buffer::{Block, PADDING};
use crate::correlate::{CancelToken, IncomingKey, Refused, Vacant};
use crate::limits::WAITING_REQUEST_BYTES;
use crate::mcp::{ErrorKind, Method, Revision};
use crate::message::{Dialect, Message, MessageRef, OwnedId, RequestId};

/// A request that has not begun.
#[derive(Debug)]
pub(crate) struct Waiting {
    message: Message,
    method: Option<Method>,
    revision: Revision,
}

impl Waiting {
    /// Bytes that the request counts against the cap of waiting requests.
    fn cost(&self) -> usize {
        cost(self.message.as_ref().bytes().len())
    }
}

fn cost(frame_len: usize) -> usize {
    frame_len + WAITING_REQUEST_BYTES
}

/// The requests of one stream that have not begun, in the order of arrival. Their messages are in the
/// table of requests in flight, so that their ids count as taken.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// May still contain cancelled requests.
    keys: VecDeque<IncomingKey>,
    len: usize,
    bytes: usize,
}

impl Queue {
    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the waiting requests hold.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn push(&mut self, key: IncomingKey, cost: usize) {
        self.keys.push_back(key);
        self.len += 1;
        self.bytes += cost;
    }

    /// Subtracts a request that was removed from the table or begins.
    fn left(&mut self, cost: usize) {
        self.len -= 1;
        self.bytes -= cost;
    }
}

/// Waiting requests that begin together, collected into one batch.
#[derive(Default)]
struct Gathered {
    block: Block,
    records: Vec<Record>,
}

impl Gathered {
    fn push(&mut self, frame: &[u8], record: impl FnOnce(u32) -> Record) {
        self.records.push(record(self.block.len() as u32));
        self.block.extend_from_slice(frame);
    }

    fn dispatch(mut self, host: &mut dyn Host) {
        if !self.records.is_empty() {
            self.block.extend_from_slice(&[0; PADDING]);
            host.dispatch(Batch {
                block: Bytes::from(self.block),
                records: self.records,
            });
        }
    }
}

impl Core {
    /// Whether a request on that stream may begin.
    fn has_room(&self, exchange: &Exchange) -> bool {
        let limits = &self.config.limits;
        self.in_flight < limits.max_incoming && exchange.output.len() <= limits.output_mark_bytes
    }

    /// Begins, postpones or refuses a request that the protocol layer does not answer itself.
    pub(super) fn admit(
        &mut self,
        exchange: &mut Exchange,
        turn: &mut Turn,
        request: Incoming<'_>,
        (id, vacant): (RequestId<'_>, Option<Vacant>),
        host: &mut dyn Host,
    ) {
        let Incoming {
            message,
            method,
            revision,
        } = request;
        if !exchange.waiting.is_empty() || !self.has_room(exchange) || self.is_over_budget() {
            return self.postpone(exchange, request, id, vacant);
        }
        let answer = exchange.answer_to(&self.config, &message, revision);
        let Disposition::Deferred(operation) = host.request(request, answer) else {
            return;
        };
        let cancel = CancelToken::new();
        let entry = self.entry(&message, cancel.clone(), None);
        let Ok(incoming) = insert(exchange, vacant, id, entry) else {
            return refuse(exchange.answer_to(&self.config, &message, revision));
        };
        self.in_flight += 1;
        self.calls += 1;
        let key = CallKey {
            stream: turn.stream,
            incoming,
        };
        if turn.records.is_empty() {
            // Over HTTP a turn has one request.
            turn.records.reserve_exact(1);
        }
        turn.records.push(Record {
            start: turn.at as u32,
            len: message.bytes().len() as u32,
            envelope: *message.envelope(),
            key,
            method,
            revision,
            operation,
            cancel,
            interceptor: None,
        });
    }

    #[cold]
    fn postpone(
        &mut self,
        exchange: &mut Exchange,
        request: Incoming<'_>,
        id: RequestId<'_>,
        vacant: Option<Vacant>,
    ) {
        let Incoming {
            message,
            method,
            revision,
        } = request;
        let cost = cost(message.bytes().len());
        if exchange.waiting.bytes() + cost > self.config.limits.waiting_cap_bytes
            || self.is_over_budget()
        {
            return refuse(exchange.answer_to(&self.config, &message, revision));
        }
        let waiting = Waiting {
            message: message.detach(),
            method,
            revision,
        };
        let entry = self.entry(&message, CancelToken::new(), Some(Box::new(waiting)));
        match insert(exchange, vacant, id, entry) {
            Ok(key) => exchange.waiting.push(key, cost),
            Err(_) => refuse(exchange.answer_to(&self.config, &message, revision)),
        }
    }

    #[inline]
    fn entry(
        &self,
        message: &MessageRef<'_>,
        cancel: CancelToken,
        waiting: Option<Box<Waiting>>,
    ) -> Entry {
        let entry = Entry::new(cancel, waiting);
        match message.dialect() {
            Dialect::Rpc => entry,
            _ => entry.of_action(Underway::new(message, self.clock)),
        }
    }

    /// Removes a request of the peer that is answered or cancelled from its table. `None` if it was
    /// removed before. Only the caller that gets `Some` may write about the request (R-CAN-11).
    pub(super) fn end_incoming(
        &mut self,
        exchange: &mut Exchange,
        key: IncomingKey,
    ) -> Option<(OwnedId, Entry)> {
        let (id, entry) = exchange.incoming.remove(key)?;
        if let Some((timer, _)) = &entry.limit {
            self.timers.cancel(*timer);
        }
        match &entry.waiting {
            None => self.in_flight -= 1,
            Some(waiting) => exchange.waiting.left(waiting.cost()),
        }
        // Cancelled requests must not pile up.
        if exchange.waiting.keys.len() > 2 * exchange.waiting.len + 64 {
            let Exchange {
                waiting, incoming, ..
            } = exchange;
            waiting.keys.retain(|key| incoming.get(*key).is_some());
        }
        Some((id, entry))
    }

    /// Cancels a request of the peer. If it has begun, its token receives `reason` and the host `told`.
    /// Returns whether the request was still in flight.
    pub(super) fn cancel_incoming(
        &mut self,
        exchange: &mut Exchange,
        key: CallKey,
        reason: Option<&str>,
        told: Option<&str>,
        host: &mut dyn Host,
    ) -> bool {
        let Some((_, entry)) = self.end_incoming(exchange, key.incoming) else {
            return false;
        };
        if entry.waiting.is_none() {
            entry.cancel.cancel(reason);
            host.cancelled(key, told);
        }
        true
    }

    /// Cancels every request on a stream whose answers cannot be delivered any more.
    pub(super) fn cancel_all(
        &mut self,
        stream: StreamId,
        exchange: &mut Exchange,
        host: &mut dyn Host,
    ) {
        let keys: Vec<_> = exchange.incoming.iter().map(|(key, ..)| key).collect();
        for incoming in keys {
            let key = CallKey { stream, incoming };
            self.cancel_incoming(exchange, key, Some("the connection ended"), None, host);
        }
    }

    /// Whether a request waits on the stream and may begin.
    pub(super) fn can_begin(&self, exchange: &Exchange) -> bool {
        !exchange.waiting.is_empty() && self.has_room(exchange)
    }

    /// Begins the waiting requests for which there is room now.
    #[inline]
    pub(super) fn begin_waiting(
        &mut self,
        stream: StreamId,
        exchange: &mut Exchange,
        host: &mut dyn Host,
    ) {
        if self.can_begin(exchange) {
            self.begin_those(stream, exchange, host);
        }
    }

    #[cold]
    fn begin_those(&mut self, stream: StreamId, exchange: &mut Exchange, host: &mut dyn Host) {
        let mut gathered = Gathered::default();
        while self.can_begin(exchange)
            && let Some(incoming) = exchange.waiting.keys.pop_front()
        {
            let key = CallKey { stream, incoming };
            self.begin_one(exchange, key, &mut gathered, host);
        }
        gathered.dispatch(host);
    }

    fn begin_one(
        &mut self,
        exchange: &mut Exchange,
        key: CallKey,
        gathered: &mut Gathered,
        host: &mut dyn Host,
    ) {
        // A request cancelled while it waited is no longer in the table.
        let Some(entry) = exchange.incoming.get_mut(key.incoming) else {
            return;
        };
        let Some(waiting) = entry.waiting.take() else {
            return;
        };
        let cancel = entry.cancel.clone();
        self.in_flight += 1;
        self.calls += 1;
        exchange.waiting.left(waiting.cost());
        let Waiting {
            message,
            method,
            revision,
        } = *waiting;
        let message = message.as_ref();
        let request = Incoming {
            message,
            method,
            revision,
        };
        let answer = exchange.answer_to(&self.config, &message, revision);
        match host.request(request, answer) {
            Disposition::Answered => {
                self.end_incoming(exchange, key.incoming);
            }
            Disposition::Deferred(operation) => gathered.push(message.bytes(), |start| Record {
                start,
                len: message.bytes().len() as u32,
                envelope: *message.envelope(),
                key,
                method,
                revision,
                operation,
                cancel,
                interceptor: None,
            }),
        }
    }

    /// Answers every waiting request with an error.
    pub(super) fn refuse_waiting(&mut self, streams: &mut Streams, kind: ErrorKind, why: &str) {
        for (_, Stream { exchange, .. }) in streams.iter_mut() {
            while let Some(key) = exchange.waiting.keys.pop_front() {
                let Some((_, entry)) = self.end_incoming(exchange, key) else {
                    continue;
                };
                let Some(waiting) = entry.waiting else {
                    continue;
                };
                let message: MessageRef<'_> = waiting.message.as_ref();
                let answer = exchange.answer_to(&self.config, &message, waiting.revision);
                answer.error(kind, why, None);
            }
        }
    }
}

/// The `data` of an overload error: when to try again, in seconds.
pub(super) const RETRY_AFTER: &str = "{\"retryAfter\":1}";

/// Adds a request to the table: under its id if `vacant` is given, else without an id.
#[inline]
fn insert(
    exchange: &mut Exchange,
    vacant: Option<Vacant>,
    id: RequestId<'_>,
    entry: Entry,
) -> Result<IncomingKey, Refused> {
    match vacant {
        Some(vacant) => exchange.incoming.insert_vacant(vacant, id, entry),
        None => exchange.incoming.insert_unnamed(id, entry),
    }
}

pub(super) fn refuse(answer: Answer<'_>) {
    answer.error(
        ErrorKind::Overloaded,
        "too many requests",
        Some(RETRY_AFTER),
    );
}
