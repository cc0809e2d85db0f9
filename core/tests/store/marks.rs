//! `once`, and that the same name stands for six things.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::limits::Quota;
use mcpbolt::store::{Bucket, HolderId, Leased, LogBounds, Taken, When};

use crate::stores::{LONG, SOON, Store, fresh, on_every_store};

#[test]
fn a_mark_is_made_once() {
    const MARKS: usize = 100;
    on_every_store(async |world| {
        let names: Arc<[String]> = (0..MARKS).map(|_| fresh("mark")).collect();
        let work = |_, store: Store| {
            let names = names.clone();
            async move {
                let mut firsts = Vec::new();
                for name in names.iter() {
                    firsts.push(store.once(name, LONG).await.unwrap());
                }
                firsts
            }
        };
        let all = world.clients(8, work).await;
        for mark in 0..MARKS {
            let firsts = all.iter().filter(|firsts| firsts[mark]).count();
            assert_eq!(firsts, 1, "{}", names[mark]);
        }
    });
}

#[test]
fn a_mark_is_kept_for_its_time() {
    on_every_store(async |world| {
        let store = world.connect();
        let (name, keep) = (fresh("mark"), Duration::from_millis(300));
        let begun = Instant::now();
        assert!(store.once(&name, keep).await.unwrap());
        // Asking does not make it last.
        while !store.once(&name, LONG).await.unwrap() {
            assert!(begun.elapsed() < SOON);
        }
        assert!(begun.elapsed() >= keep, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_name_stands_for_six_things() {
    on_every_store(async |world| {
        let store = world.connect();
        let name = fresh("name");
        let bucket = Bucket {
            burst: 1,
            interval: LONG,
        };
        let bounds = LogBounds {
            entries: 9,
            bytes: 999,
            keep: LONG,
        };
        let me = HolderId::random().unwrap();
        assert!(store.once(&name, LONG).await.unwrap());
        store
            .append(&name, b"entry", bounds, 0)
            .await
            .unwrap()
            .unwrap();
        let leased = store.lease(&name, me, b"note", LONG).await.unwrap();
        assert!(matches!(leased, Leased::Held { .. }));
        assert_eq!(store.take(&name, bucket, 1).await.unwrap(), Taken::Now);
        let quota = Quota {
            calls: 1,
            period: LONG,
        };
        assert_eq!(store.spend(&name, quota, 1).await.unwrap(), Taken::Now);
        store
            .put(&name, b"blob", LONG, When::Absent)
            .await
            .unwrap()
            .unwrap();
        assert!(store.remove(&name, When::Always).await.unwrap());
        assert!(!store.once(&name, LONG).await.unwrap());
        assert!(matches!(
            store.take(&name, bucket, 1).await.unwrap(),
            Taken::After(_)
        ));
        assert_eq!(store.read(&name, None, 9).await.unwrap().entries.len(), 1);
        assert!(store.release(&name, me).await.unwrap());
    });
}
