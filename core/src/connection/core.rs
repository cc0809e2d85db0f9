//! The state that all streams of a connection share; processing of submissions and timers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::budget::Share;
use super::bundle;
use super::config::Config;
use super::crowd::Own;
use super::drain::Drain;
use super::handle::Handle;
use super::host::{CallKey, Host, StreamId};
use super::liveness::Liveness;
use super::opening::Phase;
use super::pending::{Pending, Timer};
use super::queue::{Encoded, FrameKind, Submission};
use super::rate_limiter::RateLimiter;
use super::shared::Shared;
use super::source::Source;
use super::stream::{Exchange, Stream};
use super::streams::Streams;
use super::write_stall::WriteStall;
use crate::correlate::{RequestKey, TimerWheel};
use crate::error::ConnectionError;
use crate::json::{number, string};
use crate::limits::{Limits, Rate, later};

#[derive(Debug)]
pub(crate) struct Core {
    pub config: Arc<Config>,
    pub handle: Handle,
    pub phase: Phase,
    pub pending: Pending,
    pub timers: TimerWheel<Timer>,
    /// Requests of the peer that have begun and are not yet answered, on all streams together.
    pub in_flight: usize,
    /// Requests of the peer passed to a handler since the connection was created.
    pub(super) calls: usize,
    /// Whether the connection has had more than one stream at a time.
    pub(super) is_session: bool,
    pub(super) drain: Option<Drain>,
    pub(super) stall: WriteStall,
    pub(super) liveness: Liveness,
    /// What this connection currently counts in the configuration's budget.
    share: Share,
    /// This connection's part in its source's count of requests; `None` for an unknown source.
    own: Option<Own>,
    /// Bytes kept of how the peer described itself in `initialize`.
    pub(super) introduced: usize,
    /// Whether a notification found the output at its cap.
    pub(super) overrun: bool,
    /// Limits how fast the peer may send requests; `None` for no limit.
    asking: Option<RateLimiter>,
    /// Limits how fast this side sends progress and log messages; `None` for no limit.
    reporting: Option<RateLimiter>,
    /// Whether progress is held back until `Timer::Report` fires.
    waits_to_report: bool,
    /// Streams that handlers have ended early, with the time after which their clients may reconnect.
    pub(super) released: Vec<(StreamId, Duration)>,
    /// Batches of requests (`batch/execute`) that are not answered yet.
    pub(super) bundles: Vec<bundle::Open>,
    pub begun: Instant,
    /// The time at the start of the current turn.
    pub(super) clock: Instant,
}

/// What the streams of a connection hold, in bytes.
#[derive(Clone, Copy, Default)]
struct Sums {
    output: usize,
    /// Input that is not a whole message yet, and requests that wait to begin.
    waiting: usize,
    /// The longest output of a single stream.
    longest: usize,
}

impl Sums {
    #[inline]
    fn add(&mut self, Stream { reading, exchange }: &Stream) {
        self.output += exchange.output.len();
        self.waiting += reading.input.held() + exchange.waiting.bytes();
        self.longest = self.longest.max(exchange.output.len());
    }
}

impl Core {
    pub fn new(handle: Handle, now: Instant) -> Self {
        let mut core = Self {
            config: handle.config().clone(),
            phase: Phase::default(),
            pending: Pending::default(),
            timers: TimerWheel::new(now),
            in_flight: 0,
            calls: 0,
            is_session: false,
            drain: None,
            stall: WriteStall::default(),
            liveness: Liveness::new(now),
            share: Share::default(),
            own: None,
            introduced: 0,
            overrun: false,
            asking: None,
            reporting: None,
            waits_to_report: false,
            handle,
            released: Vec::new(),
            bundles: Vec::new(),
            begun: now,
            clock: now,
        };
        core.set_paces(now);
        core
    }

    /// Starts the rate limits anew, each with a full burst.
    pub(super) fn set_paces(&mut self, now: Instant) {
        let pace = |rate: Option<Rate>| rate.map(|rate| RateLimiter::new(rate, now));
        self.asking = pace(self.config.limits.request_rate);
        self.reporting = pace(self.config.limits.report_rate);
        self.waits_to_report = false;
    }

