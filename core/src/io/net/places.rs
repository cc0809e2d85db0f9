//! Limits the number of connections of a server, and chooses which give way to new ones.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::trim::trim;
use super::turns::{Fair, Flow, Turns};
use crate::connection::RequestSource;
use crate::correlate::{CancelToken, Cancelled};
use crate::io::http::{Network, is_trusted};
use crate::io::shares::{Shares, Stage};
use crate::sync::lock;

/// Number of ended connections after which memory is given back.
const MANY: usize = 32;
/// How long memory that is freed may wait until it is given back: 300 MiB of it take 20 ms.
const GIVEN_BACK_WITHIN: Duration = Duration::from_millis(250);
/// If fewer connections than this end within that time, memory is given back once more, and after that only
/// when another [`MANY`] have ended.
const SOME: usize = 4;

/// The places for connections. When all are taken, a new connection takes the place of one that has not
/// finished its handshake, or is closed at once.
#[derive(Clone)]
pub struct Places(Arc<Table>);

struct Table {
    held: Mutex<Shares<usize, CancelToken>>,
    taken: AtomicUsize,
    /// Connections that have not ended, including those that gave way.
    open: AtomicUsize,
    emptied: Notify,
    /// Connections that have ended since memory was last given back.
    ended: AtomicUsize,
    many_ended: Notify,
    proxies: Vec<Network>,
    turns: Arc<Turns>,
}

/// The place of one connection, released when its last clone is dropped.
pub type Place = Arc<HeldPlace>;

pub struct HeldPlace {
    number: usize,
    peer: Option<SocketAddr>,
    source: RequestSource,
    established: AtomicBool,
    gives_way: CancelToken,
    flow: Arc<Flow>,
    table: Arc<Table>,
}

/// Number of threads of the current runtime; 1 outside of a runtime.
fn threads() -> usize {
    let runtime = tokio::runtime::Handle::try_current();
    runtime.map_or(1, |runtime| runtime.metrics().num_workers())
}

impl Places {
    /// `all`: most connections in total. `each`: most connections of one address. Connections of
    /// `proxies` carry many clients and have no limit per address.
    pub fn new(all: usize, each: Option<usize>, proxies: &[Network]) -> Self {
        Self(Arc::new(Table {
            held: Mutex::new(Shares::new(all, each)),
            taken: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            emptied: Notify::new(),
            ended: AtomicUsize::new(0),
            many_ended: Notify::new(),
            proxies: proxies.to_vec(),
            turns: Turns::new(threads()),
        }))
    }

    /// Takes a place for a connection from `peer`; `None` if there is none.
    pub fn take(&self, peer: Option<SocketAddr>) -> Option<Place> {
        let Self(table) = self;
        let address = peer.map(|peer| peer.ip());
        let own = address.filter(|own: &IpAddr| !is_trusted(&table.proxies, *own));
        let source = own.map_or(RequestSource::Unknown, RequestSource::of_address);
        let mut held = lock(&table.held);
        if !held.has_room(&source) && !give_way(&mut held, &source) {
            return None;
        }
        let number = table.taken.fetch_add(1, Relaxed);
        let gives_way = CancelToken::new();
        let stage = (Stage::Unfinished, Instant::now());
        held.insert(number, source.clone(), stage, gives_way.clone());
        drop(held);
        table.open.fetch_add(1, Relaxed);
        Some(Arc::new(HeldPlace {
            number,
            peer,
            flow: table.turns.flow(&source),
            source,
            established: AtomicBool::new(false),
            gives_way,
            table: table.clone(),
        }))
    }

    /// Closes a connection that is not established, when the system has run out of descriptors.
    pub fn make_room(&self) {
        give_way(&mut lock(&self.0.held), &RequestSource::Unknown);
    }

