//! What the streams of a connection have in common, and what happens to submissions and timers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::budget::Share;
use super::bundle;
use super::config::Config;
use super::drain::Drain;
use super::handle::Handle;
use super::host::{CallKey, Host, StreamId};
use super::liveness::Liveness;
use super::opening::Phase;
use super::pace::Pace;
use super::pending::{Pending, Timer};
use super::queue::{Encoded, FrameKind, Submission};
use super::session::Session;
use super::shared::Shared;
use super::stall::Stall;
use super::stream::{Exchange, Stream};
use super::streams::Streams;
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
    /// Requests of the peer that have begun and are not yet answered, on all streams.
    pub in_flight: usize,
    /// All that have begun.
    pub(super) calls: usize,
    /// There since the connection has more than one stream.
    pub(super) session: Option<Box<Session>>,
    pub(super) drain: Option<Drain>,
    pub(super) stall: Stall,
    pub(super) liveness: Liveness,
    /// What the configuration's budget knows of this connection.
    share: Share,
    /// A notification found the output at its cap.
    pub(super) overrun: bool,
    /// How fast the peer may ask, if that is limited.
    asking: Option<Pace>,
    /// How fast this side reports, if that is limited.
    reporting: Option<Pace>,
    /// Progress is held back until a timer comes.
    waits_to_report: bool,
    /// Streams that a handler has let go, and how soon their readers may come back.
    pub(super) released: Vec<(StreamId, Duration)>,
    /// Requests that came as one and are not answered yet.
    pub(super) bundles: Vec<bundle::Open>,
    pub begun: Instant,
    /// What time it is in the turn at hand.
    pub(super) clock: Instant,
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
            session: None,
            drain: None,
            stall: Stall::default(),
            liveness: Liveness::new(now),
            share: Share::default(),
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

    /// Who is limited in its rates begins with all that is allowed at once.
    pub(super) fn set_paces(&mut self, now: Instant) {
        let pace = |rate: Option<Rate>| rate.map(|rate| Pace::new(rate, now));
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

    /// Whether all connections of the configuration hold more than they may.
    pub fn is_over_budget(&self) -> bool {
        self.config.budget.is_exceeded()
    }

    /// Whether what can be left out is not to be written now.
    fn is_crowded(&self, exchange: &Exchange) -> bool {
        exchange.output.len() > self.limits().output_mark_bytes || self.is_over_budget()
    }

    /// Whether the peer asks faster than it may.
    pub fn is_asking_too_fast(&mut self, now: Instant) -> bool {
        self.asking.as_mut().is_some_and(|pace| !pace.take(now))
    }

    /// Whether progress, or a log message, may be written now.
    fn may_report(&mut self, exchange: &Exchange, now: Instant) -> bool {
        let is_paced = |pace: &mut Pace| pace.take(now);
        !self.is_crowded(exchange)
            && !self.waits_to_report
            && self.reporting.as_mut().is_none_or(is_paced)
    }

    /// Takes over one submission of another thread. Its frame, if it is small, is the head of
    /// `frames`, and is taken off there.
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
                // The one step that decides between answered and cancelled (R-CAN-11).
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

    /// Writes a notification that may be neither dropped nor joined with another.
    fn notify(&mut self, exchange: &mut Exchange, frame: Encoded<'_>) {
        if exchange.output.len() + frame.len() > self.limits().output_cap_bytes {
            self.overrun = true;
        } else {
            exchange.take_over(frame);
        }
    }

    /// Lets time pass; gives the reason when it ends the connection.
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
                Timer::Stall => self.stalled(streams, now),
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

    /// A request of this side is over. Whether it was there.
    pub fn forget(&mut self, key: RequestKey) -> bool {
        self.pending.remove(key, &mut self.timers).is_some()
    }

    /// One timer that is due.
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

    /// Forgets every timer: nothing waits for time any more.
    pub fn stop_timers(&mut self) {
        self.pending.stop_timers();
        self.timers = TimerWheel::new(self.begun);
        self.waits_to_report = false;
        self.stall = Stall::default();
    }

    /// Writes the progress that was held back, where there is room again.
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

    /// What is true at the end of every turn; the reason to close, if there is one.
    pub fn settle(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        host: &mut dyn Host,
    ) -> Option<ConnectionError> {
        let (mut output, mut waiting, mut longest) = (0, 0, 0);
        for (id, Stream { reading, exchange }) in streams.iter_mut() {
            self.release_held(exchange, now);
            self.begin_waiting(id, exchange, host);
            output += exchange.output.len();
            waiting += reading.input.len() + exchange.waiting.bytes();
            longest = longest.max(exchange.output.len());
        }
        self.shared().set_output_bytes(output);
        let share = Share {
            requests: self.in_flight,
            bytes: output + waiting,
            calls: self.calls,
        };
        let config = &self.config;
        config.budget.change(&mut self.share, share);
        self.watch_stall(streams, longest, now);
        if self.overrun {
            return Some(ConnectionError::Stalled);
        }
        self.drained(streams)
    }

    /// Whether the driver made room, by taking output, for something that waits: there is
    /// something to do before any timer.
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

    /// This connection holds nothing any more.
    pub fn release_share(&mut self) {
        let config = &self.config;
        let share = Share {
            calls: self.calls,
            ..Share::default()
        };
        config.budget.change(&mut self.share, share);
    }
}

/// Tells the peer that nobody waits any more for a request of this side.
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
