//! Keepalive and idle timeout: whether the peer still responds, and whether the connection is still
//! used.
//!
//! Each of the two has one timer. When a timer fires, it is set again according to what happened
//! meanwhile, so received traffic only costs storing a timestamp.

use std::time::Instant;

use super::timers::{Timer, Timers};
use crate::correlate::RequestKey;
use crate::error::ConnectionError;
use crate::limits::{Limits, later};

/// State of the keepalive and the idle timeout.
#[derive(Debug)]
pub(super) struct Liveness {
    /// When something last arrived.
    heard: Instant,
    /// When something last arrived or was in flight.
    active: Instant,
    watching: bool,
    /// The ping that is not answered yet, and when it was sent.
    asked: Option<(RequestKey, Instant)>,
}

impl Liveness {
    pub fn new(now: Instant) -> Self {
        Self {
            heard: now,
            active: now,
            watching: false,
            asked: None,
        }
    }

    /// Records that something arrived.
    pub fn note(&mut self, now: Instant) {
        self.heard = now;
        self.active = now;
    }

    /// Starts both timers, on the first call only.
    #[inline]
    pub fn watch(&mut self, limits: &Limits, timers: &mut Timers, now: Instant) {
        if std::mem::replace(&mut self.watching, true) {
            return;
        }
        let clocks = [
            (limits.keepalive_interval, Timer::Silence),
            (limits.idle_timeout, Timer::Idle),
        ];
        for (wait, timer) in clocks {
            if let Some(wait) = wait {
                timers.insert(later(now, wait), timer);
            }
        }
    }

    /// Handles the keepalive timer, which is set again. If the peer has been silent, sends a ping by
    /// `ping`, which returns its key, or `None` if this side may not send one. `forget` is called with a
    /// ping that was not answered.
    ///
    /// # Errors
    /// A ping got no sign of life in time: the connection ends.
    pub fn silent(
        &mut self,
        limits: &Limits,
        timers: &mut Timers,
        now: Instant,
        forget: impl FnOnce(RequestKey),
        ping: impl FnOnce() -> Option<RequestKey>,
    ) -> Result<(), ConnectionError> {
        let Some(interval) = limits.keepalive_interval else {
            return Ok(());
        };
        if let Some((key, since)) = self.asked.take() {
            forget(key);
            if self.heard < since {
                return Err(ConnectionError::Unresponsive);
            }
        }
        let mut next = self.heard + interval;
        if next <= now {
            next = later(now, interval);
            if let Some(key) = ping() {
                self.asked = Some((key, now));
                next = later(now, limits.keepalive_timeout);
            }
        }
        timers.insert(next, Timer::Silence);
        Ok(())
    }

    /// Whether `key` is the ping that is not answered yet.
    pub fn is_ping(&self, key: RequestKey) -> bool {
        self.asked.is_some_and(|(asked, _)| asked == key)
    }

    /// Handles the idle timer, which is set again; `is_busy` says whether anything is in flight.
    ///
    /// # Errors
    /// The connection was idle for too long: it ends.
    pub fn idle(
        &mut self,
        limits: &Limits,
        timers: &mut Timers,
        now: Instant,
        is_busy: bool,
    ) -> Result<(), ConnectionError> {
        let Some(timeout) = limits.idle_timeout else {
            return Ok(());
        };
        if is_busy {
            self.active = now;
        }
        let until = self.active + timeout;
        if until <= now {
            return Err(ConnectionError::Idle);
        }
        timers.insert(until, Timer::Idle);
        Ok(())
    }
}
