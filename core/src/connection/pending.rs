//! What the driver's side keeps of this side's own requests: deadlines and progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::deadlines::Deadlines;
use super::handle::{PartialFn, Progress, ProgressFn};
use super::host::{CallKey, StreamId};
use super::queue::Request;
use super::shared::Shared;
use super::sleep::Alarm;
use crate::correlate::{Beside, RequestKey, TimerKey, TimerWheel};
use crate::error::RequestError;
use crate::json::{number, reader};
use crate::limits::later;
use crate::message::{Field, MessageRef};

/// Timers of one connection.
#[derive(Debug)]
pub(crate) enum Timer {
    /// The soft or hard deadline of a request.
    Request(RequestKey),
    /// The step of the handshake under way.
    Opening(RequestKey),
    /// The peer has taken nothing of an output above its cap.
    Stall,
    /// A grace period.
    Drain,
    /// Nothing was heard for so long.
    Silence,
    /// Nothing happened for so long.
    Idle,
    /// Progress that was held back may go on.
    Report,
    /// A handler sleeps.
    Sleep(Alarm),
    /// A request of the peer is to be answered by now.
    Overdue(CallKey),
    /// The requests that came as one on that stream are to be answered by now.
    Bundle(StreamId),
}

struct Own {
    /// The stream that it went out on.
    on: StreamId,
    /// Its timer, if it is not in the line of deadlines.
    timer: Option<TimerKey>,
    begun: Instant,
    /// When there was news of it last.
    news: Instant,
    /// How long to wait without news.
    timeout: Duration,
    /// How long to wait in all, whatever the news (R-CAN-09).
    max_timeout: Duration,
    progress: Option<ProgressFn>,
    partial: Option<PartialFn>,
    last: f64,
}

/// The requests of this side that were written and not yet answered.
#[derive(Default)]
pub(crate) struct Pending {
    requests: Beside<Own>,
    deadlines: Deadlines,
}

impl Pending {
    pub fn insert(&mut self, request: Request, timers: &mut TimerWheel<Timer>, now: Instant) {
        let wait = request.timeout.min(request.max_timeout);
        let own = Own {
            on: request.on,
            timer: self.arm(later(now, wait), request.key, timers),
            begun: now,
            news: now,
            timeout: request.timeout,
            max_timeout: request.max_timeout,
            progress: request.progress,
            partial: request.partial,
            last: f64::NEG_INFINITY,
        };
        self.requests.insert(request.key, own);
    }

    /// The request is over. The stream that it went out on, if it was there.
    pub fn remove(&mut self, key: RequestKey, timers: &mut TimerWheel<Timer>) -> Option<StreamId> {
        let own = self.requests.remove(key)?;
        if let Some(timer) = own.timer {
            timers.cancel(timer);
        }
        let requests = &self.requests;
        self.deadlines
            .tidy(requests.len(), |key| requests.contains(key));
        Some(own.on)
    }

    /// Whether that request was written and is not over.
    pub fn contains(&self, key: RequestKey) -> bool {
        self.requests.contains(key)
    }

    /// Sets the clock on a request.
    fn arm(
        &mut self,
        due: Instant,
        key: RequestKey,
        timers: &mut TimerWheel<Timer>,
    ) -> Option<TimerKey> {
        match self.deadlines.push(due, key) {
            true => None,
            false => Some(timers.insert(due, Timer::Request(key))),
        }
    }

    /// When the next of those is due that are no timers of the wheel.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// One of those that is due.
    pub fn poll(&mut self, now: Instant) -> Option<Timer> {
        self.deadlines.pop(now).map(Timer::Request)
    }

    /// Nothing is due any more.
    pub fn stop_timers(&mut self) {
        self.deadlines.clear();
    }

    /// A request's timer fired. If it timed out, the stream on which the peer is to be told.
    pub fn expire(
        &mut self,
        key: RequestKey,
        shared: &Shared,
        timers: &mut TimerWheel<Timer>,
        now: Instant,
    ) -> Option<StreamId> {
        let own = self.requests.get_mut(key)?;
        let due = later(own.news, own.timeout).min(later(own.begun, own.max_timeout));
        if due > now {
            let timer = self.arm(due, key, timers);
            if let Some(own) = self.requests.get_mut(key) {
                own.timer = timer;
            }
            return None;
        }
        let on = own.on;
        self.requests.remove(key);
        let late = shared.outgoing.complete(key, Err(RequestError::TimedOut));
        late.is_ok().then_some(on)
    }

    /// A progress notification. Whether it belonged to a request that waits for it.
    pub fn progress(&mut self, message: &MessageRef<'_>, now: Instant) -> bool {
        let token = message.raw(Field::Progress).and_then(number::as_u64);
        let own = token
            .and_then(RequestKey::from_wire)
            .and_then(|key| self.requests.get_mut(key));
        let (Some(own), Some(params)) = (own, message.params()) else {
            return false;
        };
        let value = |name| reader::find(params, name).and_then(number::as_f64);
        let Some(progress) = value("progress") else {
            return false;
        };
        own.news = now;
        // R-PRG-02: what does not increase is no news.
        if progress <= own.last {
            return false;
        }
        own.last = progress;
        if let Some(report) = &own.progress {
            let sentence = reader::find(params, "message").and_then(reader::as_str);
            let news = Progress {
                progress,
                total: value("total"),
                message: sentence.as_deref(),
            };
            // A report that panics takes nothing along.
            let _ = catch_unwind(AssertUnwindSafe(|| report(news)));
        }
        true
    }

    /// The one request that waits, if it is one.
    pub fn only(&self) -> Option<RequestKey> {
        self.requests.only()
    }

    /// A part of the answer of an action: raw JSON. Whether somebody waits for the rest.
    pub fn part(&mut self, key: RequestKey, data: &str, now: Instant) -> bool {
        let Some(own) = self.requests.get_mut(key) else {
            return false;
        };
        own.news = now;
        if let Some(report) = &own.partial {
            let _ = catch_unwind(AssertUnwindSafe(|| report(data)));
        }
        true
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("requests", &self.len())
            .finish()
    }
}
