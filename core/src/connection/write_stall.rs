//! Disconnects a peer that reads nothing while its output is above its cap, or while its output is long
//! and all connections together hold too much.

use std::time::Instant;

use super::timers::{Timer, Timers};
use crate::correlate::TimerKey;
use crate::limits::{KEEP_BYTES, Limits, later};

/// The timer that watches such a peer.
#[derive(Debug, Default)]
pub(super) struct WriteStall {
    timer: Option<TimerKey>,
    /// Bytes that the peer had taken when the timer started.
    taken: u64,
    /// Whether the output was above its cap when the timer started.
    above_cap: bool,
}

impl WriteStall {
    /// Starts or stops the timer; `longest` is the length of the longest output, and `taken` says how
    /// many bytes the peer has taken so far.
    #[inline]
    pub fn watch(
        &mut self,
        limits: &Limits,
        timers: &mut Timers,
        longest: usize,
        taken: impl FnOnce() -> u64,
        now: Instant,
    ) {
        let above_cap = longest > limits.output_cap_bytes;
        let is_long = above_cap || longest > KEEP_BYTES;
        if !is_long && self.timer.is_none() {
            return;
        }
        if (!is_long || above_cap != self.above_cap)
            && let Some(timer) = self.timer.take()
        {
            timers.cancel(timer);
        }
        if is_long && self.timer.is_none() {
            self.taken = taken();
            self.above_cap = above_cap;
            let deadline = later(now, limits.stall_timeout);
            self.timer = timers.insert(deadline, Timer::WriteStall);
        }
    }

    /// Handles the timer; returns whether the peer has taken nothing since it was set.
    pub fn fired(&mut self, taken: u64) -> bool {
        self.timer = None;
        taken == self.taken
    }
}
