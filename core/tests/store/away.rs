//! A store whose server dies, stands still, is not there, or refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mcpbolt::io::{RedisOptions, RedisStore};
use mcpbolt::limits::Quota;
use mcpbolt::store::{
    Bucket, HolderId, LogBounds, SharedStore, StoreError, StoreFault, Taken, When,
};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::servers::{Program, Server};
use crate::stores::{Chance, LONG, SOON, fresh, patient};

/// The time-out of a store whose server stands still.
const IMPATIENCE: Duration = Duration::from_secs(1);

fn open(server: &Server) -> RedisStore {
    crate::stores::open(&server.url())
}

/// Waits until a store answers again.
async fn answering(store: &RedisStore) {
    let answered = async {
        while store.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, answered).await.expect("the store comes back");
}

/// The outcome of a verb, which comes within its time-out.
async fn in_time<T>(verb: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let outcome = timeout(2 * SOON, verb).await;
    outcome.expect("a verb hangs")
}

/// The outcome of a verb whose server may die: nothing else may go wrong.
async fn survived<T>(verb: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
    match in_time(verb).await {
        Ok(done) => Some(done),
        Err(error) => {
            let lost = [
                StoreFault::Broken,
                StoreFault::TimedOut,
                StoreFault::Unavailable,
            ];
            assert!(lost.contains(&error.fault()), "{error:?}");
            None
        }
    }
}

/// What one client knows to have done.
#[derive(Default)]
struct Done {
    /// The marks that it made first.
    marks: Vec<u64>,
    /// The numbers that it has written.
    numbers: Vec<u64>,
    /// The entries that it has appended, by id.
    entries: Vec<(u64, String)>,
    losses: u64,
}

/// Writes numbers, marks and entries until it is told to stop.
async fn work(store: RedisStore, number: usize, stop: Arc<AtomicBool>) -> Done {
    let bounds = LogBounds {
        entries: 60_000,
        bytes: 32 << 20,
        keep: LONG,
    };
    let mut done = Done::default();
    for round in 0.. {
        if stop.load(Relaxed) {
            break;
        }
        let old = survived(store.get("counter")).await;
        let found = old.as_ref().and_then(Option::as_ref);
        let when = found.map_or(When::Absent, |blob| When::Is(blob.version));
        let next = found.map_or(0, |blob| {
            u64::from_be_bytes(blob.bytes[..].try_into().unwrap())
        }) + 1;
        let written = match old {
            Some(_) => survived(store.put("counter", &next.to_be_bytes(), LONG, when)).await,
            None => None,
        };
        done.losses += u64::from(written.is_none());
        if written.flatten().is_some() {
            done.numbers.push(next);
        }
        let mark = survived(store.once(&format!("mark {round}"), LONG)).await;
        if mark == Some(true) {
            done.marks.push(round);
        }
        let entry = format!("{number} {round}");
        let id = survived(store.append("log", entry.as_bytes(), bounds, 0)).await;
        done.entries.extend(id.flatten().map(|id| (id, entry)));
        let _ = survived(store.read("log", None, 1)).await;
        let second = Bucket {
            burst: 1,
            interval: Duration::from_secs(1),
        };
        let _ = survived(store.take("bucket", second, 1)).await;
        let lease = survived(store.lease("lease", HolderId::random().unwrap(), b"", LONG)).await;
        drop(lease);
        let _ = survived(store.publish("topic")).await;
    }
    done
}

/// The server is killed at any step, ten times. Nothing that it has acknowledged is lost, for it writes to disk before it
/// acknowledges; nothing happens twice; no verb hangs; and everything goes on afterwards.
#[test]
fn a_server_that_is_killed_at_any_step_loses_no_more_than_answers() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let mut chance = Chance::new();
        let mut server =
            Server::start(program, &["--appendonly", "yes", "--appendfsync", "always"]);
        let store = open(&server);
        let tried = async {
            let mut hints = store.subscribe("topic").await.unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let mut clients = JoinSet::new();
            for number in 0..8 {
                // Half of the clients share a connection.
                let own = if number < 4 {
                    store.clone()
                } else {
                    open(&server)
                };
                clients.spawn(work(own, number, stop.clone()));
            }
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(20 + chance.below(200))).await;
                server.kill();
                tokio::time::sleep(Duration::from_millis(chance.below(200))).await;
                server.start_again();
                answering(&store).await;
                // A hint may have been lost, so there is one.
                timeout(SOON, hints.hinted()).await.expect("a hint");
            }
            stop.store(true, Relaxed);
            clients.join_all().await
        };
        let all = runtime.block_on(async { timeout(LONG, tried).await.expect("an end") });
        let losses: u64 = all.iter().map(|done| done.losses).sum();
        assert!(
            losses > 0,
            "no verb was in flight when the server was killed"
        );
        let once = |mut values: Vec<u64>, what: &str| {
            values.sort_unstable();
            let len = values.len();
            values.dedup();
            assert_eq!(values.len(), len, "{what} twice");
            assert!(len > 0, "no {what}");
        };
        once(
            all.iter().flat_map(|done| done.marks.clone()).collect(),
            "marks",
        );
        once(
            all.iter().flat_map(|done| done.numbers.clone()).collect(),
            "numbers",
        );
        runtime.block_on(async {
            // One of the last verbs may have been late, which costs the connection.
            answering(&store).await;
            let last = store.get("counter").await.unwrap().unwrap();
            let last = u64::from_be_bytes(last.bytes[..].try_into().unwrap());
            let highest = all.iter().flat_map(|done| &done.numbers).max().unwrap();
            assert!(last >= *highest, "{last} {highest}");
            let (mut kept, mut after) = (std::collections::BTreeMap::new(), None);
            while let page = store.read("log", after, 1000).await.unwrap()
                && let Some(newest) = page.entries.last()
            {
                after = Some(newest.id);
                kept.extend(
                    page.entries
                        .into_iter()
                        .map(|entry| (entry.id, entry.bytes)),
                );
            }
            for (id, entry) in all.iter().flat_map(|done| &done.entries) {
                assert_eq!(
                    kept.get(id).map(|it| &it[..]),
                    Some(entry.as_bytes()),
                    "{id}"
                );
            }
        });
    }
}

