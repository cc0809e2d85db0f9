//! The waits between attempts to reconnect.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// How long to wait before the next attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait; each further wait is twice as long.
    pub first: Duration,
    /// The longest wait. After a connection that lasted longer than this, the waits start again from
    /// `first`.
    pub longest: Duration,
    /// How many times in a row a connection may fail to open, or be lost soon, before reconnecting is
    /// given up.
    pub attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(30),
            attempts: 20,
        }
    }
}

impl Backoff {
    /// How long to wait after that many failures in a row.
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let wait = self.first.saturating_mul(1 << doublings);
        wait.min(self.longest)
    }

    /// That wait, reduced at random by up to half, so that clients that lost one server together do not
    /// return together (R-WSK-04).
    pub(in crate::io) fn spread(&self, failures: u32) -> Duration {
        let wait = self.wait(failures);
        let chance = RandomState::new().hash_one(failures) as u32;
        wait - (wait / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_the_longest() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(1),
            attempts: 1,
        };
        let waits = [0, 1, 2, 3, 4, 5, 6, u32::MAX].map(|n| backoff.wait(n).as_millis());
        assert_eq!(waits, [100, 100, 200, 400, 800, 1000, 1000, 1000]);
    }

    /// R-WSK-04.
    #[test]
    fn waits_are_spread_over_their_second_half() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (0..100).map(|_| backoff.spread(4)).collect();
        let (whole, least) = (backoff.wait(4), backoff.wait(4) / 2);
        assert!(waits.iter().all(|wait| (least..=whole).contains(wait)));
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }
}
