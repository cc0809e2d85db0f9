//! Quotas per client.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::known::Known;
use crate::connection::Source;
use crate::limits::Quota;

/// The calls that each client has made in its period; the caller supplies the time.
pub(super) struct Quotas {
    quota: Quota,
    clients: Mutex<Known<Used>>,
}

/// The calls of one period, which begins with the first call.
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

    /// Counts one call of `client`.
    ///
    /// # Errors
    /// If the quota is used up: how long until the next period.
    pub fn take(&self, client: &Source, now: Instant) -> Result<(), Duration> {
        let quota = self.quota;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Used {
            since: now,
            calls: 0,
        };
        // A client whose period is over is treated like a new client.
        let weight = |used: &Used| match used.left(quota, now).is_zero() {
            true => 0,
            false => used.calls.into(),
        };
        let used = clients.of(client, fresh, weight);
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
    use crate::limits::MAX_RATED_CLIENTS;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const QUOTA: Quota = Quota {
        calls: 2,
        period: DAY,
    };

    fn client(n: usize) -> Source {
        Source::Principal(n.to_string().into())
    }

    #[test]
    fn each_client_has_its_own_in_each_period() {
        let (quotas, now) = (Quotas::new(QUOTA), Instant::now());
        let took = |n, after| {
            (0..5)
                .filter(|_| quotas.take(&client(n), now + after).is_ok())
                .count()
        };
        let hour = DAY / 24;
        assert_eq!((took(1, Duration::ZERO), took(2, hour)), (2, 2));
        assert_eq!(quotas.take(&client(1), now + hour), Err(DAY - hour));
        assert_eq!((took(1, DAY), took(2, DAY)), (2, 0));
        assert_eq!(took(2, DAY + hour), 2);
    }

    /// The clients that called least are forgotten first; a new client starts with its whole quota.
    #[test]
    fn no_more_clients_are_kept_than_may_be() {
        let (quotas, now) = (Quotas::new(QUOTA), Instant::now());
        let held = || quotas.clients.lock().unwrap().len();
        let used_up = client(usize::MAX);
        (0..2).for_each(|_| quotas.take(&used_up, now).unwrap());
        for n in 0..MAX_RATED_CLIENTS * 2 {
            assert!(quotas.take(&client(n), now).is_ok(), "{n}");
            assert!(held() <= MAX_RATED_CLIENTS);
        }
        assert!(quotas.take(&used_up, now).is_err(), "it is not forgotten");
        assert!(quotas.take(&used_up, now + DAY).is_ok());
    }
}
