//! Limits how fast this side sends progress and log messages.

use std::time::Instant;

use super::rate_limiter::RateLimiter;
use super::timers::{Timer, Timers};
use crate::limits::{Rate, later};

/// The rate of reports.
#[derive(Debug)]
pub(super) struct Reports {
    /// `None` for no limit.
    limiter: Option<RateLimiter>,
    /// Whether reports are held back until `Timer::Report` fires.
    waits: bool,
}

impl Reports {
    /// Starts with a full burst.
    pub fn new(rate: Option<Rate>, now: Instant) -> Self {
        Self {
            limiter: rate.map(|rate| RateLimiter::new(rate, now)),
            waits: false,
        }
    }

    /// Whether reports are held back until a timer fires.
    pub fn is_waiting(&self) -> bool {
        self.waits
    }

    /// Whether a report may be sent now. Counts one report if so.
    pub fn may_send(&mut self, now: Instant) -> bool {
        !self.waits
            && self
                .limiter
                .as_mut()
                .is_none_or(|limiter| limiter.take(now))
    }

    /// Sets a timer for the next report, if the rate is what holds reports back.
    pub fn wait(&mut self, timers: &mut Timers, now: Instant) {
        if let Some(limiter) = &self.limiter
            && !self.waits
        {
            self.waits = true;
            timers.insert(later(now, limiter.wait()), Timer::Report);
        }
    }

    /// The timer has fired, or was cancelled.
    pub fn resume(&mut self) {
        self.waits = false;
    }
}