    pub fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Whether no further request may begin: all connections of the configuration together hold too
    /// much, this connection has to give way, or its source has its full share of the requests in
    /// flight.
    pub fn is_over_budget(&self) -> bool {
        let budget = &self.config.budget;
        let is_greedy = |own: &Own| budget.is_used_up_by(own.requests());
        budget.is_exceeded() || self.is_to_give_way() || self.own.as_ref().is_some_and(is_greedy)
    }

    /// Counts the requests of this connection against `source`.
    pub fn set_source(&mut self, source: &Source) {
        if self.own.as_ref().is_some_and(|own| own.is_of(source)) {
            return;
        }
        let requests = self.share.requests;
        self.note_requests(requests, 0);
        self.own = self.config.budget.crowd.own(source);
        self.shared().set_source(source);
        self.note_requests(0, requests);
    }

    fn note_requests(&self, old: usize, new: usize) {
        if let Some(own) = &self.own {
            own.change(old, new);
        }
    }

    /// Whether this connection holds more than is served from the reserve for small messages.
    pub fn has_much(&self) -> bool {
        self.share.large > 0
    }

    /// Whether this connection holds that much while all connections together hold too much.
    pub fn is_to_give_way(&self) -> bool {
        self.has_much() && self.config.budget.is_tight()
    }

    /// Whether there is no room in the budget for what the next read of the stream may allocate.
    pub fn is_short_of_room(&self, streams: &Streams, id: StreamId) -> bool {
        let growth = streams
            .get(id)
            .map_or(0, |stream| stream.reading.input.growth());
        !self.config.budget.has_room(self.share.large, growth)
    }

    /// Whether to hold back what may be left out of the output: progress and log messages.
    fn is_crowded(&self, exchange: &Exchange) -> bool {
        exchange.output.len() > self.limits().output_mark_bytes || self.is_over_budget()
    }

    /// Whether the peer sends requests faster than allowed. Counts one request.
    pub fn is_asking_too_fast(&mut self, now: Instant) -> bool {
        self.asking.as_mut().is_some_and(|pace| !pace.take(now))
    }

    /// Whether progress or a log message may be written now. Counts one message if so.
    fn may_report(&mut self, exchange: &Exchange, now: Instant) -> bool {
        let is_paced = |pace: &mut RateLimiter| pace.take(now);
        !self.is_crowded(exchange)
            && !self.waits_to_report
            && self.reporting.as_mut().is_none_or(is_paced)
    }

    /// Processes one submission of another thread. If its frame is short, it is the head of `frames`,
    /// and is removed there.
    pub fn submitted(
        &mut self,
        streams: &mut Streams,
        submission: Submission,
        frames: &mut &[u8],
        now: Instant,
        host: &mut dyn Host,
    ) {
        match submission {
            Submission::Frame { frame, kind } => {
                self.submitted_frame(streams, frame.find(frames), kind, now, host);
            }
            Submission::Request { frame, request } => {
                let frame = frame.find(frames);
                if let Some(exchange) = streams.exchange_or_first(request.on) {
                    exchange.take_over(frame);
                    self.pending.insert(request, &mut self.timers, now);
                }
            }
            Submission::Cancelled { key, reason } => {
                if let Some(on) = self.pending.remove(key, &mut self.timers)
                    && !self.asks_in_actions()
                {
                    cancelled(streams.exchange_or_first(on), key, reason.as_deref());
                }
            }
            Submission::Sleep { alarm, duration } => {
                self.timers
                    .insert(later(now, duration), Timer::Sleep(alarm));
            }
            Submission::Limit { limit, overdue } => {
                let key = overdue.key;
                let exchange = streams.exchange(key.stream);
                if let Some(entry) = exchange.and_then(|it| it.incoming.get_mut(key.incoming)) {
                    let timer = self.timers.insert(later(now, limit), Timer::Overdue(key));
                    entry.limit = Some((timer, overdue));
                }
            }
            #[cfg(feature = "server")]
            Submission::Release { key, retry } => {
                let exchange = streams.exchange(key.stream);
                let live = exchange.is_some_and(|it| it.incoming.get(key.incoming).is_some());
                if live && key.stream != StreamId::FIRST {
                    self.released.push((key.stream, retry));
                }
            }
            Submission::Bundle(_) | Submission::Close | Submission::Drain(_) => {}
        }
    }

