//! A circuit breaker: pauses calls to a server that keeps failing (R-ACT-36).
//!
//! ```text
//!   closed ── so many failures in a row ─▶ open ── its time is over ─▶ one call goes through
//!     ▲                                     ▲                            │           │
//!     ╰────────── it succeeds ──────────────┼────────────────────────────╯           │
//!                                           ╰──────────── it fails ──────────────────╯
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::later;

/// When the circuit breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// The number of consecutive failures that opens the breaker; 0 disables it.
    pub failures: u32,
    /// How long nothing is sent while the breaker is open.
    pub pause: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            failures: 5,
            pause: Duration::from_secs(30),
        }
    }
}

/// The state of the breaker.
#[derive(Debug, Default)]
pub(in crate::client) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    until: Option<Instant>,
    pause: Duration,
}

impl Breaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a call may be sent. After the pause one trial call may; further calls are
    /// refused until its outcome is known or another pause has passed.
    pub fn admits(&self, now: Instant) -> bool {
        let mut state = self.state();
        match state.until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                state.until = Some(later(now, state.pause));
                true
            }
        }
    }

    pub fn succeeded(&self) {
        *self.state() = State::default();
    }

    pub fn failed(&self, policy: &BreakerPolicy, now: Instant) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if policy.failures > 0 && state.failures >= policy.failures {
            state.pause = policy.pause;
            state.until = Some(later(now, policy.pause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ACT-36
    #[test]
    fn after_so_many_failures_there_is_a_pause_then_one_call() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let policy = BreakerPolicy {
            failures: 3,
            pause: Duration::from_secs(10),
        };
        let at = |seconds| start + Duration::from_secs(seconds);
        for _ in 0..2 {
            breaker.failed(&policy, at(0));
        }
        breaker.succeeded();
        for _ in 0..2 {
            breaker.failed(&policy, at(0));
            assert!(breaker.admits(at(0)));
        }
        breaker.failed(&policy, at(0));
        assert!(!breaker.admits(at(9)));
        assert!(breaker.admits(at(10)));
        assert!(!breaker.admits(at(11)), "one call is under way");
        breaker.failed(&policy, at(12));
        assert!(!breaker.admits(at(21)));
        assert!(breaker.admits(at(22)));
        breaker.succeeded();
        assert!(breaker.admits(at(22)) && breaker.admits(at(22)));
    }
}
