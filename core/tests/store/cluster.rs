//! What is special to a store on a cluster: slots that move, and nodes that are away.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::io::{RedisOptions, RedisStore};
use mcpbolt::store::{LogBounds, SharedStore, StoreFault, When};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::servers::{Cluster, Program};
use crate::stores::{LONG, SOON, open};

const BOUNDS: LogBounds = LogBounds {
    entries: 10,
    bytes: 1 << 10,
    keep: LONG,
};

/// The slot of a name, and the number of the node that has it at first.
fn place(cluster: &Cluster, name: &str) -> (u32, usize) {
    let slot = cluster.nodes[0].raw(&format!("CLUSTER KEYSLOT {{{name}}}"));
    let slot = slot.trim_end().trim_start_matches(':').parse().unwrap();
    let node = (0..3).find(|node| slot < (node + 1) * Cluster::SLOTS / 3);
    (slot, node.unwrap() as usize)
}

/// Uses each form of state once, as if nobody had before.
async fn uses(store: &dyn SharedStore, name: &str) {
    assert_eq!(store.get(name).await.unwrap(), None);
    let put = store.put(name, b"a", LONG, When::Absent).await;
    let version = put.unwrap().expect("a new blob");
    let put = store.put(name, b"b", LONG, When::Is(version)).await;
    assert!(put.unwrap().is_some());
    let id = store.append(name, b"first", BOUNDS, 0).await.unwrap();
    let page = store.read(name, None, 10).await.unwrap();
    assert_eq!(Some(page.last), id);
    assert!(store.once(name, LONG).await.unwrap());
    assert!(!store.once(name, LONG).await.unwrap());
}

/// Has `name` used while its slot moves to the node that `to` names for the node that had the slot.
async fn used_while_it_moves(
    cluster: &Cluster,
    store: &RedisStore,
    name: &str,
    to: impl Fn(usize) -> usize,
) {
    let (slot, from) = place(cluster, name);
    let to = to(from);
    let (old, new) = (cluster.id(from), cluster.id(to));
    let set = |node: usize, what: &str| {
        cluster.nodes[node].raw(&format!("CLUSTER SETSLOT {slot} {what}"))
    };
    set(to, &format!("IMPORTING {old}"));
    set(from, &format!("MIGRATING {new}"));
    let moved = async {
        // Time for what is asked for meanwhile.
        sleep(Duration::from_millis(200)).await;
        set(to, &format!("NODE {new}"));
        set(from, &format!("NODE {new}"));
    };
    tokio::join!(uses(store, name), moved);
    assert_eq!(&*store.get(name).await.unwrap().unwrap().bytes, b"b");
    assert!(!store.once(name, LONG).await.unwrap());
}

/// While a slot moves, single keys that are new are at its new node, and those of a log wait until it has moved.
#[test]
fn a_slot_may_move_while_its_names_are_used() {
    let cluster = Cluster::start(Program::Valkey);
    // The rights that the documentation names.
    for node in &cluster.nodes {
        node.raw(
            "ACL SETUSER limited on >secret ~mcpbolt:* &mcpbolt:* +@read +@write +@pubsub \
             +@scripting +@connection +time +ping +cluster|slots +asking",
        );
    }
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(&cluster.url_of("limited"));
        let _hints = store.subscribe("one").await.unwrap();
        for name in ["one", "two", "three", "four"] {
            used_while_it_moves(&cluster, &store, name, |from| (from + 1) % 3).await;
        }
    });
}

/// A node that has had no slot is not known to a connection that was there before.
#[test]
fn a_slot_may_move_to_a_new_node() {
    let mut cluster = Cluster::start(Program::Valkey);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(&cluster.url(&[0, 1, 2]));
        store.ping().await.unwrap();
        cluster.grow();
        used_while_it_moves(&cluster, &store, "one", |_| 3).await;
    });
}

/// Verbs fail while a node is away, and go on when it is back, and so do subscriptions.
#[test]
fn a_node_may_be_away() {
    let mut cluster = Cluster::start(Program::Valkey);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(&cluster.url(&[0, 1, 2]));
        let other = open(&cluster.url(&[2]));
        for away in 0..3 {
            let names: Vec<_> = (0..20).map(|n| format!("{away} {n}")).collect();
            let mut hints = Vec::new();
            for name in &names {
                hints.push(store.subscribe(name).await.unwrap());
            }
            cluster.waits(Duration::from_secs(2));
            cluster.nodes[away].kill();
            let begun = Instant::now();
            let refused = loop {
                let quick = RedisOptions::default();
                let quick = RedisStore::open(&cluster.url(&[(away + 1) % 3]), &quick).unwrap();
                match quick.put("name", b"", LONG, When::Always).await {
                    Err(why) if why.fault() == StoreFault::Unavailable => break why,
                    _ => assert!(begun.elapsed() < SOON, "the cluster does not notice"),
                }
                sleep(Duration::from_millis(50)).await;
            };
            assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
            cluster.nodes[away].start_again();
            cluster.agrees();
            cluster.waits(Cluster::PATIENCE);
            for (name, hints) in names.iter().zip(&mut hints) {
                // Each has one for the connection that was lost.
                timeout(SOON, hints.hinted()).await.unwrap();
                let begun = Instant::now();
                while let Err(why) = other.append(name, b"", BOUNDS, 0).await {
                    assert!(begun.elapsed() < SOON, "{why}");
                    sleep(Duration::from_millis(50)).await;
                }
                timeout(SOON, hints.hinted()).await.unwrap();
                assert!(store.once(name, LONG).await.unwrap());
            }
        }
    });
}

/// A program that uses a node as if it were alone is told what to write.
#[test]
fn a_node_of_a_cluster_says_so() {
    let cluster = Cluster::start(Program::Valkey);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Arc::new(open(&cluster.nodes[0].url()));
        let mut told = None;
        for n in 0..20 {
            told = told.or(store.once(&n.to_string(), LONG).await.err());
        }
        let told = told.expect("slots of other nodes");
        assert_eq!(told.fault(), StoreFault::Refused);
        assert!(told.to_string().contains("redis+cluster://"), "{told}");
    });
}

/// Of several nodes in the address, one is enough; and what has no other place than a node that is away is not there.
#[test]
fn one_node_of_the_address_is_enough() {
    let mut cluster = Cluster::start(Program::Valkey);
    let names: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    let is_there = |name: &&String| place(&cluster, name).1 > 0;
    let there: Vec<_> = names.iter().filter(is_there).collect();
    for node in &cluster.nodes {
        node.raw("CONFIG SET cluster-require-full-coverage no");
    }
    cluster.nodes[0].kill();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(&cluster.url(&[0, 1]));
        for name in there {
            assert!(store.once(name, LONG).await.unwrap(), "{name}");
        }
    });
}