    /// Returns memory to the system after many connections have ended.
    pub async fn give_memory_back(&self) -> Infallible {
        loop {
            self.0.many_ended.notified().await;
            loop {
                // Other connections usually end at the same time.
                tokio::time::sleep(GIVEN_BACK_WITHIN).await;
                let few_ended = self.0.ended.swap(0, Relaxed) < SOME;
                // If it fails, the next round returns the memory.
                let _ = tokio::task::spawn_blocking(trim).await;
                if few_ended {
                    // This last call also returned what earlier connections freed late.
                    break;
                }
            }
        }
    }

    /// Closes all connections at once.
    pub fn close_all(&self) {
        let held = lock(&self.0.held);
        held.values()
            .for_each(|gives_way| _ = gives_way.cancel(None));
    }

    /// Waits until all connections have ended, for at most `within`.
    pub async fn emptied(&self, within: Duration) {
        let all_ended = async {
            loop {
                let ended = self.0.emptied.notified();
                if self.0.open.load(Relaxed) == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(within, all_ended).await;
    }
}

/// Lets a connection that is not established give way to one of `source`. Returns whether there was
/// one.
fn give_way(held: &mut Shares<usize, CancelToken>, source: &RequestSource) -> bool {
    match held.yields(source, Instant::now()) {
        Some((Stage::Unfinished, _, number)) => {
            if let Some(gives_way) = held.remove(&number) {
                gives_way.cancel(None);
            }
            true
        }
        _ => false,
    }
}

impl HeldPlace {
    /// The peer address.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The source of the connection, according to its address.
    pub fn source(&self) -> &RequestSource {
        &self.source
    }

    /// Marks the handshake as finished: from now on the connection does not give way.
    pub fn establish(&self) {
        if !self.established.load(Relaxed) && !self.established.swap(true, Relaxed) {
            let mut held = lock(&self.table.held);
            held.advance(&self.number, Stage::Used, Instant::now());
        }
    }

    /// Wraps `work` as a task of this connection, scheduled fairly among connections.
    pub fn task<F: Future>(&self, work: F) -> Fair<F> {
        self.flow.task(work)
    }

    /// Completes when the connection must make room for another.
    pub fn gives_way(&self) -> Cancelled {
        self.gives_way.cancelled()
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        lock(&self.table.held).remove(&self.number);
        if self.table.ended.fetch_add(1, Relaxed) + 1 == MANY {
            self.table.many_ended.notify_one();
        }
        if self.table.open.fetch_sub(1, Relaxed) == 1 {
            self.table.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> Option<SocketAddr> {
        Some(([127, 0, 0, last], 1).into())
    }

    #[test]
    fn what_is_not_established_makes_room() {
        let places = Places::new(4, Some(4), &[]);
        let first = places.take(at(1)).unwrap();
        first.establish();
        let idle: Vec<_> = (0..3).map(|_| places.take(at(1)).unwrap()).collect();
        let another = places.take(at(2)).unwrap();
        let gone: Vec<_> = idle
            .iter()
            .map(|one| one.gives_way.is_cancelled())
            .collect();
        assert_eq!(gone, [true, false, false], "the oldest");
        another.establish();
        idle[1].establish();
        idle[2].establish();
        assert!(places.take(at(3)).is_none(), "nobody is sent away");
        assert!(!first.gives_way.is_cancelled());
        drop(first);
        assert!(places.take(at(3)).is_some());
    }

    #[test]
    fn one_address_has_its_share_and_a_proxy_more() {
        let proxies = ["127.0.0.9".parse().unwrap()];
        let places = Places::new(100, Some(5), &proxies);
        let take = |last, count| {
            let taken = (0..count).map_while(|_| places.take(at(last)));
            let taken = taken.inspect(|place| place.establish());
            taken.collect::<Vec<_>>()
        };
        let (one, proxy) = (take(1, 50), take(9, 50));
        assert_eq!((one.len(), proxy.len()), (5, 50));
        drop((one, proxy));
        assert_eq!(places.0.open.load(Relaxed), 0);
        assert_eq!(lock(&places.0.held).len(), 0);
    }
}
