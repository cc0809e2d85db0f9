//! `get`, `put`, `remove`.

use std::time::{Duration, Instant};

use mcpbolt::store::{BlobVersion, When};

use crate::stores::{LONG, SOON, fresh, on_every_store};

#[test]
fn a_blob_is_written_under_its_condition() {
    on_every_store(async |world| {
        let (one, two) = (world.connect(), world.connect());
        let name = fresh("blob");
        assert_eq!(one.get(&name).await.unwrap(), None);
        let never = When::Is(a_version(world).await);
        assert_eq!(one.put(&name, b"x", LONG, never).await.unwrap(), None);
        let first = one
            .put(&name, b"1", LONG, When::Absent)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            two.put(&name, b"x", LONG, When::Absent).await.unwrap(),
            None
        );
        let read = two.get(&name).await.unwrap().unwrap();
        assert_eq!((&read.bytes[..], read.version), (&b"1"[..], first));
        let second = two
            .put(&name, b"", LONG, When::Is(first))
            .await
            .unwrap()
            .unwrap();
        assert_ne!(first, second);
        assert_eq!(
            one.put(&name, b"x", LONG, When::Is(first)).await.unwrap(),
            None
        );
        assert_eq!(&one.get(&name).await.unwrap().unwrap().bytes[..], b"");
        let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        one.put(&name, &bytes, LONG, When::Always)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(two.get(&name).await.unwrap().unwrap().bytes, bytes);
        assert!(!one.remove(&name, When::Is(second)).await.unwrap());
        assert!(!one.remove(&name, When::Absent).await.unwrap());
        let third = one.get(&name).await.unwrap().unwrap().version;
        assert!(two.remove(&name, When::Is(third)).await.unwrap());
        assert!(!two.remove(&name, When::Always).await.unwrap());
        assert_eq!(one.get(&name).await.unwrap(), None);
        one.put(&name, b"4", LONG, When::Always).await.unwrap();
        assert!(one.remove(&name, When::Always).await.unwrap());
    });
}

async fn a_version(world: &crate::stores::World) -> BlobVersion {
    let put = world.connect();
    let put = put.put(&fresh("other"), b"", LONG, When::Always).await;
    put.unwrap().unwrap()
}

#[test]
fn a_blob_is_kept_for_its_time_and_a_write_begins_it_anew() {
    on_every_store(async |world| {
        let store = world.connect();
        let name = fresh("blob");
        let begun = Instant::now();
        let keep = Duration::from_millis(300);
        store.put(&name, b"1", keep, When::Always).await.unwrap();
        while store.get(&name).await.unwrap().is_some() {
            assert!(begun.elapsed() < SOON);
        }
        assert!(begun.elapsed() >= keep, "{:?}", begun.elapsed());
        store
            .put(&name, b"1", keep, When::Absent)
            .await
            .unwrap()
            .unwrap();
        store.put(&name, b"2", LONG, When::Always).await.unwrap();
        tokio::time::sleep(2 * keep).await;
        assert!(store.get(&name).await.unwrap().is_some());
    });
}

/// One step of a client: it found a number and replaced it by the next one.
struct Step {
    found: u64,
    begun: Instant,
    ended: Instant,
}

/// Conditional writes of eight clients: a chain without forks, in an order that agrees with real time.
#[test]
fn conditional_writes_are_linearizable() {
    const CLIENTS: usize = 8;
    const STEPS: usize = 100;
    on_every_store(async |world| {
        let name = fresh("counter");
        let work = |_, store: crate::stores::Store| {
            let name = name.clone();
            async move {
                let mut steps = Vec::new();
                while steps.len() < STEPS {
                    let begun = Instant::now();
                    let old = store.get(&name).await.unwrap();
                    let when = old.as_ref().map_or(When::Absent, |it| When::Is(it.version));
                    let found =
                        old.map_or(0, |it| u64::from_be_bytes(it.bytes[..].try_into().unwrap()));
                    let next = (found + 1).to_be_bytes();
                    if store.put(&name, &next, LONG, when).await.unwrap().is_some() {
                        let ended = Instant::now();
                        steps.push(Step {
                            found,
                            begun,
                            ended,
                        });
                    }
                }
                steps
            }
        };
        let mut steps: Vec<_> = world
            .clients(CLIENTS, work)
            .await
            .into_iter()
            .flatten()
            .collect();
        steps.sort_by_key(|step| step.found);
        let found: Vec<_> = steps.iter().map(|step| step.found).collect();
        assert_eq!(found, (0..(CLIENTS * STEPS) as u64).collect::<Vec<_>>());
        let mut latest = steps[0].begun;
        for step in &steps {
            assert!(
                step.ended >= latest,
                "a step ended before one that comes before it began"
            );
            latest = latest.max(step.begun);
        }
    });
}
