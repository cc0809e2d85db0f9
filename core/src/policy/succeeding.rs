//! A policy that takes the place of another one while a server runs.

use std::sync::{Arc, OnceLock};

use super::Policy;
use super::per_client::{Counter, PerClient};
use super::shared_counts::SharedCounts;

impl Policy {
    /// Prepares this policy to take the place of an earlier one while the server runs: its [`Hosting`](crate::server::Hosting) returns this one
    /// from then on. Counts of a rate, a quota or wrong credentials go on where that limit is the same. The store of the earlier policy
    /// stays, unless this one has another.
    ///
    /// # Errors
    /// Why a restart is needed: only one of the two verifies clients, or one has a resource server or a consent proxy.
    pub fn succeeding(mut self, earlier: &Self) -> Result<Self, &'static str> {
        if self.has_verifier() != earlier.has_verifier() {
            return Err("clients are verified by one policy, and not by the other");
        }
        #[cfg(feature = "resource-server")]
        if self.resource.is_some() || earlier.resource.is_some() {
            return Err("a policy with a resource server is read at the start");
        }
        keep(&mut self.rates, &earlier.rates);
        keep(&mut self.quotas, &earlier.quotas);
        let wrong = earlier.wrong.get();
        if let Some(wrong) = wrong.filter(|wrong| wrong.limit() == self.wrong().limit()) {
            self.wrong = OnceLock::from(wrong.clone());
        }
        // A store that the server has given the earlier policy, which does not see this one.
        if let (None, Some(counts)) = (self.shared_counts.get(), earlier.shared_counts.get()) {
            self.shared_counts = SharedCounts::new(counts.store().clone()).into();
        }
        Ok(self)
    }
}

/// Goes on with the counts of the earlier limit if it is the same.
fn keep<C: Counter>(own: &mut Option<Arc<PerClient<C>>>, earlier: &Option<Arc<PerClient<C>>>)
where
    C::Limit: PartialEq,
{
    if let (Some(own), Some(earlier)) = (own, earlier)
        && own.limit() == earlier.limit()
    {
        *own = earlier.clone();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::connection::{Limited, RequestSource};
    use crate::mcp::Method;
    use crate::store::LocalStore;

    #[test]
    fn the_store_of_a_policy_stays() {
        let rated = r#"{"rate":{"burst":1,"perSecond":1}}"#;
        let read = || Policy::from_json(rated).unwrap();
        let counts = |policy: Policy| policy.counts_elsewhere(Some(Method::Ping));
        let earlier = read().share(Arc::new(LocalStore::new()));
        assert!(!counts(read().succeeding(&read()).unwrap()));
        assert!(counts(read().succeeding(&earlier).unwrap()));
    }

    #[test]
    fn what_clients_have_used_of_a_limit_that_stays_counts_on() {
        let now = Instant::now();
        let ada = RequestSource::Principal("ada".into());
        let read = |json: &str| Policy::from_json(json).unwrap();
        let limited = r#"{"rate":{"burst":1,"perSecond":1},"quota":{"calls":1,"period":60000}}"#;
        let earlier = read(limited);
        assert!(earlier.take(&ada, now).is_ok() && earlier.take_call(&ada, now).is_ok());
        let same = read(limited).succeeding(&earlier).unwrap();
        assert!(matches!(same.take(&ada, now), Err(Limited::Rate(_))));
        assert!(matches!(same.take_call(&ada, now), Err(Limited::Quota(..))));
        let other = r#"{"rate":{"burst":2,"perSecond":1},"quota":{"calls":2,"period":60000}}"#;
        let other = read(other).succeeding(&earlier).unwrap();
        assert!(other.take(&ada, now).is_ok() && other.take_call(&ada, now).is_ok());
        let guesser = RequestSource::Address([127, 0, 0, 1].into());
        assert!(earlier.count_wrong(&guesser, now).is_ok());
        assert!(same.count_wrong(&guesser, now).is_ok());
        let third = read(limited).succeeding(&earlier).unwrap();
        assert!(third.count_wrong(&guesser, now).is_err());
        let verified = r#"{"keys":{"k":{"client":"ada"}}}"#;
        assert!(read(verified).succeeding(&earlier).is_err());
        assert!(earlier.succeeding(&read(verified)).is_err());
    }
}
