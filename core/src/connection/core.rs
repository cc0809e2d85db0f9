//! The parts of a connection's state, and what happens between them: submissions, timers and the end of
//! each turn. The parts do not know one another.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::config::Config;
use super::drain::Drain;
use super::handle::Handle;
use super::host::{Host, Stray};
use super::incoming::Incoming;
use super::keys::{CallKey, StreamId};
use super::liveness::Liveness;
use super::load::{Load, Sums};
use super::observed::Undecided;
use super::observer::{RequestOutcome, SessionObserver};
use super::opening::{Move, Opening};
use super::opening_steps;
use super::pending::Pending;
use super::queue::{FrameKind, LateAnswer, Submission};
use super::reply;
use super::reports::Reports;
use super::shared::Shared;
use super::stream::{Exchange, Stream};
use super::streams::Streams;
use super::submitted_frame::Encoded;
use super::timers::{Timer, Timers};
use super::write_stall::WriteStall;
use crate::correlate::{IncomingKey, RequestKey};
use crate::error::{ConnectionError, RequestError};
use crate::limits::{Limits, later};
use crate::mcp::{ErrorKind, Method, Revision};
use crate::message::encode;

#[derive(Debug)]
pub(super) struct Core {
    pub config: Arc<Config>,
    pub handle: Handle,
    pub incoming: Incoming,
    pub pending: Pending,
    pub opening: Opening,
    pub liveness: Liveness,
    pub drain: Drain,
    stall: WriteStall,
    reports: Reports,
    pub timers: Timers,
    /// Whether the connection has had more than one stream at a time.
    pub is_session: bool,
    /// Streams that handlers have ended early, with the time after which their clients may reconnect.
    pub released: Vec<(StreamId, Duration)>,
    /// Whether a stream may have batches in progress.
    pub has_batches: bool,
    /// Observes the end of the session.
    pub session: Option<Box<dyn SessionObserver>>,
    /// Why the connection ends with this turn.
    end: Option<ConnectionError>,
    pub begun: Instant,
    /// The time at the start of the current turn.
    pub clock: Instant,
}

impl Core {
    pub fn new(handle: Handle, now: Instant) -> Self {
        let config = handle.config().clone();
        Self {
            incoming: Incoming {
                load: Load::new(config.clone(), now),
            },
            pending: Pending::default(),
            opening: Opening::default(),
            liveness: Liveness::new(now),
            drain: Drain::default(),
            stall: WriteStall::default(),
            reports: Reports::new(config.limits.report_rate, now),
            timers: Timers::default(),
            is_session: false,
            released: Vec::new(),
            has_batches: false,
            session: None,
            end: None,
            begun: now,
            clock: now,
            config,
            handle,
        }
    }

    #[inline]
    pub fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Counts a frame that was of no use, and reports it.
    pub fn stray(&self, what: Stray, frame: &[u8], host: &mut dyn Host) {
        self.shared().strays.fetch_add(1, Relaxed);
        host.stray(what, frame);
    }

    /// Completes a pending request of this side; returns whether somebody waited for it.
    pub fn complete(&mut self, key: RequestKey, error: RequestError) -> bool {
        // An error here means that the request had ended before.
        let outcome = || (RequestOutcome::of_failure(&error), 0);
        let pending = self.pending.end(key, outcome).is_some();
        pending && self.shared().outgoing.complete(key, Err(error)).is_ok()
    }

    /// Begins the opening of a client, on the first call only.
    #[inline]
    pub fn begin(&mut self, streams: &mut Streams, host: &mut dyn Host) {
        let limits = &self.config.limits;
        self.liveness.watch(limits, &mut self.timers, self.clock);
        if let Some(first) = streams.exchange(StreamId::FIRST)
            && let Some(next) = self.opening.begin(&self.config)
        {
            self.open(first, next, host);
        }
    }

    /// The revision in which to word an error when the frame names none.
    #[inline]
    pub fn fallback(&self) -> Revision {
        self.handle.revision().unwrap_or(Revision::NEWEST_HANDSHAKE)
    }

