//! `spend`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::limits::Quota;
use mcpbolt::store::{MAX_CALLS, StoreFault, Taken};

use crate::stores::{LONG, SOON, Store, fresh, on_every_store};

#[test]
fn a_quota_is_spent_once_by_eight_clients_together() {
    const CALLS: usize = 1000;
    let quota = Quota {
        calls: CALLS as u64,
        period: LONG,
    };
    on_every_store(async |world| {
        let name: Arc<str> = fresh("quota").into();
        let work = |_, store: Store| {
            let name = name.clone();
            async move {
                let mut spent = 0;
                while store.spend(&name, quota, 1).await.unwrap() == Taken::Now {
                    spent += 1;
                }
                spent
            }
        };
        let spent: usize = world.clients(8, work).await.into_iter().sum();
        assert_eq!(spent, CALLS);
        let store = world.connect();
        // To ask for nothing tells that the quota is not exceeded.
        assert_eq!(store.spend(&name, quota, 0).await.unwrap(), Taken::Now);
        let other = fresh("quota");
        assert_eq!(store.spend(&other, quota, 999).await.unwrap(), Taken::Now);
        assert!(matches!(
            store.spend(&other, quota, 2).await.unwrap(),
            Taken::After(_)
        ));
        assert_eq!(store.spend(&other, quota, 1).await.unwrap(), Taken::Now);
    });
}

/// The period begins with the first call and ends for all of them at once; asking in vain does not make it last.
#[test]
fn a_quota_is_whole_again_after_its_period() {
    let quota = Quota {
        calls: 2,
        period: Duration::from_millis(400),
    };
    on_every_store(async |world| {
        let (store, name) = (world.connect(), fresh("quota"));
        let begun = Instant::now();
        assert_eq!(store.spend(&name, quota, 1).await.unwrap(), Taken::Now);
        tokio::time::sleep(quota.period / 2).await;
        assert_eq!(store.spend(&name, quota, 1).await.unwrap(), Taken::Now);
        while let Taken::After(wait) = store.spend(&name, quota, 2).await.unwrap() {
            assert!(wait <= quota.period, "{wait:?}");
            assert!(begun.elapsed() < SOON);
            tokio::time::sleep(wait).await;
        }
        assert!(begun.elapsed() >= quota.period, "{:?}", begun.elapsed());
    });
}

#[test]
fn what_is_no_quota_is_refused() {
    on_every_store(async |world| {
        let store = world.connect();
        let day = Duration::from_secs(24 * 3600);
        for (calls, period, spent) in [
            (0, day, 0),
            (MAX_CALLS + 1, day, 1),
            (1, day, 2),
            (1, Duration::ZERO, 1),
            (1, 367 * day, 1),
        ] {
            let quota = Quota { calls, period };
            let refused = store.spend(&fresh("quota"), quota, spent).await;
            assert_eq!(
                refused.unwrap_err().fault(),
                StoreFault::Misuse,
                "{quota:?}"
            );
        }
    });
}

/// A period that has become shorter ends sooner.
#[test]
fn nobody_waits_longer_than_the_period() {
    on_every_store(async |world| {
        let (store, name) = (world.connect(), fresh("quota"));
        let (calls, period) = (1, LONG);
        let long = Quota { calls, period };
        assert_eq!(store.spend(&name, long, 1).await.unwrap(), Taken::Now);
        let period = Duration::from_secs(1);
        let short = Quota { calls, period };
        let Taken::After(wait) = store.spend(&name, short, 1).await.unwrap() else {
            panic!("it is spent")
        };
        assert!(wait <= period, "{wait:?}");
        let begun = Instant::now();
        while let Taken::After(wait) = store.spend(&name, short, 1).await.unwrap() {
            assert!(begun.elapsed() < SOON, "{wait:?}");
            tokio::time::sleep(wait).await;
        }
    });
}
