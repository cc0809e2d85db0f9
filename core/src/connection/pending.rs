//! This side's requests on the driver's side: deadlines and progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::keys::StreamId;
use super::options::{PartialFn, Progress, ProgressFn};
use super::queue::Request;
use super::timers::{Timer, Timers};
use crate::correlate::{RequestKey, SecondaryMap, TimerKey};
use crate::json::{number, reader};
use crate::limits::later;
use crate::message::{Field, MessageRef};

/// A request of this side that was sent.
struct Sent {
    /// The stream on which the request was sent.
    on: StreamId,
    timer: TimerKey,
    begun: Instant,
    /// When the request was sent or last made progress.
    news: Instant,
    /// How long to wait without progress.
    timeout: Duration,
    /// How long to wait in total, regardless of progress (R-CAN-09).
    max_timeout: Duration,
    progress: Option<ProgressFn>,
    partial: Option<PartialFn>,
    last: f64,
}

/// The requests of this side that were sent and are not answered yet.
#[derive(Default)]
pub(crate) struct Pending {
    requests: SecondaryMap<Sent>,
}

impl Pending {
    pub fn insert(&mut self, request: Request, timers: &mut Timers, now: Instant) {
        let wait = request.timeout.min(request.max_timeout);
        let sent = Sent {
            on: request.on,
            timer: timers.insert(later(now, wait), Timer::Request(request.key)),
            begun: now,
            news: now,
            timeout: request.timeout,
            max_timeout: request.max_timeout,
            progress: request.progress,
            partial: request.partial,
            last: f64::NEG_INFINITY,
        };
        self.requests.insert(request.key, sent);
    }

    /// Removes a request that is over; returns the stream on which it was sent, if it was pending.
    pub fn remove(&mut self, key: RequestKey, timers: &mut Timers) -> Option<StreamId> {
        let own = self.requests.remove(key)?;
        timers.cancel(own.timer);
        Some(own.on)
    }

    /// Whether the request was sent and is still pending.
    pub fn contains(&self, key: RequestKey) -> bool {
        self.requests.contains(key)
    }

    /// Handles a deadline that has passed: sets the next one if there was progress, else removes the
    /// request, and returns the stream on which it was sent.
    pub fn expire(
        &mut self,
        key: RequestKey,
        timers: &mut Timers,
        now: Instant,
    ) -> Option<StreamId> {
        let own = self.requests.get_mut(key)?;
        let due = later(own.news, own.timeout).min(later(own.begun, own.max_timeout));
        if due > now {
            own.timer = timers.insert(due, Timer::Request(key));
            return None;
        }
        self.requests.remove(key).map(|own| own.on)
    }

    /// Handles a progress notification. Returns whether it names a pending request and increases.
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
        // R-PRG-02: progress that does not increase is not reported and leaves the deadline as it is.
        if progress <= own.last {
            return false;
        }
        own.news = now;
        own.last = progress;
        if let Some(report) = &own.progress {
            let sentence = reader::find(params, "message").and_then(reader::as_str);
            let news = Progress {
                progress,
                total: value("total"),
                message: sentence.as_deref(),
            };
            // A callback that panics affects nothing else.
            let _ = catch_unwind(AssertUnwindSafe(|| report(news)));
        }
        true
    }

    /// The pending request, if there is exactly one.
    pub fn only(&self) -> Option<RequestKey> {
        self.requests.only()
    }

    /// Handles a part of an action's answer, raw JSON. Returns whether the action is still pending.
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