    fn submitted_frame(
        &mut self,
        streams: &mut Streams,
        frame: Encoded<'_>,
        kind: FrameKind,
        now: Instant,
        host: &mut dyn Host,
    ) {
        let stream = match &kind {
            FrameKind::Event(key) => key.stream,
            FrameKind::Answer(key) | FrameKind::Progress(key) | FrameKind::Log(Some(key)) => {
                key.stream
            }
            FrameKind::Log(None) | FrameKind::Notification => StreamId::FIRST,
        };
        let Some(exchange) = streams.exchange(stream) else {
            return;
        };
        match kind {
            FrameKind::Answer(CallKey { incoming, .. }) => {
                // The only place that decides between answered and cancelled (R-CAN-11).
                let Some((id, entry)) = self.end_incoming(exchange, incoming) else {
                    return;
                };
                if let Some(held) = entry.held {
                    exchange.append(&held);
                }
                match entry.action {
                    None => exchange.take_over(frame),
                    Some(action) => {
                        self.finish_action(exchange, stream, (id, action), frame, host);
                    }
                }
            }
            FrameKind::Progress(CallKey { incoming, .. }) => {
                if exchange.incoming.get(incoming).is_none() {
                    return;
                }
                let may_report = self.may_report(exchange, now);
                let Some(entry) = exchange.incoming.get_mut(incoming) else {
                    return;
                };
                if !may_report {
                    if entry.held.replace((*frame).into()).is_none() {
                        exchange.held.push(incoming);
                    }
                } else {
                    entry.held = None;
                    exchange.take_over(frame);
                }
            }
            FrameKind::Log(key) => {
                let live =
                    key.is_none_or(|key: CallKey| exchange.incoming.get(key.incoming).is_some());
                if live && self.may_report(exchange, now) {
                    exchange.take_over(frame);
                }
            }
            // Nothing follows an answer or a cancellation (R-CAN-02).
            FrameKind::Event(key) => {
                if exchange.incoming.get(key.incoming).is_some() {
                    self.notify(exchange, frame);
                }
            }
            FrameKind::Notification if exchange.is_over() => {}
            FrameKind::Notification => self.notify(exchange, frame),
        }
    }

    /// Writes a notification that may be neither dropped nor replaced by a newer one.
    fn notify(&mut self, exchange: &mut Exchange, frame: Encoded<'_>) {
        if exchange.output.len() + frame.len() > self.limits().output_cap_bytes {
            self.overrun = true;
        } else {
            exchange.take_over(frame);
        }
    }

