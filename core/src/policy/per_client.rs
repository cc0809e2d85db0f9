//! Rates and quotas: limits that hold for each client separately. The caller supplies the time.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::connection::{RateLimiter, RequestSource};
use crate::limits::{MAX_RATED_CLIENTS, Quota, Rate};
use crate::sync::lock;

/// Counts what one client has used of a limit.
pub(super) trait Counter {
    type Limit: Copy + fmt::Debug;

    fn new(limit: Self::Limit, now: Instant) -> Self;

    /// How much the client would gain if this counter were forgotten; 0 if it is no different from a new
    /// one.
    fn weight(&self, limit: Self::Limit, now: Instant) -> u128;

    /// Counts one request.
    ///
    /// # Errors
    /// If the limit is reached: how long until the client may send another request.
    fn take(&mut self, limit: Self::Limit, now: Instant) -> Result<(), Duration>;
}

impl Counter for RateLimiter {
    type Limit = Rate;

    fn new(limit: Rate, now: Instant) -> Self {
        Self::new(limit, now)
    }

    fn weight(&self, _: Rate, now: Instant) -> u128 {
        self.missing(now)
    }

    fn take(&mut self, _: Rate, now: Instant) -> Result<(), Duration> {
        match self.take(now) {
            true => Ok(()),
            false => Err(self.wait()),
        }
    }
}

/// The calls of one period, which begins with the first call.
pub(super) struct Period {
    since: Instant,
    calls: u64,
}

impl Period {
    fn left(&self, quota: Quota, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        quota.period.saturating_sub(passed)
    }
}

impl Counter for Period {
    type Limit = Quota;

    fn new(_: Quota, now: Instant) -> Self {
        Self {
            since: now,
            calls: 0,
        }
    }

    fn weight(&self, quota: Quota, now: Instant) -> u128 {
        match self.left(quota, now).is_zero() {
            true => 0,
            false => self.calls.into(),
        }
    }

    fn take(&mut self, quota: Quota, now: Instant) -> Result<(), Duration> {
        if self.left(quota, now).is_zero() {
            *self = Self::new(quota, now);
        }
        if self.calls >= quota.calls {
            return Err(self.left(quota, now));
        }
        self.calls += 1;
        Ok(())
    }
}

pub(super) type Rates = PerClient<RateLimiter>;
pub(super) type Quotas = PerClient<Period>;

/// One counter for each client, for at most [`MAX_RATED_CLIENTS`] clients. Beyond that, the counters of least
/// weight are forgotten.
pub(super) struct PerClient<C: Counter> {
    limit: C::Limit,
    clients: Mutex<HashMap<RequestSource, C>>,
}

impl<C: Counter> PerClient<C> {
    pub fn new(limit: C::Limit) -> Self {
        Self {
            limit,
            clients: Mutex::default(),
        }
    }

    pub fn limit(&self) -> C::Limit {
        self.limit
    }

    /// Counts one request of `client`.
    ///
    /// # Errors
    /// If the limit is reached: how long until the client may send another request.
    pub fn take(&self, client: &RequestSource, now: Instant) -> Result<(), Duration> {
        let mut clients = lock(&self.clients);
        if clients.len() >= MAX_RATED_CLIENTS && !clients.contains_key(client) {
            self.make_room(&mut clients, now);
        }
        let fresh = || C::new(self.limit, now);
        let counter = clients.entry(client.clone()).or_insert_with(fresh);
        counter.take(self.limit, now)
    }

    /// Makes room for many clients at once, so that not every new client costs a search.
    fn make_room(&self, clients: &mut HashMap<RequestSource, C>, now: Instant) {
        let weight = |counter: &C| counter.weight(self.limit, now);
        clients.retain(|_, counter| weight(counter) > 0);
        let enough = MAX_RATED_CLIENTS - MAX_RATED_CLIENTS / 8;
        if clients.len() <= enough {
            return;
        }
        let mut weights: Vec<_> = clients.values().map(weight).collect();
        let mut excess = weights.len() - enough;
        let (_, least, _) = weights.select_nth_unstable(excess - 1);
        let least = *least;
        clients.retain(|_, counter| {
            let goes = excess > 0 && weight(counter) <= least;
            excess -= usize::from(goes);
            !goes
        });
    }
}

impl<C: Counter> fmt::Debug for PerClient<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PerClient").field(&self.limit).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: usize) -> RequestSource {
        RequestSource::Principal(n.to_string().into())
    }

    const RATE: Rate = Rate {
        burst: 2,
        per_second: 1,
    };

    #[test]
    fn each_client_has_a_rate_of_its_own() {
        let (rates, now) = (Rates::new(RATE), Instant::now());
        let took = |n, after| {
            let now = now + Duration::from_secs(after);
            (0..5)
                .filter(|_| rates.take(&client(n), now).is_ok())
                .count()
        };
        assert_eq!((took(1, 0), took(2, 0), took(1, 0)), (2, 2, 0));
        let wait = rates.take(&client(1), now).unwrap_err();
        assert!(wait > Duration::from_millis(900) && wait < Duration::from_millis(1100));
        assert_eq!((took(1, 1), took(2, 100)), (1, 2));
    }

    /// The clients that asked least are forgotten first; a new client starts with a full burst.
    #[test]
    fn no_more_rates_are_kept_than_may_be() {
        let (rates, now) = (Rates::new(RATE), Instant::now());
        let held = || rates.clients.lock().unwrap().len();
        let used_up = client(usize::MAX);
        (0..2).for_each(|_| rates.take(&used_up, now).unwrap());
        for n in 0..MAX_RATED_CLIENTS * 2 {
            assert!(rates.take(&client(n), now).is_ok(), "{n}");
            assert!(held() <= MAX_RATED_CLIENTS);
        }
        assert!(rates.take(&used_up, now).is_err(), "it is not forgotten");
        let later = now + Duration::from_secs(10);
        (0..MAX_RATED_CLIENTS).for_each(|n| rates.take(&client(n), later).unwrap());
        assert!(held() <= MAX_RATED_CLIENTS);
    }

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const QUOTA: Quota = Quota {
        calls: 2,
        period: DAY,
    };

    #[test]
    fn each_client_has_its_own_quota_in_each_period() {
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
    fn no_more_quotas_are_kept_than_may_be() {
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