#[test]
fn a_server_that_stands_still_is_given_up_and_found_again() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let server = Server::start(program, &[]);
        runtime.block_on(async {
            let impatient = RedisOptions {
                timeout: IMPATIENCE,
                connect_timeout: IMPATIENCE,
                ..RedisOptions::default()
            };
            let store = RedisStore::open(&server.url(), &impatient).unwrap();
            let mut hints = loop {
                if let Ok(hints) = store.subscribe("topic").await {
                    break hints;
                }
            };
            answering(&store).await;
            server.signal(Signal::STOP);
            let begun = Instant::now();
            let first = in_time(store.get("x")).await.unwrap_err();
            assert!(first.may_have_happened(), "{first:?}");
            assert!(begun.elapsed() >= IMPATIENCE);
            // Then it is known, and nobody waits.
            let away = async {
                loop {
                    let begun = Instant::now();
                    let error = in_time(store.get("x")).await.unwrap_err();
                    let is_at_once = begun.elapsed() < IMPATIENCE / 2;
                    if error.fault() == StoreFault::Unavailable && is_at_once {
                        return error;
                    }
                }
            };
            let error = timeout(SOON, away).await.expect("it is known to be away");
            assert!(!error.may_have_happened());
            assert!(error.to_string().contains("socket"), "{error}");
            server.signal(Signal::CONT);
            answering(&store).await;
            timeout(SOON, hints.hinted())
                .await
                .expect("a hint of a new connection");
            open(&server).publish("topic").await.unwrap();
            timeout(SOON, hints.hinted()).await.expect("a hint");
        });
    }
}

#[test]
fn a_server_that_comes_later_is_found() {
    let runtime = Runtime::new().unwrap();
    let mut server = Server::stopped(Program::Valkey, &[]);
    runtime.block_on(async {
        let store = open(&server);
        for _ in 0..100 {
            let error = in_time(store.once("x", LONG)).await.unwrap_err();
            assert_eq!(error.fault(), StoreFault::Unavailable, "{error}");
            let error = in_time(store.subscribe("x")).await.unwrap_err();
            assert_eq!(error.fault(), StoreFault::Unavailable, "{error}");
        }
        server.start_again();
        answering(&store).await;
        assert!(store.once("x", LONG).await.unwrap());
    });
}

#[test]
fn refusals_of_the_server_are_told_apart() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let server = Server::start(program, &["--maxmemory-policy", "noeviction"]);
        server.raw("ACL SETUSER mcp on >s3cret ~own:* resetchannels &own:* +@read +@write +@pubsub +@scripting +@connection +time +ping");
        server.raw("ACL SETUSER weak on >weak ~own:* +get +ping");
        let as_user = |user: &str, password: &str| {
            let options = RedisOptions {
                prefix: "own:".into(),
                user: Some(user.into()),
                password: Some(password.into()),
                ..patient()
            };
            RedisStore::open(&server.url(), &options).unwrap()
        };
        runtime.block_on(async {
            // The rights that the documentation names are enough for every verb.
            let store = as_user("mcp", "s3cret");
            every_verb(&store).await.unwrap();
            let error = store_fault(as_user("mcp", "wr0ng").ping().await);
            assert_eq!(error.0, StoreFault::Refused, "{}", error.1);
            assert!(!error.1.contains("wr0ng"));
            let error = store_fault(as_user("weak", "weak").once("x", LONG).await);
            assert_eq!(error.0, StoreFault::Refused, "{}", error.1);
            let other = open(&server);
            server.raw("SET mcpbolt:b{bad} x");
            let error = store_fault(other.get("bad").await);
            assert_eq!(error.0, StoreFault::Unreadable, "{}", error.1);
            server.raw("SET mcpbolt:o{bad} x");
            let me = HolderId::random().unwrap();
            let error = store_fault(other.lease("bad", me, b"", LONG).await);
            assert_eq!(error.0, StoreFault::Unreadable, "{}", error.1);
            server.raw("CONFIG SET maxmemory 1");
            let error = store_fault(other.put("x", b"1", LONG, When::Always).await);
            assert_eq!(error.0, StoreFault::Full, "{}", error.1);
            let error = store_fault(other.take("x", one_a_minute(), 1).await);
            assert_eq!(error.0, StoreFault::Full, "{}", error.1);
        });
    }
}

