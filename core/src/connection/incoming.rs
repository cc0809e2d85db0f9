//! Requests of the peer: decides which begin at once, which wait for room and which are refused, and ends
//! them.
//!
//! ```text
//!   requests in flight and output below their limits, no other waiting  ─▶ begins
//!   otherwise, while the waiting frames stay below their cap            ─▶ waits, in order
//!   otherwise, or if all connections together are over their budget     ─▶ overload error
//! ```
//!
//! Answers, cancellations and notifications never wait, so reading continues under load. Requests of a
//! stream begin in the order of arrival.

use std::time::Instant;

use bytes::Bytes;

use super::answer::{Answer, Asked};
use super::awaited::Awaited;
use super::call::{Batch, Call, Disposition, IncomingRequest, Record};
use super::config::Config;
use super::host::Host;
use super::keys::{CallKey, StreamId};
use super::load::Load;
use super::observed::Undecided;
use super::observer::{RequestOutcome, RequestScope};
use super::stream::{Completion, Entry, Exchange};
use super::timers::Timers;
use super::waiting::{self, Waiting};
use crate::buffer::{Block, PADDING};
use crate::correlate::{CancelToken, IncomingKey, Refused, Vacant};
use crate::mcp::ErrorKind;
use crate::message::{OwnedId, RequestId};

/// A request that is admitted, and what its answer depends on.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    pub request: IncomingRequest<'a>,
    pub asked: Asked<'a>,
    /// Proof that no request in flight has its id; `None` to find it by its key alone.
    pub vacant: Option<Vacant>,
}

/// Requests that begin together, and are dispatched as one batch.
#[derive(Default)]
pub(super) struct Started {
    pub records: Vec<Record>,
    /// Start of the current frame in the input.
    pub at: usize,
    /// Copies of the frames; `None` if they are ranges of the input.
    copies: Option<Block>,
}

impl Started {
    /// Requests whose frames are not in the input of this turn.
    pub fn copying() -> Self {
        Self {
            copies: Some(Block::default()),
            ..Self::default()
        }
    }

    #[inline]
    fn push(&mut self, frame: &[u8], record: impl FnOnce(u32) -> Record) {
        let at = match &mut self.copies {
            None => self.at,
            Some(block) => {
                let at = block.len();
                block.extend_from_slice(frame);
                at
            }
        };
        if self.records.is_empty() {
            // Over HTTP a turn has one request.
            self.records.reserve_exact(1);
        }
        self.records.push(record(at as u32));
    }

    /// Hands copied requests to the host.
    pub fn dispatch(self, host: &mut dyn Host) {
        if let Some(batch) = self.batch() {
            host.dispatch(batch);
        }
    }

    /// Copied requests; `None` if there are none.
    fn batch(self) -> Option<Batch> {
        let mut block = self.copies.filter(|_| !self.records.is_empty())?;
        block.extend_from_slice(&[0; PADDING]);
        Some(Batch {
            block: Bytes::from(block),
            records: self.records,
        })
    }
}

/// Hands the host a call that is in flight nowhere.
#[cfg(feature = "server")]
pub(super) fn detached(call: Call, host: &mut dyn Host) {
    let mut started = Started::copying();
    let message = call.message.as_ref();
    started.push(message.bytes(), |start| Record {
        start,
        len: message.bytes().len() as u32,
        envelope: *message.envelope(),
        key: call.reply.key,
        method: call.method,
        revision: call.reply.revision,
        operation: call.operation,
        cancel: call.cancel,
        interceptor: call.reply.interceptor,
        scope: call.scope,
        is_member: false,
    });
    if let Some(batch) = started.batch() {
        host.detached(batch);
    }
}

/// The requests of the peer on all streams.
#[derive(Debug)]
pub(super) struct Incoming {
    pub load: Load,
}

impl Incoming {
    fn config(&self) -> &Config {
        self.load.config()
    }

    /// Begins, postpones or refuses a request that the protocol layer does not answer itself.
    pub fn admit(
        &mut self,
        (stream, exchange): (StreamId, &mut Exchange),
        started: &mut Started,
        arrival: &Arrival<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let is_free = exchange.waiting.is_empty() && self.load.has_room(exchange);
        match is_free && !self.load.is_over_budget() {
            true => self.start((stream, exchange), started, arrival, now, host),
            false => self.postpone(exchange, arrival, now),
        }
    }

