//! The timers of a connection.

use std::time::Instant;

use super::keys::CallKey;
use crate::correlate::{CancelToken, RequestKey, TimerKey, TimerQueue};
use crate::limits::MAX_SLEEPS;

/// How many sleeps may begin before abandoned ones are looked for.
const SLACK: usize = 1024;

/// The timers of a connection, except the deadlines of its own requests.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: TimerQueue<Timer>,
    /// The number of sleeps that may begin before abandoned ones are looked for.
    until_sweep: usize,
}

impl Timers {
    /// Starts a timer; `None` if there are about a million, which the limits on sleeps and requests prevent.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, timer: Timer) -> Option<TimerKey> {
        self.queue.insert(deadline, timer)
    }

    /// Starts the timer of a sleep, or ends the sleep at once if there are too many. Stops those of sleeps that
    /// were dropped when as many have begun as were left, or as there was room for.
    pub fn sleep(&mut self, deadline: Instant, alarm: SleepGuard) {
        if self.until_sweep == 0 {
            let is_waited_for = |timer: &Timer| match timer {
                Timer::Sleep(alarm) => !alarm.0.is_cancelled(),
                _ => true,
            };
            self.queue.retain(is_waited_for);
            let len = self.queue.len();
            let room = MAX_SLEEPS.saturating_sub(len).max(SLACK);
            self.until_sweep = (len + SLACK).min(room);
        }
        self.until_sweep -= 1;
        if self.queue.len() < MAX_SLEEPS {
            self.insert(deadline, Timer::Sleep(alarm));
        }
    }

    #[inline]
    pub fn cancel(&mut self, timer: TimerKey) {
        self.queue.cancel(timer);
    }

    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Timer> {
        self.queue.poll(now)
    }

    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.queue.next_deadline()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn clear(&mut self) {
        self.queue.clear();
    }
}

/// The action when a timer fires.
#[derive(Debug)]
pub(crate) enum Timer {
    /// The current step of the opening takes too long.
    Opening(RequestKey),
    /// The peer may have read no byte of a long output since the timer was set.
    WriteStall,
    /// A drain's grace period is over.
    Drain,
    /// Time to check whether the peer has sent anything (keepalive).
    Silence,
    /// Time to check whether the connection is idle.
    Idle,
    /// Progress that was held back may be sent.
    Report,
    /// A sleeping handler is to be woken.
    Sleep(SleepGuard),
    /// A request of the peer has reached its time limit.
    Overdue(CallKey),
    /// The batch that this request of the peer brought has reached its time limit.
    Batch(CallKey),
}

/// The driver's half of a sleep. Dropping it ends the sleep, whether the timer fired or the connection
/// was dropped.
#[derive(Debug)]
pub(crate) struct SleepGuard(pub CancelToken);

impl Drop for SleepGuard {
    fn drop(&mut self) {
        self.0.cancel(None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sleeps_are_bounded_in_number_and_those_that_were_dropped_do_not_count() {
        let now = Instant::now();
        let due = now + Duration::from_secs(600);
        let mut timers = Timers::default();
        for _ in 0..3 * MAX_SLEEPS {
            let token = CancelToken::new();
            timers.sleep(due, SleepGuard(token.clone()));
            token.cancel(None);
            assert!(timers.queue.len() <= SLACK);
        }
        let mut begin = || {
            let token = CancelToken::new();
            timers.sleep(due, SleepGuard(token.clone()));
            token
        };
        let sleeping: Vec<_> = (0..MAX_SLEEPS).map(|_| begin()).collect();
        assert!(begin().is_cancelled(), "it ends at once");
        let live = sleeping.iter().filter(|token| !token.is_cancelled());
        assert!(live.count() > MAX_SLEEPS - SLACK);
        assert!(timers.queue.len() <= MAX_SLEEPS);
        assert!(timers.poll(now).is_none() && timers.poll(due).is_some());
    }

    #[test]
    fn dropped_sleeps_do_not_crowd_out_others_near_the_limit() {
        let due = Instant::now() + Duration::from_secs(600);
        let mut timers = Timers::default();
        let mut begin = || {
            let token = CancelToken::new();
            timers.sleep(due, SleepGuard(token.clone()));
            token
        };
        let sleeping: Vec<_> = (0..MAX_SLEEPS - 4 * SLACK).map(|_| begin()).collect();
        for _ in 0..MAX_SLEEPS {
            begin().cancel(None);
        }
        assert!(!begin().is_cancelled(), "there is room");
        assert!(sleeping.iter().all(|token| !token.is_cancelled()));
    }
}
