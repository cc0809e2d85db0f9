//! Graceful shutdown: requests in flight are finished, no new ones begin.

use std::time::{Duration, Instant};

use super::timers::{Timer, Timers};
use crate::error::ConnectionError;
use crate::limits::later;

/// Whether the connection drains, why, and until when.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// The reason to close, and the end of the grace period.
    running: Option<(ConnectionError, Instant)>,
}

impl Drain {
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Begins a drain, or shortens the one that is running.
    pub fn begin(
        &mut self,
        timers: &mut Timers,
        now: Instant,
        grace: Duration,
        reason: ConnectionError,
    ) {
        let end = later(now, grace);
        match &mut self.running {
            Some((_, until)) if *until <= end => return,
            Some((_, until)) => *until = end,
            None => self.running = Some((reason, end)),
        }
        timers.insert(end, Timer::Drain);
    }

    /// The reason to close, if the connection drains and `is_idle` says that nothing is left to finish.
    #[inline]
    pub fn finished(&self, is_idle: impl FnOnce() -> bool) -> Option<ConnectionError> {
        let (reason, _) = self.running.as_ref()?;
        is_idle().then(|| reason.clone())
    }

    /// The reason to close, if the grace period is over.
    pub fn timed_out(&self, now: Instant) -> Option<ConnectionError> {
        let (reason, _) = self.running.as_ref().filter(|(_, until)| *until <= now)?;
        Some(reason.clone())
    }
}
