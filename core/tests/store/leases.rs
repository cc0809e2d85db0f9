//! `lease`, `release`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use mcpbolt::store::{HolderId, Leased};

use crate::stores::{LONG, SOON, Store, fresh, on_every_store};

fn holder() -> HolderId {
    HolderId::random().unwrap()
}

#[test]
fn a_lease_is_renewed_by_its_holder_and_shown_to_others() {
    on_every_store(async |world| {
        let (one, two) = (world.connect(), world.connect());
        let (a, b) = (holder(), holder());
        let name = fresh("lease");
        let taken = one.lease(&name, a, b"at one", LONG).await.unwrap();
        let Leased::Held { token } = taken else {
            panic!("{taken:?}")
        };
        assert_eq!(one.lease(&name, a, b"at 1", LONG).await.unwrap(), taken);
        let Leased::Busy { note, remaining } = two.lease(&name, b, b"", LONG).await.unwrap() else {
            panic!("two holders")
        };
        assert_eq!(&note[..], b"at 1");
        assert!(
            remaining <= LONG && remaining + SOON > LONG,
            "{remaining:?}"
        );
        assert!(!two.release(&name, b).await.unwrap());
        assert!(two.release(&name, a).await.unwrap());
        assert!(!two.release(&name, a).await.unwrap());
        let next = two.lease(&name, b, b"", LONG).await.unwrap();
        assert!(
            matches!(next, Leased::Held { token: next } if next > token),
            "{token} {next:?}"
        );
    });
}

#[test]
fn a_lease_that_is_not_renewed_ends_and_its_token_rises() {
    on_every_store(async |world| {
        let store = world.connect();
        let name = fresh("lease");
        let keep = Duration::from_millis(300);
        let mut last = 0;
        for _ in 0..3 {
            // The same holder, too, has a new token: another one may have had the lease meanwhile.
            let (me, begun) = (holder(), Instant::now());
            let Leased::Held { token } = store.lease(&name, me, b"", keep).await.unwrap() else {
                panic!("the lease has ended")
            };
            assert!(token > last);
            last = token;
            while let Leased::Busy { remaining, .. } = store
                .lease(&name, holder(), b"", Duration::from_millis(1))
                .await
                .unwrap()
            {
                assert!(begun.elapsed() < SOON && remaining <= keep);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(begun.elapsed() >= keep, "{:?}", begun.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
            let Leased::Held { token } = store.lease(&name, me, b"", LONG).await.unwrap() else {
                panic!("the lease has ended")
            };
            assert!(token > last + 1);
            last = token;
            assert!(store.release(&name, me).await.unwrap());
        }
    });
}

#[test]
fn a_lease_has_one_holder_at_a_time() {
    const CLIENTS: usize = 8;
    const TURNS: usize = 20;
    on_every_store(async |world| {
        let name: Arc<str> = fresh("lease").into();
        let (inside, tokens) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let work = |_, store: Store| {
            let (name, inside, tokens) = (name.clone(), inside.clone(), tokens.clone());
            async move {
                let me = holder();
                let mut turns = 0;
                while turns < TURNS {
                    let Leased::Held { token } = store.lease(&name, me, b"", LONG).await.unwrap()
                    else {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    };
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two holders");
                    assert!(
                        tokens.swap(token, SeqCst) < token,
                        "the token does not rise"
                    );
                    tokio::task::yield_now().await;
                    assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                    assert!(store.release(&name, me).await.unwrap());
                    turns += 1;
                }
            }
        };
        world.clients(CLIENTS, work).await;
    });
}
