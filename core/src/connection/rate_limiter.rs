//! A token bucket on the driver's clock.

use std::time::{Duration, Instant};

use crate::limits::Rate;

/// The state of a token bucket with a [`Rate`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimiter {
    rate: Rate,
    /// Tokens left, with fractions.
    left: f64,
    since: Instant,
}

impl RateLimiter {
    /// Creates a full bucket.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self {
            rate,
            left: f64::from(rate.burst.max(1)),
            since: now,
        }
    }

    /// Takes one token; returns whether there was one.
    pub fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let gained = passed.as_secs_f64() * self.rate.exact_per_second();
        self.left = (self.left + gained).min(f64::from(self.rate.burst.max(1)));
        self.since = self.since.max(now);
        let taken = self.left >= 1.0;
        if taken {
            self.left -= 1.0;
        }
        taken
    }

    /// Tokens missing to a full bucket, in thousandths.
    pub fn missing(&self, now: Instant) -> u128 {
        let passed = now.saturating_duration_since(self.since);
        let gained = passed.as_secs_f64() * self.rate.exact_per_second();
        let missing = f64::from(self.rate.burst.max(1)) - self.left - gained;
        (missing.max(0.0) * 1000.0) as u128
    }

    /// How long, counted from the last `take`, until there is a token again.
    pub fn wait(&self) -> Duration {
        let missing = (1.0 - self.left).max(0.0);
        let seconds = missing / self.rate.exact_per_second();
        // Slightly longer, so that rounding wakes nobody too early.
        Duration::from_secs_f64(seconds) + Duration::from_micros(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SLOWEST_REFILL;

    /// As on a store, where a bucket is at most as slow.
    #[test]
    fn a_rate_of_nothing_allows_its_burst_once() {
        let start = Instant::now();
        let rate = Rate {
            burst: 2,
            per_second: 0,
        };
        let mut pace = RateLimiter::new(rate, start);
        assert!(pace.take(start) && pace.take(start) && !pace.take(start));
        let half = SLOWEST_REFILL / 2;
        let wait = pace.wait();
        assert!(
            wait >= half && wait < half + Duration::from_secs(1),
            "{wait:?}"
        );
        assert!(!pace.take(start + half / 2) && pace.take(start + wait));
    }

    #[test]
    fn a_burst_at_once_then_so_many_in_each_second() {
        let start = Instant::now();
        let rate = Rate {
            burst: 10,
            per_second: 4,
        };
        let mut pace = RateLimiter::new(rate, start);
        let taken = |pace: &mut RateLimiter, at: Duration| {
            (0..100).filter(|_| pace.take(start + at)).count()
        };
        assert_eq!(taken(&mut pace, Duration::ZERO), 10);
        assert_eq!(taken(&mut pace, Duration::from_millis(249)), 0);
        assert_eq!(taken(&mut pace, Duration::from_secs(1)), 4);
        assert_eq!(taken(&mut pace, Duration::from_secs(1)), 0);
        let again = Duration::from_secs(1) + pace.wait();
        assert_eq!(taken(&mut pace, again), 1);
        assert_eq!(
            taken(&mut pace, Duration::from_secs(1000)),
            10,
            "no more than a burst"
        );
    }
}
