//! Rates and quotas that several processes count together, on a store.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Policy;
use crate::connection::{Limited, RequestSource};
use crate::digest;
use crate::limits::{MAX_RATED_CLIENTS, Quota, Rate};
use crate::mcp::Method;
use crate::store::{MAX_CALLS, MAX_KEEP, SharedStore, StoreError, StoreFuture, Taken};
use crate::sync::lock;

/// How often the store is asked while it is away.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one question keeps others back, unless it is answered: longer than a verb takes, and in case its request is
/// cancelled.
const PROBE: Duration = Duration::from_secs(10);

impl Policy {
    /// Keeps on a store what has to hold for all processes of a server together, which have the same policy and the same
    /// store:
    ///
    /// | what | costs | while the store is away |
    /// |---|---|---|
    /// | [rates](Self::rate) and [quotas](Self::quota) | each request a round trip, and each tool call another one if there are both; a client that has reached a limit is refused without one | each process counts by itself, so a client has its limits at each of them (fails open); the store is asked again once a second |
    /// | proofs of tokens (DPoP), which are accepted once | each request with a proof a round trip | requests with proofs get status 503 (fails closed) |
    ///
    /// Requests on their way when the store goes away wait for its time-out. Wrong credentials count at each process in any
    /// case. The store sees digests of the names of clients and of proofs; a `SealedStore` above it keeps these secret, too.
    #[must_use]
    pub fn share(mut self, store: Arc<dyn SharedStore>) -> Self {
        self.shared_counts = SharedCounts::new(store).into();
        self
    }

    /// Does as [`share`](Self::share) with a policy that a server has already. The first store stays.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub(crate) fn share_on(&self, store: impl SharedStore) {
        self.shared_counts
            .get_or_init(|| SharedCounts::new(Arc::new(store)));
    }

    /// The store that all processes have.
    #[cfg(feature = "resource-server")]
    pub(crate) fn shared_store(&self) -> Option<&Arc<dyn SharedStore>> {
        Some(self.shared_counts.get()?.store())
    }

    /// Whether requests of this method are counted on a store.
    pub(crate) fn counts_elsewhere(&self, method: Option<Method>) -> bool {
        let has_quota = self.has_quotas() && method == Some(Method::CallTool);
        self.shared_counts.get().is_some() && (self.has_rates() || has_quota)
    }

    /// Counts one request of `client` on the store, also against the quota if it is such a call. `None` while the store is
    /// away: then this process counts.
    pub(crate) async fn count(
        &self,
        client: &RequestSource,
        is_call: bool,
    ) -> Option<Result<(), Limited>> {
        let counts = self.shared_counts.get()?;
        if let Some(rates) = &self.rates
            && let Err(wait) = counts.take(client, rates.limit()).await?
        {
            return Some(Err(Limited::Rate(wait)));
        }
        if let Some(quotas) = self.quotas.as_ref().filter(|_| is_call)
            && let Err(wait) = counts.spend(client, quotas.limit()).await?
        {
            return Some(Err(Limited::Quota(quotas.limit(), wait)));
        }
        Some(Ok(()))
    }
}

/// The counts of a policy on a store.
pub(super) struct SharedCounts {
    store: Arc<dyn SharedStore>,
    absence: Absence,
    rates: Reached,
    quotas: Reached,
}

impl SharedCounts {
    pub fn new(store: Arc<dyn SharedStore>) -> Self {
        Self {
            store,
            absence: Absence::default(),
            rates: Reached::default(),
            quotas: Reached::default(),
        }
    }

    pub fn store(&self) -> &Arc<dyn SharedStore> {
        &self.store
    }

    /// Counts one request of a client. `None` while the store is away.
    ///
    /// # Errors
    /// If the client is above the rate: how long until it may send another request.
    pub async fn take(&self, client: &RequestSource, rate: Rate) -> Option<Result<(), Duration>> {
        let Rate { burst, per_second } = rate;
        let name = name("rate", format_args!("{burst} {per_second}"), client);
        let taken = || self.store.take(&name, rate.into(), 1);
        self.ask(&self.rates, client, taken).await
    }

    /// Counts one call of a client. `None` while the store is away.
    ///
    /// # Errors
    /// If the quota is used up: how long until the next period.
    pub async fn spend(
        &self,
        client: &RequestSource,
        quota: Quota,
    ) -> Option<Result<(), Duration>> {
        // The store keeps no count of nothing, nor one for no time; neither has to be shared.
        if quota.calls == 0 || quota.period.is_zero() {
            return None;
        }
        let kept = Quota {
            calls: quota.calls.min(MAX_CALLS),
            period: quota.period.clamp(Duration::from_millis(1), MAX_KEEP),
        };
        let (calls, period) = (kept.calls, kept.period.as_millis());
        let name = name("quota", format_args!("{calls} {period}"), client);
        let spent = || self.store.spend(&name, kept, 1);
        self.ask(&self.quotas, client, spent).await
    }