/// A server that becomes a replica keeps its connections; its address leads to the one that took its place.
#[test]
fn a_server_that_became_a_replica_is_left() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let (one, two) = (Server::start(program, &[]), Server::start(program, &[]));
        runtime.block_on(async {
            let store = open(&one);
            assert!(store.once("before", LONG).await.unwrap());
            one.raw("REPLICAOF 127.0.0.1 1");
            std::fs::rename(two.socket(), one.socket()).unwrap();
            let written = async {
                while let Err(error) = in_time(store.once("after", LONG)).await {
                    assert_eq!(error.fault(), StoreFault::Refused, "{error}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            timeout(SOON, written)
                .await
                .expect("the replica is left for the server in its place");
        });
    }
}

/// Whenever a subscriber gives up, the server is asked for nothing in its name.
#[test]
fn subscriptions_that_are_given_up_leave_no_channel() {
    let runtime = Runtime::new().unwrap();
    let server = Server::start(Program::Valkey, &[]);
    runtime.block_on(async {
        let store = open(&server);
        answering(&store).await;
        for _ in 0..2_000 {
            let topic = fresh("given up");
            let mut subscribing = store.subscribe(&topic);
            // A thread that waits for its turn may have the answer already.
            drop(futures::poll!(&mut subscribing));
        }
        // What comes now comes after all of those.
        let last = store.subscribe("last").await.unwrap();
        drop(last);
        let gone = async {
            while server.raw("PUBSUB CHANNELS") != "*0\r\n" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(SOON, gone).await.expect("no channel is left");
    });
}

fn store_fault<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> (StoreFault, String) {
    let error = outcome.unwrap_err();
    (error.fault(), error.to_string())
}

fn one_a_minute() -> Bucket {
    Bucket {
        burst: 1,
        interval: Duration::from_secs(60),
    }
}

/// Each verb once, in each of its ways.
pub async fn every_verb(store: &dyn SharedStore) -> Result<(), StoreError> {
    let (name, me) = (fresh("verb"), HolderId::random().unwrap());
    let bounds = LogBounds {
        entries: 9,
        bytes: 999,
        keep: LONG,
    };
    let version = store.put(&name, b"1", LONG, When::Absent).await?.unwrap();
    let version = store
        .put(&name, b"2", LONG, When::Is(version))
        .await?
        .unwrap();
    store.get(&name).await?.unwrap();
    assert!(store.remove(&name, When::Is(version)).await?);
    store.put(&name, b"3", LONG, When::Always).await?.unwrap();
    assert!(store.remove(&name, When::Always).await?);
    store.append(&name, b"entry", bounds, 0).await?.unwrap();
    assert_eq!(store.read(&name, None, 9).await?.entries.len(), 1);
    drop(store.subscribe(&name).await?);
    store.publish(&name).await?;
    store.lease(&name, me, b"note", LONG).await?;
    assert!(store.release(&name, me).await?);
    assert_eq!(store.take(&name, one_a_minute(), 1).await?, Taken::Now);
    let quota = Quota {
        calls: 1,
        period: LONG,
    };
    assert_eq!(store.spend(&name, quota, 1).await?, Taken::Now);
    assert!(store.once(&name, LONG).await?);
    Ok(())
}

#[test]
fn wrong_addresses_and_options_are_named_without_secrets() {
    let cases = [
        ("redis://user:s3cret@/", RedisOptions::default()),
        ("http://user:s3cret@host", RedisOptions::default()),
        ("redis://:s3cret@host/letters", RedisOptions::default()),
        (
            "redis+cluster://:s3cret@host:1,host:a",
            RedisOptions::default(),
        ),
        ("redis+cluster://:s3cret@", RedisOptions::default()),
        ("redis+unix+cluster:///s3cret", RedisOptions::default()),
        (
            "redis://host",
            RedisOptions {
                root_certificates: vec![b"s3cret".to_vec()],
                ..RedisOptions::default()
            },
        ),
        (
            "rediss://host",
            RedisOptions {
                root_certificates: vec![b"-----BEGIN CERTIFICATE-----\ns3cret".to_vec()],
                ..RedisOptions::default()
            },
        ),
        (
            "redis://host",
            RedisOptions {
                prefix: "a{".into(),
                ..RedisOptions::default()
            },
        ),
    ];
    for (url, options) in cases {
        let error = RedisStore::open(url, &options).unwrap_err();
        assert_eq!(error.fault(), StoreFault::Misuse, "{url}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    let options = RedisOptions {
        password: Some("s3cret".into()),
        ..RedisOptions::default()
    };
    for url in [
        "redis://user:s3cret@localhost:1",
        "rediss+cluster://user:s3cret@localhost:1,[::1]:2/0",
    ] {
        let store = RedisStore::open(url, &options).unwrap();
        assert!(!format!("{options:?} {store:?}").contains("s3cret"));
    }
}
