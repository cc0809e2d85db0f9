//! How much each client may do in a period.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{MAX_RATED_CLIENTS, Quota};

/// What each client has used up, on the clock that the caller brings.
pub(super) struct Quotas {
    quota: Quota,
    clients: Mutex<HashMap<Box<str>, Used>>,
}

/// The calls of one period, which begins with the first of them.
struct Used {
    since: Instant,
    calls: u64,
}

impl Used {
    fn left(&self, quota: Quota, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        quota.period.saturating_sub(passed)
    }
}

impl Quotas {
    pub fn new(quota: Quota) -> Self {
        Self {
            quota,
            clients: Mutex::default(),
        }
    }

    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Takes one call of `client`.
    ///
    /// # Errors
    /// There is none: how long until the next period.
    pub fn take(&self, client: &str, now: Instant) -> Result<(), Duration> {
        let quota = self.quota;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if !clients.contains_key(client) && clients.len() >= MAX_RATED_CLIENTS {
            // Whose period is over begins as a new one would.
            clients.retain(|_, used| !used.left(quota, now).is_zero());
        }
        let known = clients.contains_key(client) || clients.len() < MAX_RATED_CLIENTS;
        // Beyond that all the others are one.
        let name = if known { client } else { "" };
        let fresh = || Used {
            since: now,
            calls: 0,
        };
        let used = clients.entry(name.into()).or_insert_with(fresh);
        if used.left(quota, now).is_zero() {
            *used = fresh();
        }
        if used.calls >= quota.calls {
            return Err(used.left(quota, now));
        }
        used.calls += 1;
        Ok(())
    }
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Quotas").field(&self.quota).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const QUOTA: Quota = Quota {
        calls: 2,
        period: DAY,
    };

    #[test]
    fn each_client_has_its_own_in_each_period() {
        let (quotas, now) = (Quotas::new(QUOTA), Instant::now());
        let took = |client, after| {
            (0..5)
                .filter(|_| quotas.take(client, now + after).is_ok())
                .count()
        };
        let hour = DAY / 24;
        assert_eq!((took("a", Duration::ZERO), took("b", hour)), (2, 2));
        assert_eq!(quotas.take("a", now + hour), Err(DAY - hour));
        assert_eq!((took("a", DAY), took("b", DAY)), (2, 0));
        assert_eq!(took("b", DAY + hour), 2);
    }

    #[test]
    fn no_more_clients_are_kept_than_may_be() {
        let (quotas, now) = (Quotas::new(QUOTA), Instant::now());
        let held = || quotas.clients.lock().unwrap().len();
        for n in 0..MAX_RATED_CLIENTS + 10 {
            let _ = quotas.take(&n.to_string(), now);
        }
        assert_eq!(held(), MAX_RATED_CLIENTS + 1, "and one for all the others");
        assert!(quotas.take("one more", now).is_err());
        assert!(quotas.take("0", now).is_ok(), "who is known has its own");
        assert!(quotas.take("late", now + DAY).is_ok());
        assert_eq!(held(), 1);
    }
}
