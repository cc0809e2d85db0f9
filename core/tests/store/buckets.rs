//! `take`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::limits::Rate;
use mcpbolt::store::{Bucket, MAX_KEEP, Taken};

use crate::stores::{LONG, SOON, Store, fresh, on_every_store};

#[test]
fn a_bucket_says_when_it_has_enough() {
    on_every_store(async |world| {
        let (one, two) = (world.connect(), world.connect());
        let name = fresh("bucket");
        let bucket = Bucket {
            burst: 10,
            interval: Duration::from_secs(100),
        };
        assert_eq!(one.take(&name, bucket, 0).await.unwrap(), Taken::Now);
        assert_eq!(one.take(&name, bucket, 7).await.unwrap(), Taken::Now);
        let Taken::After(wait) = two.take(&name, bucket, 7).await.unwrap() else {
            panic!("there are three")
        };
        let due = 4 * bucket.interval;
        assert!(wait <= due && wait + SOON > due, "{wait:?}");
        assert_eq!(two.take(&name, bucket, 3).await.unwrap(), Taken::Now);
        assert!(matches!(
            one.take(&name, bucket, 1).await.unwrap(),
            Taken::After(_)
        ));
        assert_eq!(
            one.take(&fresh("bucket"), bucket, 10).await.unwrap(),
            Taken::Now
        );
    });
}

/// As in one process, where a rate of 0 is counted by `RateLimiter`. A rate whose burst would take longer to come is as slow.
#[test]
fn a_rate_of_nothing_allows_its_burst_once() {
    on_every_store(async |world| {
        let store = world.connect();
        for (burst, per_second) in [(2, 0), (0, 0), (u32::MAX, 1)] {
            let rate = Rate { burst, per_second };
            let (name, bucket) = (fresh("bucket"), Bucket::from(rate));
            let burst = burst.max(1);
            assert_eq!(store.take(&name, bucket, burst).await.unwrap(), Taken::Now);
            let Taken::After(wait) = store.take(&name, bucket, burst).await.unwrap() else {
                panic!("the bucket is empty")
            };
            let missing = MAX_KEEP.checked_sub(wait).unwrap();
            assert!(missing < LONG, "{rate:?}: {wait:?}");
        }
    });
}

/// Eight clients that take whatever there is get the rate within two per cent.
#[test]
fn a_bucket_gives_its_rate_to_eight_clients_together() {
    const TIME: Duration = Duration::from_secs(3);
    on_every_store(async |world| {
        let name: Arc<str> = fresh("bucket").into();
        // Holds so much that no token is lost while the machine does something else for a minute.
        let bucket = Bucket {
            burst: 12_000,
            interval: Duration::from_millis(5),
        };
        // Begins empty.
        let store = world.connect();
        let emptying = Instant::now();
        let all = store.take(&name, bucket, bucket.burst).await;
        assert_eq!(all.unwrap(), Taken::Now);
        let begun = Instant::now();
        let work = |_, store: Store| {
            let name = name.clone();
            async move {
                let mut taken = 0;
                loop {
                    let asked = begun.elapsed();
                    match store.take(&name, bucket, 1).await.unwrap() {
                        Taken::Now => taken += 1,
                        Taken::After(_) if asked > TIME => return (taken, asked),
                        Taken::After(wait) => tokio::time::sleep(wait).await,
                    }
                }
            }
        };
        let (taken, asked): (Vec<u32>, Vec<_>) = world.clients(8, work).await.into_iter().unzip();
        let (taken, most) = (f64::from(taken.iter().sum::<u32>()), emptying.elapsed());
        // The bucket was empty when the last client was refused.
        let least = asked.into_iter().max().unwrap();
        let due = |time: Duration| time.as_secs_f64() / bucket.interval.as_secs_f64();
        assert!(taken >= 0.98 * due(least), "{taken} in {least:?}");
        assert!(taken <= 1.02 * due(most), "{taken} in {most:?}");
    });
}

/// A limit that has changed, or a clock that has gone back, has nobody wait longer than the bucket takes to be full.
#[test]
fn nobody_waits_longer_than_the_bucket_takes() {
    on_every_store(async |world| {
        let (store, name) = (world.connect(), fresh("bucket"));
        let slow = Bucket {
            burst: 5,
            interval: LONG,
        };
        assert_eq!(store.take(&name, slow, 5).await.unwrap(), Taken::Now);
        let fast = Bucket {
            burst: 10,
            interval: Duration::from_secs(1),
        };
        let Taken::After(wait) = store.take(&name, fast, 1).await.unwrap() else {
            panic!("the bucket is empty")
        };
        assert!(wait <= fast.interval, "{wait:?}");
        let begun = Instant::now();
        while let Taken::After(wait) = store.take(&name, fast, 1).await.unwrap() {
            assert!(begun.elapsed() < SOON, "{wait:?}");
            tokio::time::sleep(wait).await;
        }
    });
}