    /// Fires the timers that are due; returns the reason if one of them ends the connection.
    pub fn expire(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        host: &mut dyn Host,
    ) -> Option<ConnectionError> {
        while let Some(timer) = self.next_timer(now) {
            let end = match timer {
                Timer::Request(key) => {
                    let shared = &self.handle.shared;
                    if let Some(on) = self.pending.expire(key, shared, &mut self.timers, now)
                        && !self.asks_in_actions()
                    {
                        cancelled(streams.exchange_or_first(on), key, Some("timeout"));
                    }
                    None
                }
                Timer::Opening(key) => {
                    let first = streams.exchange(StreamId::FIRST)?;
                    self.opening_timed_out(first, key, now, host).err()
                }
                Timer::Drain => self.drain_timed_out(now),
                Timer::WriteStall => self.stalled(streams, now),
                Timer::Silence => self.silent(streams, now),
                Timer::Idle => self.idle(streams, now),
                Timer::Report => {
                    self.waits_to_report = false;
                    None
                }
                Timer::Sleep(alarm) => {
                    drop(alarm);
                    None
                }
                Timer::Bundle(stream) => {
                    let mut bundles = self.bundles.iter_mut();
                    if let Some(bundle) = bundles.find(|bundle| bundle.is_on(stream)) {
                        bundle.overdue = true;
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

    /// Removes a pending request of this side; returns whether it was pending.
    pub fn forget(&mut self, key: RequestKey) -> bool {
        self.pending.remove(key, &mut self.timers).is_some()
    }

    /// Takes one timer that is due.
    fn next_timer(&mut self, now: Instant) -> Option<Timer> {
        let request = self.pending.poll(now);
        request.or_else(|| self.timers.poll(now))
    }

    /// When the next timer may be due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let other = self.timers.next_deadline();
        let request = self.pending.next_deadline();
        request.into_iter().chain(other).min()
    }

    /// Cancels every timer.
    pub fn stop_timers(&mut self) {
        self.pending.stop_timers();
        self.timers = TimerWheel::new(self.begun);
        self.waits_to_report = false;
        self.stall = WriteStall::default();
    }

    /// Writes progress that was held back, as far as there is room again.
    fn release_held(&mut self, exchange: &mut Exchange, now: Instant) {
        let is_there = |exchange: &Exchange, key| {
            let entry = exchange.incoming.get(key);
            entry.is_some_and(|entry| entry.held.is_some())
        };
        while let Some(key) = exchange.held.first().copied() {
            if is_there(exchange, key) && !self.may_report(exchange, now) {
                break;
            }
            exchange.held.swap_remove(0);
            let entry = exchange.incoming.get_mut(key);
            if let Some(held) = entry.and_then(|entry| entry.held.take()) {
                exchange.append(&held);
            }
        }
        if let Some(pace) = &self.reporting
            && !exchange.held.is_empty()
            && !self.is_crowded(exchange)
            && !self.waits_to_report
        {
            self.waits_to_report = true;
            let due = later(now, pace.wait());
            self.timers.insert(due, Timer::Report);
        }
    }

    /// Updates the budget with what this connection holds now.
    #[cfg(feature = "net")]
    pub fn count(&mut self, streams: &Streams) {
        let mut sums = Sums::default();
        streams.iter().for_each(|(_, stream)| sums.add(stream));
        self.note(sums);
    }

    fn note(
        &mut self,
        Sums {
            output, waiting, ..
        }: Sums,
    ) {
        let share = Share {
            requests: self.in_flight,
            calls: self.calls,
            kept: self.introduced,
            bytes: output + waiting + self.introduced,
            ..Share::in_transit(output + waiting)
        };
        let config = &self.config;
        self.note_requests(self.share.requests, share.requests);
        config.budget.change(&mut self.share, share);
    }

    /// Restores the invariants at the end of every turn; returns the reason to close, if there is one.
    pub fn settle(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        host: &mut dyn Host,
    ) -> Option<ConnectionError> {
        let mut sums = Sums::default();
        for (id, stream) in streams.iter_mut() {
            self.release_held(&mut stream.exchange, now);
            self.begin_waiting(id, &mut stream.exchange, host);
            sums.add(stream);
        }
        self.note(sums);
        let Sums {
            output, longest, ..
        } = sums;
        self.shared().set_output_bytes(output);
        self.watch_stall(streams, longest, now);
        if self.overrun {
            return Some(ConnectionError::Stalled);
        }
        self.drained(streams)
    }

    /// Whether the driver, by writing output, has made room for something that waits, so that there is
    /// work to do before any timer fires.
    pub fn has_room_for_more(&self, streams: &Streams) -> bool {
        let backed_up = self.shared().output_bytes() > self.limits().output_cap_bytes;
        let mut output = 0;
        for (_, Stream { exchange, .. }) in streams.iter() {
            output += exchange.output.len();
            let may_report = !self.waits_to_report && !self.is_crowded(exchange);
            if self.can_begin(exchange) || !exchange.held.is_empty() && may_report {
                return true;
            }
        }
        backed_up && output <= self.limits().output_cap_bytes || self.drained(streams).is_some()
    }

    /// Gives back everything that this connection counts in the budget.
    pub fn release_share(&mut self) {
        let config = &self.config;
        let share = Share {
            calls: self.calls,
            ..Share::default()
        };
        self.note_requests(self.share.requests, share.requests);
        config.budget.change(&mut self.share, share);
    }
}

/// Tells the peer that a request of this side is cancelled.
fn cancelled(exchange: Option<&mut Exchange>, key: RequestKey, reason: Option<&str>) {
    let Some(exchange) = exchange else { return };
    exchange.write(|out| {
        out.extend_from_slice(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":",
        );
        number::append(out, key.get());
        if let Some(reason) = reason {
            out.extend_from_slice(b",\"reason\":");
            string::append(out, reason);
        }
        out.extend_from_slice(b"}}");
    });
}