    async fn ask<'a>(
        &self,
        reached: &Reached,
        client: &RequestSource,
        verb: impl FnOnce() -> StoreFuture<'a, Taken>,
    ) -> Option<Result<(), Duration>> {
        let begun = Instant::now();
        if let Some(wait) = reached.wait(client, begun) {
            return Some(Err(wait));
        }
        if !self.absence.may_ask(begun) {
            return None;
        }
        match verb().await {
            Ok(taken) => {
                self.absence.is_over();
                Some(match taken {
                    Taken::Now => Ok(()),
                    Taken::After(wait) => {
                        reached.note(client, begun, wait);
                        Err(wait)
                    }
                })
            }
            Err(why) => {
                self.absence.is_noticed(Instant::now(), &why);
                None
            }
        }
    }
}

impl fmt::Debug for SharedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedCounts").field(&self.store).finish()
    }
}

/// The name of a count: a digest, since names of clients may be long. Another limit is counted anew, as in one process.
fn name(kind: &str, limit: fmt::Arguments<'_>, client: &RequestSource) -> String {
    let client = match client {
        RequestSource::Unknown => "-".to_owned(),
        RequestSource::Address(address) => format!("@{address}"),
        RequestSource::Principal(name) => format!("={name}"),
    };
    let name = digest::short(format!("{limit} {client}").as_bytes());
    format!("{kind} {name}")
}

/// Clients that have reached a limit, as the store has said, and until when. They are refused without asking again: what others
/// count meanwhile brings nobody under the limit sooner.
#[derive(Default)]
struct Reached(Mutex<HashMap<RequestSource, Instant>>);

impl Reached {
    /// How long a client is still at the limit.
    fn wait(&self, client: &RequestSource, now: Instant) -> Option<Duration> {
        let until = *lock(&self.0).get(client)?;
        until
            .checked_duration_since(now)
            .filter(|wait| !wait.is_zero())
    }

    /// Notes that a client was at the limit when the store was asked, for so long.
    fn note(&self, client: &RequestSource, asked: Instant, wait: Duration) {
        let mut all = lock(&self.0);
        if all.len() >= MAX_RATED_CLIENTS && !all.contains_key(client) {
            all.retain(|_, until| *until > asked);
            // Those that are forgotten cost the store a question each.
            if all.len() >= MAX_RATED_CLIENTS {
                all.clear();
            }
        }
        all.insert(client.clone(), asked + wait);
    }
}

/// Whether the store is away, and when it is asked next.
#[derive(Default)]
struct Absence(Mutex<Option<Instant>>);

impl Absence {
    /// Whether to ask: always while the store answers, else one at a time, each after a pause.
    fn may_ask(&self, now: Instant) -> bool {
        let mut next = lock(&self.0);
        match &mut *next {
            None => true,
            Some(next) if *next <= now => {
                *next = now + PROBE;
                true
            }
            Some(_) => false,
        }
    }

    fn is_over(&self) {
        *lock(&self.0) = None;
    }

    fn is_noticed(&self, now: Instant, why: &StoreError) {
        let before = lock(&self.0).replace(now + PAUSE);
        if before.is_none() {
            #[cfg(feature = "tracing")]
            tracing::warn!(%why, "rates and quotas are counted by this process alone while the store is away");
            #[cfg(not(feature = "tracing"))]
            let _ = why;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: usize) -> RequestSource {
        RequestSource::Principal(n.to_string().into())
    }

    #[test]
    fn a_client_is_at_its_limit_for_as_long_as_the_store_said() {
        let (reached, asked) = (Reached::default(), Instant::now());
        let second = Duration::from_secs(1);
        reached.note(&client(1), asked, second);
        assert_eq!(reached.wait(&client(1), asked), Some(second));
        assert_eq!(reached.wait(&client(1), asked + second), None);
        assert_eq!(reached.wait(&client(2), asked), None);
        for n in 0..2 * MAX_RATED_CLIENTS {
            reached.note(&client(n), asked, second);
            assert!(lock(&reached.0).len() <= MAX_RATED_CLIENTS);
        }
    }

    #[test]
    fn a_store_that_is_away_is_asked_by_one_at_a_time() {
        let (absence, now) = (Absence::default(), Instant::now());
        assert!(absence.may_ask(now) && absence.may_ask(now));
        let why = StoreError::new(crate::store::StoreFault::Unavailable, "away");
        absence.is_noticed(now, &why);
        assert!(!absence.may_ask(now));
        let later = now + PAUSE;
        assert!(absence.may_ask(later) && !absence.may_ask(later + PAUSE));
        absence.is_noticed(later + 2 * PAUSE, &why);
        let later = later + 3 * PAUSE;
        assert!(absence.may_ask(later) && !absence.may_ask(later + 2 * PAUSE));
        // The request that asked was cancelled.
        assert!(absence.may_ask(later + PROBE));
        absence.is_over();
        assert!(absence.may_ask(later) && absence.may_ask(later));
    }

    #[test]
    fn counts_of_different_clients_and_limits_have_different_names() {
        let address: std::net::IpAddr = [10, 0, 0, 1].into();
        let all = [
            RequestSource::Unknown,
            RequestSource::Address(address),
            RequestSource::Principal(address.to_string().into()),
            client(1),
        ];
        let names: std::collections::BTreeSet<_> = all
            .iter()
            .flat_map(|it| {
                [
                    name("rate", format_args!("1"), it),
                    name("rate", format_args!("2"), it),
                    name("quota", format_args!("1"), it),
                ]
            })
            .collect();
        assert_eq!(names.len(), 3 * all.len());
    }
}
