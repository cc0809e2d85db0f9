//! When a server that cannot be reached is tried again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::{ConnectionError, RequestError};
use crate::sync::lock;

/// Failures in a row before attempts wait: a single one may be chance, and is not to delay other clients.
const FREE: u32 = 3;

/// The first wait; each further failure doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Longest wait between two attempts.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The attempts to open connections to one server, over all of its clients.
#[derive(Default)]
pub(super) struct Attempts(Mutex<Failures>);

#[derive(Default)]
struct Failures {
    /// How many there were in a row, and what the last one ended with.
    count: u32,
    last: Option<Unopened>,
    /// When the next attempt may begin.
    next: Option<Instant>,
    /// Whether an attempt is under way that others wait for.
    is_under_way: bool,
    /// Number of changes of what is known of the server.
    changes: u64,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Unopened {
    pub(super) error: RequestError,
    /// The attempt to connect that failed, or that the caller did not wait for to its end. Other callers may wait for it, too.
    pub(super) attempt: Option<u64>,
}

impl Unopened {
    /// A connection was lost soon after it was open, which is like an attempt that has failed.
    pub(super) fn lost() -> Self {
        Self {
            error: RequestError::Closed(ConnectionError::ClosedByPeer),
            attempt: Some(number()),
        }
    }
}

impl From<RequestError> for Unopened {
    fn from(error: RequestError) -> Self {
        let attempt = None;
        Self { error, attempt }
    }
}

/// A number that no other attempt of this process has.
pub(super) fn number() -> u64 {
    static ATTEMPTS: AtomicU64 = AtomicU64::new(1);
    ATTEMPTS.fetch_add(1, Ordering::Relaxed)
}

/// An attempt that has begun: what was known of the server by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun(u64);

impl Attempts {
    /// Begins an attempt. After some failures only one is made at a time, each later than the one before.
    ///
    /// # Errors
    /// That of the last attempt, if it is too early for another one.
    pub fn begin(&self, now: Instant) -> Result<Begun, Unopened> {
        let mut failures = lock(&self.0);
        if let (Some(last), Some(next)) = (&failures.last, failures.next) {
            if failures.is_under_way || now < next {
                return Err(last.clone());
            }
            failures.is_under_way = true;
        }
        Ok(Begun(failures.changes))
    }

    /// An attempt has failed. Of several at once only the first counts: they are no failures in a row.
    pub fn failed(&self, begun: Begun, why: &Unopened, now: Instant) {
        let mut failures = lock(&self.0);
        if begun.0 != failures.changes {
            return;
        }
        failures.changes += 1;
        failures.is_under_way = false;
        failures.count = failures.count.saturating_add(1);
        failures.last = Some(why.clone());
        if failures.count >= FREE {
            failures.next = Some(now + failures.wait());
        }
    }

    /// An attempt was given up by those who needed it, which says nothing of the server.
    pub fn given_up(&self, begun: Begun) {
        let mut failures = lock(&self.0);
        if begun.0 == failures.changes {
            failures.is_under_way = false;
        }
    }

    /// A connection is open.
    pub fn succeeded(&self) {
        let mut failures = lock(&self.0);
        *failures = Failures {
            changes: failures.changes + 1,
            ..Failures::default()
        };
    }
}

impl Failures {
    fn wait(&self) -> Duration {
        wait_after(self.count.saturating_sub(FREE))
    }
}

/// How long to wait when that many waits came before.
pub(super) fn wait_after(waits: u32) -> Duration {
    (FIRST_WAIT * (1 << waits.min(16))).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-CHN-14: a server that cannot be reached is not tried by each call.
    #[test]
    fn attempts_wait_twice_as_long_after_each_failure_and_one_at_a_time() {
        let (attempts, mut now) = (Attempts::default(), Instant::now());
        let error = Unopened::from(RequestError::TimedOut);
        for _ in 0..FREE {
            // Others begin at the same time, and fail after it.
            let all = [attempts.begin(now), attempts.begin(now)].map(Result::unwrap);
            for begun in all {
                attempts.failed(begun, &error, now);
            }
        }
        for wait in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let wait = Duration::from_millis(wait);
            now += wait - Duration::from_millis(1);
            assert_eq!(attempts.begin(now), Err(error.clone()), "{wait:?}");
            now += Duration::from_millis(1);
            attempts.given_up(attempts.begin(now).unwrap());
            let begun = attempts.begin(now).unwrap();
            now += LONGEST_WAIT * 2;
            assert!(attempts.begin(now).is_err(), "another one is under way");
            attempts.failed(begun, &error, now);
        }
        attempts.succeeded();
        for _ in 0..FREE {
            attempts.begin(now).unwrap();
        }
    }
}
