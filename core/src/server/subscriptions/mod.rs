//! Change notifications: the connections of a server and what each of them listens to.
//!
//! In revisions with a handshake, every client is notified of changed lists and of the resources it
//! subscribed to. From 2026-07-28 on, a client sends one or more `subscriptions/listen` requests,
//! and each is a separate stream of notifications until it is cancelled (R-SUB).

mod change;
#[cfg(all(feature = "http", feature = "sealing"))]
mod feed;
mod listen;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use self::change::Change;
use self::change::Coalescer;
#[cfg(all(feature = "http", feature = "sealing"))]
pub use self::feed::ChangeFeed;
#[cfg(all(feature = "http", feature = "sealing"))]
pub(crate) use self::feed::Changes;
#[cfg(all(feature = "http", feature = "sealing"))]
use self::feed::Untold;
use self::listen::Listen;
pub(super) use self::listen::{Filter, Interests};
use crate::connection::{Budget, Call, CallKey, Handle, Held};
use crate::limits::{MAX_LISTENS, MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS};
use crate::mcp::ErrorKind;

/// The connections of one server.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    connections: Mutex<Connections>,
    /// The changes for other processes, if there are any that are told.
    #[cfg(all(feature = "http", feature = "sealing"))]
    untold: Mutex<Option<Untold>>,
    /// Taken by the feed that tells them.
    #[cfg(all(feature = "http", feature = "sealing"))]
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Connections {
    by_number: HashMap<u64, Weak<Subscriber>>,
    next: u64,
}

impl Subscribers {
    /// Adds a connection; dropping the subscriber removes it.
    pub fn join(self: &Arc<Self>, handle: Handle) -> Arc<Subscriber> {
        let mut all = lock(&self.connections);
        let number = all.next;
        let wants = Wants::new(&handle.config().budget);
        all.next += 1;
        let subscriber = Arc::new(Subscriber {
            subscribers: self.clone(),
            number,
            handle,
            ready: AtomicBool::new(false),
            wants: Mutex::new(wants),
        });
        all.by_number.insert(number, Arc::downgrade(&subscriber));
        subscriber
    }

    /// Removes a connection, and frees capacity when few are left.
    fn leave(&self, number: u64) {
        let all = &mut lock(&self.connections).by_number;
        all.remove(&number);
        if all.capacity() / 8 > all.len() {
            all.shrink_to(all.len() * 2);
        }
    }

