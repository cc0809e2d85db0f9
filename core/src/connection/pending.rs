//! This side's requests on the driver's side: deadlines and progress.

use std::time::Instant;

use super::keys::StreamId;
use super::observer::RequestOutcome;
use super::options::Progress;
use super::queue::{InterimFn, Request, TimeLimits};
use crate::correlate::{Deadlines, RequestKey, SecondaryMap};
use crate::json::{number, reader};
use crate::limits::later;
use crate::message::{Field, MessageRef};
use crate::panics::contain;

/// A request of this side that was sent.
struct Sent {
    request: Request,
    begun: Instant,
    /// When the request was sent or last made progress.
    news: Instant,
    /// The progress reported last.
    last: f64,
}

impl Sent {
    /// When to give up waiting, unless there is progress.
    fn due(&self) -> Instant {
        let TimeLimits {
            timeout,
            max_timeout,
        } = self.request.time;
        later(self.news, timeout).min(later(self.begun, max_timeout))
    }
}

/// The requests of this side that were sent and are not answered yet.
#[derive(Default)]
pub(crate) struct Pending {
    requests: SecondaryMap<Sent>,
    deadlines: Deadlines<RequestKey>,
}

impl Pending {
    /// Adds a request that was sent, with the length of its frame.
    pub fn insert(&mut self, mut request: Request, frame_len: usize, now: Instant) {
        let key = request.key;
        if let Some(observed) = &mut request.observed {
            observed.sent(now, frame_len);
        }
        self.watch(
            key,
            later(now, request.time.timeout.min(request.time.max_timeout)),
        );
        let sent = Sent {
            request,
            begun: now,
            news: now,
            last: f64::NEG_INFINITY,
        };
        self.requests.insert(key, sent);
    }

    /// Removes a request that is over, with its outcome and the length of its answer; returns the stream on which it was
    /// sent, if it was pending.
    pub fn end(
        &mut self,
        key: RequestKey,
        outcome: impl FnOnce() -> (RequestOutcome, usize),
    ) -> Option<StreamId> {
        let take = |own: &mut Sent| (own.request.on, own.request.observed.take());
        let (on, observed) = self.requests.remove(key, take)?;
        if let Some(observed) = observed {
            let (outcome, answer_bytes) = outcome();
            observed.end(outcome, answer_bytes);
        }
        Some(on)
    }

    /// Whether the request was sent and is still pending.
    pub fn contains(&self, key: RequestKey) -> bool {
        self.requests.contains(key)
    }

    /// Removes a request that is overdue at `now`; returns its key and the stream on which it was sent.
    /// Call this until it returns `None`.
    pub fn expire(&mut self, now: Instant) -> Option<(RequestKey, StreamId)> {
        loop {
            let key = self.deadlines.poll(now)?;
            let Some(own) = self.requests.get_mut(key) else {
                continue;
            };
            let due = own.due();
            if due <= now {
                let timed_out = || (RequestOutcome::TimedOut, 0);
                return self.end(key, timed_out).map(|on| (key, on));
            }
            // There was progress.
            self.watch(key, due);
        }
    }

    fn watch(&mut self, key: RequestKey, due: Instant) {
        let (requests, live) = (&self.requests, self.requests.len());
        let is_live = |key: &RequestKey| requests.contains(*key);
        self.deadlines.insert(due, key, live, is_live);
    }

    /// The time of the next [`expire`](Self::expire); `None` without requests. Never later than the
    /// first deadline.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next().filter(|_| !self.is_empty())
    }

    /// Forgets all requests.
    pub fn clear(&mut self) {
        *self = Self::default();
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
        if let Some(InterimFn::Progress(report)) = &own.request.interim {
            let sentence = reader::find(params, "message").and_then(reader::as_str);
            let news = Progress {
                progress,
                total: value("total"),
                message: sentence.as_deref(),
            };
            contain("a receiver of progress", || report(news));
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
        if let Some(InterimFn::Part(report)) = &own.request.interim {
            contain("a receiver of parts", || report(data));
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