    /// Handles the answer to the opening's request, `key`, by `decide`; returns whether it was one. `outcome` is for its observer.
    pub fn opening_ended(
        &mut self,
        exchange: &mut Exchange,
        key: RequestKey,
        host: &mut dyn Host,
        outcome: impl FnOnce() -> (RequestOutcome, usize),
        decide: impl FnOnce(&mut Opening, &Config) -> Option<Move>,
    ) -> bool {
        let Some(step) = self.opening.step().filter(|step| step.key == key) else {
            return false;
        };
        let timer = step.timer;
        self.opening.end_step(outcome);
        if let Some(timer) = timer {
            self.timers.cancel(timer);
        }
        self.shared().outgoing.cancel(key);
        if let Some(next) = decide(&mut self.opening, &self.config) {
            self.open(exchange, next, host);
        }
        true
    }

    /// Does what the opening asks for.
    fn open(&mut self, exchange: &mut Exchange, next: Move, host: &mut dyn Host) {
        let (to, timers) = ((&*self.config, &self.handle.shared), &mut self.timers);
        match opening_steps::take(&mut self.opening, next, to, timers, exchange, self.clock) {
            Ok(Some(revision)) => {
                self.observe_session(exchange, revision);
                host.opened(revision);
            }
            Ok(None) => {}
            Err(reason) => self.end = Some(reason),
        }
    }

    /// Processes one submission of another thread. If its frame is short, it is the head of `frames`,
    /// and is removed there. Drains, the end and batches are up to the caller.
    pub fn submitted(&mut self, streams: &mut Streams, submission: Submission, frames: &mut &[u8]) {
        let now = self.clock;
        match submission {
            Submission::Frame { frame, kind } => {
                self.submitted_frame(streams, frame.find(frames), kind);
            }
            Submission::Request { frame, request } => {
                let frame = frame.find(frames);
                if let Some(exchange) = streams.exchange_or_first(request.on) {
                    let len = frame.len();
                    exchange.take_over(frame);
                    self.pending.insert(request, len, now);
                }
            }
            Submission::Cancelled { key, reason } => {
                let cancelled = || (RequestOutcome::Cancelled, 0);
                if let Some(on) = self.pending.end(key, cancelled) {
                    self.tell_cancelled(streams, on, key, reason.as_deref());
                }
            }
            Submission::Sleep { alarm, duration } => self.timers.sleep(later(now, duration), alarm),
            Submission::Limit { key, limit, answer } => {
                let exchange = streams.exchange(key.stream);
                if let Some(entry) = exchange.and_then(|it| it.incoming.get_mut(key.incoming)) {
                    let timer = self.timers.insert(later(now, limit), Timer::Overdue(key));
                    entry.limit = timer.map(|timer| (timer, answer));
                }
            }
            Submission::Batch { key, batch } => {
                let exchange = streams.exchange(key.stream);
                let live = exchange.filter(|it| it.incoming.get(key.incoming).is_some());
                if let Some(exchange) = live {
                    if let Some(limit) = batch.limit {
                        self.timers.insert(later(now, limit), Timer::Batch(key));
                    }
                    exchange.batches.begin(key.incoming, batch.members);
                    self.has_batches = true;
                }
            }
            Submission::Release { key, retry } => {
                let exchange = streams.exchange(key.stream);
                let live = exchange.is_some_and(|it| it.incoming.get(key.incoming).is_some());
                if live && key.stream != StreamId::FIRST {
                    self.released.push((key.stream, retry));
                }
            }
            Submission::Close | Submission::Drain(_) | Submission::Awaited(..) => {}
            #[cfg(feature = "server")]
            Submission::Detached(_) => {}
        }
    }

    fn submitted_frame(&mut self, streams: &mut Streams, frame: Encoded<'_>, kind: FrameKind) {
        let stream = match &kind {
            FrameKind::Event(key)
            | FrameKind::Answer { key, .. }
            | FrameKind::Progress(key)
            | FrameKind::Log(key) => key.stream,
            FrameKind::Notification => StreamId::FIRST,
        };
        let Some(exchange) = streams.exchange(stream) else {
            return;
        };
        let is_live =
            |exchange: &Exchange, key: CallKey| exchange.incoming.get(key.incoming).is_some();
        match kind {
            FrameKind::Answer { key, outcome } => {
                self.answered(exchange, key.incoming, outcome, frame);
            }
            FrameKind::Progress(key) => {
                if is_live(exchange, key) {
                    self.progress(exchange, key.incoming, frame);
                }
            }
            FrameKind::Log(key) => {
                if is_live(exchange, key) && self.may_report(exchange) {
                    exchange.take_over(frame);
                }
            }
            // Nothing follows an answer or a cancellation (R-CAN-02).
            FrameKind::Event(key) => {
                if is_live(exchange, key) {
                    self.notify(exchange, frame);
                }
            }
            FrameKind::Notification if exchange.is_over() => {}
            FrameKind::Notification => self.notify(exchange, frame),
        }
    }