    /// Begins a request, whether there is room or not.
    pub fn start(
        &mut self,
        (stream, exchange): (StreamId, &mut Exchange),
        started: &mut Started,
        arrival: &Arrival<'_>,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let Arrival { request, asked, .. } = arrival;
        let answer = exchange.answer(self.config(), *asked);
        let Disposition::Deferred(operation) = host.request(*request, answer) else {
            return;
        };
        let cancel = CancelToken::new();
        let entry = Entry::new(cancel.clone(), Completion::of(asked, now));
        let Ok(incoming) = insert(exchange, arrival, entry) else {
            return refuse(exchange.answer(self.config(), *asked));
        };
        let scope = match asked.observed {
            None => None,
            Some(undecided) => keep_observer(exchange, incoming, undecided),
        };
        self.load.begin();
        let message = request.message;
        started.push(message.bytes(), |start| Record {
            start,
            len: message.bytes().len() as u32,
            envelope: *message.envelope(),
            key: CallKey { stream, incoming },
            method: request.method,
            revision: request.revision,
            operation,
            cancel,
            interceptor: None,
            scope,
            is_member: asked.member.is_some(),
        });
    }

    #[cold]
    fn postpone(&mut self, exchange: &mut Exchange, arrival: &Arrival<'_>, now: Instant) {
        let IncomingRequest {
            message,
            method,
            revision,
        } = arrival.request;
        let asked = arrival.asked;
        let cost = waiting::cost(message.bytes().len());
        let fits = exchange.waiting.bytes() + cost <= self.config().limits.waiting_cap_bytes;
        if !fits || self.load.is_over_budget() {
            return refuse(exchange.answer(self.config(), asked));
        }
        let mut entry = Entry::new(CancelToken::new(), Completion::of(&asked, now));
        entry.waiting = Some(Box::new(Waiting {
            message: message.detach(),
            method,
            revision,
        }));
        match insert(exchange, arrival, entry) {
            Ok(key) => {
                exchange.waiting.push(key, cost);
                if let Some(mut observed) = asked.observed.and_then(Undecided::take)
                    && let Some(entry) = exchange.incoming.get_mut(key)
                {
                    observed.waits(true);
                    entry.observed = Some(Box::new(observed));
                }
            }
            Err(_) => refuse(exchange.answer(self.config(), asked)),
        }
    }

    /// Removes a request of the peer that is answered or cancelled from its table. `None` if it was
    /// removed before. Only the caller that gets `Some` may write about the request (R-CAN-11).
    #[inline]
    pub fn end(
        &mut self,
        exchange: &mut Exchange,
        timers: &mut Timers,
        key: IncomingKey,
    ) -> Option<(OwnedId, Entry)> {
        let (id, entry) = exchange.incoming.remove(key)?;
        if let Some((timer, _)) = &entry.limit {
            timers.cancel(*timer);
        }
        match &entry.waiting {
            None => self.load.end(),
            Some(waiting) => exchange.waiting.subtract(waiting),
        }
        exchange.waiting.tidy(&exchange.incoming);
        Some((id, entry))
    }

    /// Cancels a request of the peer. If it has begun, its token receives `reason` and the host `told`.
    /// Returns whether the request was still in flight.
    pub fn cancel(
        &mut self,
        (exchange, key): (&mut Exchange, CallKey),
        timers: &mut Timers,
        reason: Option<&str>,
        told: Option<&str>,
        host: &mut dyn Host,
    ) -> bool {
        let Some((_, entry)) = self.end(exchange, timers, key.incoming) else {
            return false;
        };
        if let Some(observed) = entry.observed {
            observed.end(RequestOutcome::Cancelled, 0);
        }
        if entry.waiting.is_none() {
            entry.cancel.cancel(reason);
            host.cancelled(key, told);
        }
        true
    }

    /// Cancels those requests on a stream that `which` selects, whose answers cannot be delivered any
    /// more.
    pub fn cancel_those(
        &mut self,
        (stream, exchange): (StreamId, &mut Exchange),
        timers: &mut Timers,
        host: &mut dyn Host,
        which: impl Fn(&Entry) -> bool,
    ) {
        let those = exchange.incoming.iter().filter(|(.., entry)| which(entry));
        let keys: Vec<_> = those.map(|(key, ..)| key).collect();
        for incoming in keys {
            let key = CallKey { stream, incoming };
            let reason = Some("the connection ended");
            self.cancel((exchange, key), timers, reason, None, host);
        }
    }

    /// Whether a request waits on the stream and may begin.
    #[inline]
    pub fn can_begin(&self, exchange: &Exchange) -> bool {
        !exchange.waiting.is_empty() && self.load.has_room(exchange)
    }

    /// Begins the waiting requests for which there is room now.
    #[inline]
    pub fn begin_waiting(
        &mut self,
        (stream, exchange): (StreamId, &mut Exchange),
        timers: &mut Timers,
        host: &mut dyn Host,
    ) {
        if self.can_begin(exchange) {
            self.begin_those((stream, exchange), timers, host);
        }
    }

    #[cold]
    fn begin_those(
        &mut self,
        (stream, exchange): (StreamId, &mut Exchange),
        timers: &mut Timers,
        host: &mut dyn Host,
    ) {
        let mut started = Started::copying();
        while self.can_begin(exchange)
            && let Some(incoming) = exchange.waiting.pop()
        {
            let key = CallKey { stream, incoming };
            self.begin_one((exchange, key), timers, &mut started, host);
        }
        started.dispatch(host);
    }

