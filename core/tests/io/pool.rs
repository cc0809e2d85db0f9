//! A pool of connections to servers that are other processes.

use std::collections::BTreeSet;
use std::io;
use std::thread;
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{Pool, PoolError, PoolOptions, Stderr};
use mcpbolt::mcp::{LogLevel, Revision, Revisions};
use mcpbolt::model::Root;
use serde_json::json;

use super::peer::child;
use super::reconnect::{kill, pid};

/// A pool of connections to the server of the reconnecting client. Keys are revisions.
fn pool(options: PoolOptions) -> Pool<Revision> {
    let open = |revision: &Revision| {
        let builder = Client::builder("test", "1.0.0").revisions(Revisions::only(*revision));
        let builder = builder.roots([]);
        builder.spawn(child("notes").stderr(Stderr::Discard))
    };
    Pool::new(open, options)
}

/// Waits until something is so.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(2));
    }
}

const OLD: Revision = Revision::V2025_06_18;
const NEW: Revision = Revision::V2026_07_28;

/// R-POL-01, R-POL-02, R-POL-03, R-POL-05
#[test]
fn many_callers_share_few_connections_and_each_has_its_own_meanwhile() {
    let pool = pool(PoolOptions {
        max_connections: 3,
        ..PoolOptions::default()
    });
    let callers = [OLD, NEW].into_iter().cycle().take(40).map(|revision| {
        let pool = pool.clone();
        thread::spawn(move || {
            let client = block_on(pool.get(&revision)).unwrap();
            assert_eq!(
                client.revision(),
                Some(revision),
                "the key tells them apart"
            );
            let both = [pid(&client), pid(&client)];
            assert_eq!(both[0], both[1]);
            both[0]
        })
    });
    let callers: Vec<_> = callers.collect();
    let servers: BTreeSet<_> = callers.into_iter().map(|it| it.join().unwrap()).collect();
    assert!(servers.len() <= 6, "{servers:?}");
    let counts = pool.counts();
    assert_eq!(counts.opened, servers.len() as u64);
    assert_eq!(counts.opened + counts.reused, 40);
    assert_eq!(
        (counts.idle, counts.in_use, counts.waiting),
        (servers.len(), 0, 0)
    );
}

/// R-POL-03
#[test]
fn a_connection_that_breaks_leaves_the_pool() {
    let pool = pool(PoolOptions {
        max_connections: 1,
        ..PoolOptions::default()
    });
    let client = block_on(pool.get(&NEW)).unwrap();
    let first = pid(&client);
    kill(first);
    let _ = client.call_tool("sleep", &json!({})).wait().unwrap_err();
    drop(client);
    let client = block_on(pool.get(&NEW)).unwrap();
    let second = pid(&client);
    assert_ne!(first, second);
    client.discard();
    let client = block_on(pool.get(&NEW)).unwrap();
    assert_ne!(second, pid(&client));
    assert_eq!((pool.counts().opened, pool.counts().dropped), (3, 2));
}

/// R-POL-04: nobody gets what another has subscribed to.
#[test]
fn a_connection_with_subscriptions_goes_to_nobody_else() {
    for revision in [OLD, NEW] {
        let pool = pool(PoolOptions {
            sharing: 2,
            ..PoolOptions::default()
        });
        let client = block_on(pool.get(&revision)).unwrap();
        let own = pid(&client);
        block_on(client.subscribe("note:1")).unwrap();
        let other = block_on(pool.get(&revision)).unwrap();
        assert_ne!(pid(&other), own);
        drop(client);
        drop(other);
        let next = block_on(pool.get(&revision)).unwrap();
        assert_ne!(pid(&next), own);
        block_on(next.subscribe("note:1")).unwrap();
        block_on(next.unsubscribe("note:1")).unwrap();
        let shared = block_on(pool.get(&revision)).unwrap();
        assert_eq!(pid(&next), pid(&shared), "its subscription is over");
    }
}

/// R-POL-04: what a caller has set is not for the next one.
#[test]
fn a_connection_with_another_log_level_or_other_roots_goes_to_nobody_else() {
    let pool = pool(PoolOptions::default());
    let set_level: fn(&Client) -> bool =
        |client| block_on(client.set_log_level(LogLevel::Debug)).is_ok();
    let set_roots = |client: &Client| client.set_roots([Root::new("file:///a")]).is_ok();
    for set in [set_level, set_roots] {
        let client = block_on(pool.get(&OLD)).unwrap();
        let own = pid(&client);
        assert!(set(&client));
        drop(client);
        assert_ne!(pid(&block_on(pool.get(&OLD)).unwrap()), own);
    }
}

/// R-POL-03
#[test]
fn a_caller_waits_in_vain_for_a_limited_time_and_a_closed_pool_has_nothing() {
    let pool = pool(PoolOptions {
        max_connections: 1,
        max_waiting: 1,
        wait_timeout: Duration::from_millis(300),
        ..PoolOptions::default()
    });
    let client = block_on(pool.get(&NEW)).unwrap();
    let waiting = pool.clone();
    let waiting = thread::spawn(move || block_on(waiting.get(&NEW)).unwrap_err());
    until(|| pool.counts().waiting == 1);
    let error = block_on(pool.get(&NEW)).unwrap_err();
    assert!(matches!(error, PoolError::TooManyWait), "{error}");
    let error = waiting.join().unwrap();
    assert!(matches!(error, PoolError::TimedOut(_)), "{error}");
    assert_eq!(pool.counts().timed_out, 1);

    pool.close();
    until(|| client.handle().is_closed());
    let error = block_on(pool.get(&NEW)).unwrap_err();
    assert!(matches!(error, PoolError::Closed), "{error}");
}

#[test]
fn idle_connections_end_with_time_and_with_the_pool() {
    let pool = pool(PoolOptions {
        idle_timeout: Duration::from_millis(50),
        ..PoolOptions::default()
    });
    let one = block_on(pool.get(&NEW)).unwrap();
    let client = Client::clone(&one);
    drop(one);
    until(|| client.handle().is_closed());
    assert_eq!(pool.counts().closed_idle, 1);

    let pool = self::pool(PoolOptions::default());
    let (one, two) = (
        block_on(pool.get(&NEW)).unwrap(),
        block_on(pool.get(&NEW)).unwrap(),
    );
    let idle = Client::clone(&one);
    drop(one);
    drop(pool);
    until(|| idle.handle().is_closed());
    let used = Client::clone(&two);
    pid(&two);
    drop(two);
    until(|| used.handle().is_closed());
}

#[test]
fn what_cannot_be_opened_is_told_and_leaves_room() {
    let open = |_: &()| async { Err::<Client, _>(io::Error::other("no such server")) };
    let pool = Pool::new(
        open,
        PoolOptions {
            max_connections: 1,
            ..PoolOptions::default()
        },
    );
    for _ in 0..3 {
        let error = block_on(pool.get(&())).unwrap_err();
        assert!(error.to_string().contains("no such server"), "{error}");
    }
    assert_eq!((pool.counts().failed, pool.counts().opening), (3, 0));
}
