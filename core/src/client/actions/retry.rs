//! The retry policy: number of tries and waits between them (R-ACT-35).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// How often, and after which waits, a call with a transient failure is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The total number of tries.
    pub tries: u32,
    /// The first wait. Each further wait is twice as long, plus a random share of up to one half.
    pub base: Duration,
    /// The longest wait. If a server asks for a longer one, the call is not retried.
    pub longest: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 3,
            base: Duration::from_secs(1),
            longest: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// Never retries.
    pub const NEVER: Self = Self {
        tries: 1,
        base: Duration::ZERO,
        longest: Duration::ZERO,
    };

    /// Returns the wait after this many failures; `None` to give up.
    pub(super) fn wait(&self, failures: u32, asked: Option<Duration>) -> Option<Duration> {
        if failures >= self.tries || asked.is_some_and(|asked| asked > self.longest) {
            return None;
        }
        let doublings = failures.saturating_sub(1).min(31);
        let wait = self.base.saturating_mul(1 << doublings);
        let chance = f64::from(RandomState::new().hash_one(failures) as u32) / f64::from(u32::MAX);
        let wait = wait.saturating_add((wait / 2).mul_f64(chance));
        Some(wait.min(self.longest).max(asked.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ACT-35: base · 2^attempt, with a random share, up to a maximum; the server's own wait is
    /// respected.
    #[test]
    fn waits_double_within_their_bounds() {
        let policy = RetryPolicy {
            tries: 6,
            base: Duration::from_secs(1),
            longest: Duration::from_secs(10),
        };
        for (failures, least, most) in
            [(1, 1.0, 1.5), (2, 2.0, 3.0), (3, 4.0, 6.0), (5, 10.0, 10.0)]
        {
            let waits: Vec<_> = (0..50)
                .map(|_| policy.wait(failures, None).unwrap())
                .collect();
            let within = |wait: &Duration| (least..=most).contains(&wait.as_secs_f64());
            assert!(waits.iter().all(within), "{failures}: {waits:?}");
        }
        assert_eq!(policy.wait(6, None), None);
        let asked = Some(Duration::from_secs(7));
        assert_eq!(policy.wait(1, asked), asked);
        assert_eq!(policy.wait(1, Some(Duration::from_secs(11))), None);
        assert_eq!(RetryPolicy::NEVER.wait(1, None), None);
        assert_eq!(RetryPolicy::default().tries, 3);
    }
}