    /// Writes the answer to a request of the peer, or gives it to the batch of the request.
    #[inline]
    fn answered(
        &mut self,
        exchange: &mut Exchange,
        key: IncomingKey,
        outcome: RequestOutcome,
        frame: Encoded<'_>,
    ) {
        // The only place that decides between answered and cancelled (R-CAN-11).
        let ended = self.incoming.end(exchange, &mut self.timers, key);
        let Some((id, entry)) = ended else {
            return;
        };
        if let Some(held) = &entry.held {
            exchange.append(held);
        }
        if let Some(observed) = entry.observed {
            observed.end(outcome, frame.len());
        }
        let Some(completion) = entry.completion else {
            return exchange.take_over(frame);
        };
        match completion.member {
            Some(member) => {
                let is_error = outcome.is_error(completion.dialect);
                exchange.batches.note(member, is_error, frame.to_vec());
            }
            None => {
                let closing = completion.closing(self.clock);
                let end = |out: &mut Vec<u8>| reply::close(out, id.as_ref(), &self.config, closing);
                let Exchange { framer, output, .. } = exchange;
                framer.append_frame(output, frame, Some(end));
            }
        }
    }

    fn progress(&mut self, exchange: &mut Exchange, key: IncomingKey, frame: Encoded<'_>) {
        let may_report = self.may_report(exchange);
        let Some(entry) = exchange.incoming.get_mut(key) else {
            return;
        };
        if may_report {
            entry.held = None;
            exchange.take_over(frame);
        } else if entry.held.replace((*frame).into()).is_none() {
            exchange.held.push(key);
        }
    }

    /// Whether progress or a log message may be written now. Counts one message if so.
    fn may_report(&mut self, exchange: &Exchange) -> bool {
        !self.incoming.load.is_crowded(exchange) && self.reports.may_send(self.clock)
    }

    /// Writes a notification that may be neither dropped nor replaced by a newer one.
    fn notify(&mut self, exchange: &mut Exchange, frame: Encoded<'_>) {
        if exchange.output.len() + frame.len() > self.limits().output_cap_bytes {
            self.end = Some(ConnectionError::Stalled);
        } else {
            exchange.take_over(frame);
        }
    }

    /// Fires the timers that are due; returns the reason if one of them ends the connection.
    pub fn expire(
        &mut self,
        streams: &mut Streams,
        host: &mut dyn Host,
    ) -> Option<ConnectionError> {
        let now = self.clock;
        while let Some((key, on)) = self.pending.expire(now) {
            let timed_out = Err(RequestError::TimedOut);
            if self.shared().outgoing.complete(key, timed_out).is_ok() {
                self.tell_cancelled(streams, on, key, Some("timeout"));
            }
        }
        while let Some(timer) = self.timers.poll(now) {
            let end = match timer {
                Timer::Opening(key) => {
                    if let Some(first) = streams.exchange(StreamId::FIRST) {
                        let timed_out = || (RequestOutcome::TimedOut, 0);
                        self.opening_ended(first, key, host, timed_out, Opening::timed_out);
                    }
                    self.end.take()
                }
                Timer::Drain => self.drain.timed_out(now),
                Timer::WriteStall => self.stalled(streams),
                Timer::Silence => self.silent(streams).err(),
                Timer::Idle => {
                    let is_busy = !self.pending.is_empty()
                        || streams.iter().any(|(_, stream)| stream.exchange.is_busy());
                    let limits = &self.config.limits;
                    self.liveness
                        .idle(limits, &mut self.timers, now, is_busy)
                        .err()
                }
                Timer::Report => {
                    self.reports.resume();
                    None
                }
                Timer::Sleep(alarm) => {
                    drop(alarm);
                    None
                }
                Timer::Batch(key) => {
                    if let Some(exchange) = streams.exchange(key.stream) {
                        exchange.batches.time_out(key.incoming);
                    }
                    None
                }
                Timer::Overdue(key) => {
                    if let Some(exchange) = streams.exchange(key.stream) {
                        self.overdue(exchange, key, host);
                    }
                    None
                }
            };
            if end.is_some() {
                return end;
            }
        }
        None
    }