    fn begin_one(
        &mut self,
        (exchange, key): (&mut Exchange, CallKey),
        timers: &mut Timers,
        started: &mut Started,
        host: &mut dyn Host,
    ) {
        // A request cancelled while it waited is no longer in the table.
        let Some(entry) = exchange.incoming.get_mut(key.incoming) else {
            return;
        };
        let Some(waiting) = entry.waiting.take() else {
            return;
        };
        self.load.begin();
        exchange.waiting.subtract(&waiting);
        let decide =
            |request: IncomingRequest<'_>, answer: Answer<'_>| host.request(request, answer);
        self.decide((exchange, key), timers, started, *waiting, decide);
    }

    /// Has the host decide on a request that is in the table.
    fn decide(
        &mut self,
        (exchange, key): (&mut Exchange, CallKey),
        timers: &mut Timers,
        started: &mut Started,
        request: Waiting,
        decide: impl FnOnce(IncomingRequest<'_>, Answer<'_>) -> Disposition,
    ) {
        let Some(entry) = exchange.incoming.get_mut(key.incoming) else {
            return;
        };
        let Waiting {
            message,
            method,
            revision,
        } = request;
        let message = message.as_ref();
        if let Some(observed) = &mut entry.observed {
            observed.waits(false);
        }
        let mut undecided = Undecided::of(&mut entry.observed);
        let mut asked = entry.asked(message.echo().unwrap_or(RequestId::NONE), revision, None);
        let cancel = entry.cancel.clone();
        asked.observed = undecided.get();
        let request = IncomingRequest {
            message,
            method,
            revision,
        };
        match decide(request, exchange.answer(self.config(), asked)) {
            Disposition::Answered => {
                self.end(exchange, timers, key.incoming);
            }
            Disposition::Deferred(operation) => {
                let undecided = asked.observed;
                let scope = undecided.and_then(|it| keep_observer(exchange, key.incoming, it));
                started.push(message.bytes(), |start| Record {
                    start,
                    len: message.bytes().len() as u32,
                    envelope: *message.envelope(),
                    key,
                    method,
                    revision,
                    operation,
                    cancel,
                    interceptor: None,
                    scope,
                    is_member: asked.member.is_some(),
                });
            }
        }
    }

    /// Passes a deferred request to the host again, unless it was cancelled meanwhile.
    pub fn awaited(
        &mut self,
        exchange: &mut Exchange,
        timers: &mut Timers,
        call: Call,
        awaited: Awaited,
        host: &mut dyn Host,
    ) {
        let key = call.reply.key();
        let request = Waiting {
            message: call.message,
            method: call.method,
            revision: call.reply.revision,
        };
        let mut started = Started::copying();
        let decide = |request: IncomingRequest<'_>, answer: Answer<'_>| {
            host.awaited(request, answer, awaited)
        };
        self.decide((exchange, key), timers, &mut started, request, decide);
        started.dispatch(host);
    }

    /// Answers every waiting request of a stream with an error.
    pub fn refuse_waiting(
        &mut self,
        exchange: &mut Exchange,
        timers: &mut Timers,
        kind: ErrorKind,
        why: &str,
    ) {
        while let Some(key) = exchange.waiting.pop() {
            let Some((_, mut entry)) = self.end(exchange, timers, key) else {
                continue;
            };
            let mut undecided = Undecided::of(&mut entry.observed);
            let Some(waiting) = &entry.waiting else {
                continue;
            };
            let id = waiting.message.as_ref().echo().unwrap_or(RequestId::NONE);
            let mut asked = entry.asked(id, waiting.revision, None);
            asked.observed = undecided.get();
            exchange.answer(self.config(), asked).error(kind, why, None);
        }
    }
}

/// Keeps the observer of a request that is answered later; returns what surrounds its handler.
#[cold]
fn keep_observer(
    exchange: &mut Exchange,
    key: IncomingKey,
    undecided: &Undecided,
) -> Option<RequestScope> {
    let observed = undecided.take()?;
    let scope = observed.scope();
    exchange.incoming.get_mut(key)?.observed = Some(Box::new(observed));
    scope
}

/// The `data` of an overload error: when to try again, in seconds.
pub(super) const RETRY_AFTER: &str = "{\"retryAfter\":1}";

/// Adds a request to the table.
#[inline]
fn insert(
    exchange: &mut Exchange,
    arrival: &Arrival<'_>,
    entry: Entry,
) -> Result<IncomingKey, Refused> {
    let id = arrival.asked.id;
    match arrival.vacant {
        Some(vacant) => exchange.incoming.insert_vacant(vacant, id, entry),
        None => exchange.incoming.insert_unnamed(id, entry),
    }
}

/// Refuses a request because there is no room.
pub(super) fn refuse(answer: Answer<'_>) {
    answer.error(
        ErrorKind::Overloaded,
        "too many requests",
        Some(RETRY_AFTER),
    );
}
