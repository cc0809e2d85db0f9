//! `take`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::limits::Rate;
use mcpbolt::store::{Bucket, MAX_KEEP, Taken};

use crate::stores::{LONG, Store, fresh, on_every_store};

#[test]
fn a_bucket_says_when_it_has_enough() {
    on_every_store(async |world| {
        let (one, two) = (world.connect(), world.connect());
        let name = fresh("bucket");
        let bucket = Bucket {
            burst: 10,
            interval: Duration::from_secs(10),
        };
        assert_eq!(one.take(&name, bucket, 0).await.unwrap(), Taken::Now);
        assert_eq!(one.take(&name, bucket, 7).await.unwrap(), Taken::Now);
        let Taken::After(wait) = two.take(&name, bucket, 7).await.unwrap() else {
            panic!("there are three")
        };
        assert!((35..=40).contains(&wait.as_secs()), "{wait:?}");
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
        // Holds so much that no token is lost while the machine does something else for five seconds.
        let bucket = Bucket {
            burst: 1000,
            interval: Duration::from_millis(5),
        };
        let begun = Instant::now();
        let work = |_, store: Store| {
            let name = name.clone();
            async move {
                let mut taken = 0;
                loop {
                    match store.take(&name, bucket, 1).await.unwrap() {
                        Taken::Now => taken += 1,
                        Taken::After(_) if begun.elapsed() > TIME => return taken,
                        Taken::After(wait) => tokio::time::sleep(wait).await,
                    }
                }
            }
        };
        let taken: u32 = world.clients(8, work).await.into_iter().sum();
        let due = f64::from(bucket.burst) + begun.elapsed().as_secs_f64() * 200.0;
        let share = f64::from(taken) / due;
        assert!((0.98..=1.001).contains(&share), "{taken} of {due}");
    });
}