    fn silent(&mut self, streams: &mut Streams) -> Result<(), ConnectionError> {
        let (now, config, shared) = (self.clock, &self.config, &self.handle.shared);
        // R-PNG-03
        let defined = |revision: Revision| Method::Ping.defined(revision, config.side);
        let ping = || {
            shared.revision().filter(|revision| defined(*revision))?;
            let first = streams.exchange(StreamId::FIRST)?;
            let key = shared.outgoing.register().ok()?;
            first.write(|out| encode::request(out, key.get(), Method::Ping.name(), None));
            Some(key)
        };
        let forget = |key| _ = shared.outgoing.cancel(key);
        let timers = &mut self.timers;
        self.liveness
            .silent(&config.limits, timers, now, forget, ping)
    }

    /// Ends the connection if the peer has taken no output; else watches on.
    fn stalled(&mut self, streams: &Streams) -> Option<ConnectionError> {
        let outputs = streams.iter().map(|(_, it)| it.exchange.output.len());
        let longest = outputs.max().unwrap_or(0);
        let too_much =
            longest > self.limits().output_cap_bytes || self.incoming.load.is_to_give_way();
        if self.stall.fired(taken(streams)) && too_much {
            return Some(ConnectionError::Stalled);
        }
        self.watch_stall(streams, longest);
        None
    }

    #[inline]
    fn watch_stall(&mut self, streams: &Streams, longest: usize) {
        let (limits, timers) = (&self.config.limits, &mut self.timers);
        let taken = || taken(streams);
        self.stall.watch(limits, timers, longest, taken, self.clock);
    }

    /// Answers a request of the peer whose time limit has passed.
    fn overdue(&mut self, exchange: &mut Exchange, key: CallKey, host: &mut dyn Host) {
        let ended = self.incoming.end(exchange, &mut self.timers, key.incoming);
        let Some((id, mut entry)) = ended else {
            return;
        };
        if let Some(held) = &entry.held {
            exchange.append(held);
        }
        if let Some((_, LateAnswer { revision, answer })) = entry.limit.take() {
            let mut asked = entry.asked(id.as_ref(), revision, Some(self.clock));
            let mut undecided = Undecided::of(&mut entry.observed);
            asked.observed = undecided.get();
            // The request is no longer in flight, so it cannot be deferred.
            let _ = answer(exchange.answer(&self.config, asked));
        }
        const WHY: Option<&str> = Some("it took too long");
        entry.cancel.cancel(WHY);
        host.cancelled(key, WHY);
    }

    /// When the next timer may be due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [self.timers.next_deadline(), self.pending.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Cancels every timer.
    pub fn stop_timers(&mut self) {
        self.timers.clear();
        self.pending.clear();
        self.reports.resume();
        self.stall = WriteStall::default();
    }

    /// Cancels every request on a stream, since answers cannot be delivered any more.
    pub fn cancel_all(&mut self, stream: StreamId, exchange: &mut Exchange, host: &mut dyn Host) {
        let timers = &mut self.timers;
        self.incoming
            .cancel_those((stream, exchange), timers, host, |_| true);
    }

    /// Begins to drain, or shortens the drain that is running.
    pub fn begin_drain(
        &mut self,
        streams: &mut Streams,
        grace: Duration,
        reason: ConnectionError,
        host: &mut dyn Host,
    ) {
        self.shared().drain(&reason);
        self.drain
            .begin(&mut self.timers, self.clock, grace, reason);
        host.draining();
        let (kind, why) = (ErrorKind::ShuttingDown, "shutting down");
        for (_, Stream { exchange, .. }) in streams.iter_mut() {
            let timers = &mut self.timers;
            self.incoming.refuse_waiting(exchange, timers, kind, why);
        }
    }