    /// Notifies every connection that listens to this change, at other processes, too.
    pub fn tell(&self, change: Change<'_>) {
        self.tell_here(change);
        #[cfg(all(feature = "http", feature = "sealing"))]
        {
            let mut untold = lock(&self.untold);
            let waker = untold.as_mut().and_then(|untold| untold.add(change));
            drop(untold);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Notifies every connection of this process of all that it listens to.
    #[cfg(all(feature = "http", feature = "sealing"))]
    fn tell_everything(&self, has_lists: bool) {
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        for subscriber in self.present() {
            if has_lists {
                lists.into_iter().for_each(|list| subscriber.tell(list));
            }
            let uris = subscriber.uris();
            uris.iter()
                .for_each(|uri| subscriber.tell(Change::Resource(uri)));
        }
    }

    /// Notifies every connection of this process that listens to this change.
    fn tell_here(&self, change: Change<'_>) {
        let present = self.present();
        present
            .iter()
            .for_each(|subscriber| subscriber.tell(change));
    }

    /// Notifies the streams that listen to this task; `detail` holds the members of its state.
    pub fn tell_task(&self, id: &str, detail: &str) {
        for subscriber in self.present() {
            for listen in &lock(&subscriber.wants).listens {
                listen.tell_task(&subscriber.handle, id, detail);
            }
        }
    }

    fn present(&self) -> Vec<Arc<Subscriber>> {
        let all = lock(&self.connections);
        all.by_number.values().filter_map(Weak::upgrade).collect()
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Subscriber {
    subscribers: Arc<Subscribers>,
    number: u64,
    handle: Handle,
    /// Set when a client of the handshake era has sent `notifications/initialized`; nothing is sent
    /// before (R-LIF-03).
    ready: AtomicBool,
    wants: Mutex<Wants>,
}

#[derive(Debug)]
struct Wants {
    /// Resource subscriptions of a client of the handshake era. Ordered, since comparing long URIs
    /// is faster than hashing them.
    uris: BTreeSet<Box<str>>,
    /// Streams of a client of the stateless era.
    listens: Vec<Listen>,
    coalescer: Coalescer,
    /// The bytes of both in the server's budget.
    held: Held,
}

impl Wants {
    fn new(budget: &Arc<Budget>) -> Self {
        Self {
            uris: BTreeSet::new(),
            listens: Vec::new(),
            coalescer: Coalescer::default(),
            held: Held::of(budget),
        }
    }

    fn try_hold(&mut self, bytes: usize) -> bool {
        let all = self.held.bytes() + bytes;
        all <= MAX_SUBSCRIPTION_BYTES && self.held.try_keep(all)
    }

    fn let_go(&mut self, bytes: usize) {
        self.held.keep(self.held.bytes().saturating_sub(bytes));
    }
}

impl Subscriber {
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Returns whether there was room. Subscribing twice has no further effect (R-RES-07).
    pub fn subscribe(&self, uri: &str) -> bool {
        let wants = &mut *lock(&self.wants);
        let fits =
            |wants: &mut Wants| wants.uris.len() < MAX_SUBSCRIPTIONS && wants.try_hold(uri.len());
        wants.uris.contains(uri) || fits(wants) && wants.uris.insert(uri.into())
    }

    pub fn unsubscribe(&self, uri: &str) {
        let wants = &mut *lock(&self.wants);
        if wants.uris.remove(uri) {
            wants.let_go(uri.len());
        }
    }

    /// The resources that the client listens to.
    #[cfg(all(feature = "http", feature = "sealing"))]
    fn uris(&self) -> BTreeSet<Box<str>> {
        let wants = lock(&self.wants);
        let listens = wants.listens.iter().flat_map(Listen::uris);
        wants
            .uris
            .iter()
            .cloned()
            .chain(listens.map(Into::into))
            .collect()
    }

    /// Begins a stream: acknowledges what will be sent before anything else is sent (R-SUB-02). Returns `false` if there is no room;
    /// then the call is refused.
    pub fn listen(&self, call: &Call, interests: Interests) -> bool {
        let mut wants = lock(&self.wants);
        if wants.listens.len() >= MAX_LISTENS || !wants.try_hold(interests.bytes()) {
            let why = "too many streams are open, or they name too much";
            let mut replies = self.handle.replies();
            replies.error(&call.reply, ErrorKind::Overloaded, why, None);
            return false;
        }
        let listen = Listen::new(call, interests);
        listen.acknowledge(&self.handle);
        wants.listens.push(listen);
        true
    }

    /// Notifies one stream of the state of a task of another process, if it listens to it.
    pub fn tell_task(&self, stream: CallKey, id: &str, detail: &str) {
        let wants = lock(&self.wants);
        let listens = wants.listens.iter().filter(|listen| listen.is(stream));
        listens.for_each(|listen| listen.tell_task(&self.handle, id, detail));
    }

    /// Ends the stream that the client cancelled, if the key is one (R-SUB-08).
    pub fn cancelled(&self, key: CallKey) {
        let wants = &mut *lock(&self.wants);
        let mut gone = 0;
        wants.listens.retain(|listen| {
            let stays = !listen.is(key);
            gone += if stays { 0 } else { listen.bytes() };
            stays
        });
        wants.let_go(gone);
    }

    /// Ends all streams from the server's side (R-SUB-09).
    pub fn end(&self) {
        let mut wants = lock(&self.wants);
        let listens = std::mem::take(&mut wants.listens);
        wants.let_go(listens.iter().map(Listen::bytes).sum());
        drop(wants);
        listens.iter().for_each(|listen| listen.end(&self.handle));
    }

    fn tell(&self, change: Change<'_>) {
        if self.handle.is_closed() {
            return;
        }
        // Holds the lock, so that no stream is notified before its acknowledgement.
        let mut wants = lock(&self.wants);
        // Read before anything is submitted.
        let taken = self.handle.taken();
        for listen in &mut wants.listens {
            listen.tell(&self.handle, change, taken);
        }
        let told = match change {
            Change::Resource(uri) => wants.uris.contains(uri),
            _ => true,
        };
        if told && self.ready.load(Ordering::Acquire) && wants.coalescer.is_new(change, taken) {
            let params = change.members().map(|members| format!("{{{members}}}"));
            // Cannot fail for its params: they are an object.
            let _ = self
                .handle
                .notify(change.method().name(), params.as_deref());
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.subscribers.leave(self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::connection::{Config, Connection};
    use crate::mcp::Side;

    #[test]
    fn closed_connections_are_removed_at_once() {
        let config = Config::new(Side::Server, "server", "1");
        let connection = Connection::new(Arc::new(config), Instant::now());
        let subscribers = Arc::new(Subscribers::default());
        let join = || subscribers.join(connection.handle());
        let (stays, leave): (_, Vec<_>) = (join(), (0..1000).map(|_| join()).collect());
        assert_eq!(subscribers.present().len(), 1001);
        drop(leave);
        assert_eq!(subscribers.present().len(), 1);
        let held = lock(&subscribers.connections).by_number.capacity();
        assert!(held < 100, "room for {held}");
        drop(stays);
        assert_eq!(Arc::strong_count(&subscribers), 1);
    }
}
