//! `append`, `read`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::store::LogBounds;
use tokio::time::timeout;

use crate::stores::{Chance, LONG, SOON, Store, fresh, on_every_store};

fn bounds(entries: u32, bytes: usize) -> LogBounds {
    LogBounds {
        entries,
        bytes,
        keep: LONG,
    }
}

/// Any page of a log is that of a list that is cut at its beginning.
#[test]
fn a_log_is_bounded_and_read_from_anywhere() {
    on_every_store(async |world| {
        let mut chance = Chance::new();
        let (one, two) = (world.connect(), world.connect());
        for _ in 0..10 {
            let name = fresh("log");
            let nothing = one.read(&name, None, 9).await.unwrap();
            assert_eq!(
                (nothing.entries.len(), nothing.last, nothing.has_gap),
                (0, 0, false)
            );
            assert!(one.read(&name, Some(7), 9).await.unwrap().has_gap);
            // Sealing makes each entry 45 bytes longer.
            let overhead = if world.name.contains("sealed") { 45 } else { 0 };
            let most = 1 + chance.below(20) as usize;
            let bytes = 100 + chance.below(400) as usize;
            let mut model = VecDeque::<(u64, Vec<u8>)>::new();
            let mut last = None;
            for _ in 0..60 {
                let entry = vec![chance.below(256) as u8; chance.below(55) as usize];
                let id = one.append(&name, &entry, bounds(most as u32, bytes), 0);
                let id = id.await.unwrap().unwrap();
                assert!(last.is_none_or(|last| id == last + 1), "{last:?} {id}");
                last = Some(id);
                model.push_back((id, entry));
                let len = |model: &VecDeque<(u64, Vec<u8>)>| -> usize {
                    model.iter().map(|(_, entry)| entry.len() + overhead).sum()
                };
                while model.len() > most || len(&model) > bytes {
                    model.pop_front();
                }
                let first = model.front().map_or(id + 1, |(id, _)| *id);
                let after = match chance.below(8) {
                    0 => None,
                    1 => Some(0),
                    2 => Some(u64::MAX),
                    3 => Some(id + 1),
                    _ => Some(id - chance.below(25)),
                };
                let most = chance.below(30) as usize;
                let page = two.read(&name, after, most).await.unwrap();
                let from = after.unwrap_or(first - 1);
                let has_gap = from < first - 1 || from > id;
                let from = from.max(first - 1).min(id);
                let entries = model.iter().filter(|(id, _)| *id > from).take(most);
                let entries: Vec<_> = entries.cloned().collect();
                let read: Vec<_> = page
                    .entries
                    .iter()
                    .map(|it| (it.id, it.bytes.to_vec()))
                    .collect();
                assert_eq!(
                    (page.last, page.has_gap, read),
                    (id, has_gap, entries),
                    "{after:?}"
                );
            }
        }
    });
}

/// Followers that look again whenever they are hinted miss nothing that eight writers append.
#[test]
fn a_log_of_many_writers_is_followed_without_gap_or_duplicate() {
    const WRITERS: usize = 8;
    const ENTRIES: usize = 100;
    on_every_store(async |world| {
        let name: Arc<str> = fresh("log").into();
        let follow = |store: Store| {
            let name = name.clone();
            async move {
                let mut hints = store.subscribe(&name).await.unwrap();
                let (mut seen, mut after) = (Vec::new(), None);
                while seen.len() < WRITERS * ENTRIES {
                    let page = store.read(&name, after, 7).await.unwrap();
                    assert!(!page.has_gap);
                    let Some(last) = page.entries.last() else {
                        timeout(SOON, hints.hinted()).await.expect("a hint");
                        continue;
                    };
                    after = Some(last.id);
                    seen.extend(page.entries);
                }
                seen
            }
        };
        let write = |number: usize, store: Store| {
            let name = name.clone();
            async move {
                let mut ids = Vec::new();
                for each in 0..ENTRIES {
                    let entry = format!("{number} {each}");
                    let id = store.append(&name, entry.as_bytes(), bounds(1000, 1 << 20), 0);
                    ids.push((id.await.unwrap().unwrap(), entry));
                }
                assert!(ids.is_sorted());
                ids
            }
        };
        let followers: Vec<_> = (0..2)
            .map(|_| tokio::spawn(follow(world.connect())))
            .collect();
        let mut all: Vec<_> = world
            .clients(WRITERS, write)
            .await
            .into_iter()
            .flatten()
            .collect();
        all.sort();
        for follower in followers {
            let seen = follower.await.unwrap().into_iter();
            let seen: Vec<_> = seen
                .map(|it| (it.id, String::from_utf8(it.bytes.to_vec()).unwrap()))
                .collect();
            assert_eq!(seen, all);
        }
    });
}

#[test]
fn a_log_that_begins_again_goes_on_above_its_old_ids() {
    on_every_store(async |world| {
        let store = world.connect();
        let name = fresh("log");
        let brief = LogBounds {
            keep: Duration::from_millis(300),
            ..bounds(9, 99)
        };
        let mut last = 0;
        for _ in 0..9 {
            last = store
                .append(&name, b"old", brief, 0)
                .await
                .unwrap()
                .unwrap();
        }
        let over = async {
            while store.read(&name, None, 1).await.unwrap().last != 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, over).await.unwrap();
        let id = store
            .append(&name, b"new", bounds(9, 99), 0)
            .await
            .unwrap()
            .unwrap();
        assert!(id > last, "{id} {last}");
        let page = store.read(&name, Some(last - 1), 9).await.unwrap();
        assert_eq!((page.entries.len(), page.has_gap), (1, true));
    });
}

#[test]
fn a_log_accepts_nothing_from_an_earlier_holder() {
    on_every_store(async |world| {
        let store = world.connect();
        let name = fresh("log");
        let all = bounds(9, 999);
        for (fence, is_accepted) in [
            (0, true),
            (5, true),
            (4, false),
            (0, false),
            (5, true),
            (6, true),
        ] {
            let id = store.append(&name, b"entry", all, fence).await.unwrap();
            assert_eq!(id.is_some(), is_accepted, "{fence}");
        }
        assert_eq!(store.read(&name, None, 9).await.unwrap().entries.len(), 4);
    });
}