    /// The reason to close, once the connection drains, no request is in flight and all output is
    /// written.
    #[inline]
    fn drained(&self, streams: &Streams) -> Option<ConnectionError> {
        self.drain.finished(|| {
            self.pending.is_empty() && !streams.iter().any(|(_, it)| it.exchange.is_busy())
        })
    }

    /// Writes progress that was held back, as far as there is room again.
    #[inline]
    fn release_held(&mut self, exchange: &mut Exchange) {
        if !exchange.held.is_empty() {
            self.release_those(exchange);
        }
    }

    #[cold]
    fn release_those(&mut self, exchange: &mut Exchange) {
        let is_there = |exchange: &Exchange, key| {
            let entry = exchange.incoming.get(key);
            entry.is_some_and(|entry| entry.held.is_some())
        };
        while let Some(key) = exchange.held.first().copied() {
            if is_there(exchange, key) && !self.may_report(exchange) {
                break;
            }
            exchange.held.swap_remove(0);
            let entry = exchange.incoming.get_mut(key);
            if let Some(held) = entry.and_then(|entry| entry.held.take()) {
                exchange.append(&held);
            }
        }
        if !exchange.held.is_empty() && !self.incoming.load.is_crowded(exchange) {
            self.reports.wait(&mut self.timers, self.clock);
        }
    }

    /// Updates the budget with what this connection holds now.
    pub fn count(&mut self, streams: &Streams) {
        let mut sums = Sums::default();
        streams.iter().for_each(|(_, stream)| sums.add(stream));
        self.incoming.load.note(sums);
    }

    /// Restores the invariants at the end of every turn; returns the reason to close, if there is one.
    pub fn settle(
        &mut self,
        streams: &mut Streams,
        host: &mut dyn Host,
    ) -> Option<ConnectionError> {
        let mut sums = Sums::default();
        for (id, stream) in streams.iter_mut() {
            let Stream { exchange, .. } = stream;
            self.release_held(exchange);
            self.incoming
                .begin_waiting((id, exchange), &mut self.timers, host);
            sums.add(stream);
        }
        self.incoming.load.note(sums);
        self.shared().set_output_bytes(sums.output);
        self.watch_stall(streams, sums.longest);
        self.end.take().or_else(|| self.drained(streams))
    }

    /// Whether written output has made room for something that waits: work before any timer fires.
    pub fn has_room_for_more(&self, streams: &Streams) -> bool {
        let backed_up = self.shared().output_bytes() > self.limits().output_cap_bytes;
        let mut output = 0;
        for (_, Stream { exchange, .. }) in streams.iter() {
            output += exchange.output.len();
            let may_report =
                || !self.reports.is_waiting() && !self.incoming.load.is_crowded(exchange);
            if self.incoming.can_begin(exchange) || !exchange.held.is_empty() && may_report() {
                return true;
            }
        }
        backed_up && output <= self.limits().output_cap_bytes || self.drained(streams).is_some()
    }

    /// Whether no state of earlier requests is left on the connection of a server.
    pub fn is_blank(&self) -> bool {
        let shared = self.shared();
        self.config.side == crate::mcp::Side::Server
            && !self.handle.is_closed()
            && !self.handle.is_draining()
            && self.handle.revision().is_none()
            && self.incoming.load.is_idle()
            && self.end.is_none()
            && self.pending.is_empty()
            && self.timers.is_empty()
            && self.released.is_empty()
            && shared.queue.is_empty()
            && shared.outgoing.pending_count() == 0
    }

    /// Prepares a blank connection for another peer, as of its last turn.
    pub fn reset(&mut self) {
        let now = self.clock;
        self.incoming.load.release();
        self.incoming.load.reset_rate(now);
        self.shared().set_output_bytes(0);
        self.shared().set_log_level(super::shared::FIRST_LOG_LEVEL);
        self.liveness = Liveness::new(now);
        self.reports = Reports::new(self.limits().report_rate, now);
        self.begun = now;
    }
}

/// Bytes that the peer has taken on all streams.
fn taken(streams: &Streams) -> u64 {
    let outputs = streams.iter().map(|(_, stream)| &stream.exchange.output);
    outputs.map(|output| output.taken()).sum()
}
