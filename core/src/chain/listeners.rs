//! The streams of one connection to the server on which changes are told.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use super::behalf::Behalf;
use super::route::Route;
use crate::connection::Principal;
use crate::correlate::CancelToken;
use crate::mcp::Method;
use crate::sync::lock;

/// The clients that want a resource.
pub(super) type Wanting = HashMap<Option<Principal>, Wanted>;

/// What a client wants.
#[derive(Default)]
pub(super) struct Wanted {
    /// The numbers of the streams by which it wants that.
    pub streams: BTreeSet<u64>,
    /// Whether the server has granted it.
    pub is_granted: bool,
    /// Cancelled when the server has answered, or could not be asked.
    pub is_tried: CancelToken,
}

/// The streams of one lane, in either direction.
#[derive(Default)]
pub(super) struct Listeners {
    /// Streams of clients of the stateless era.
    pub clients: Mutex<HashMap<u64, Listener>>,
    begun: Mutex<u64>,
    /// The resources that the server is subscribed for, with those for whom.
    pub uris: Mutex<HashMap<Box<str>, Wanting>>,
    /// The streams of this side on a server of the stateless era, one for each on whose behalf it listens, and those that are to
    /// replace them.
    pub servers: Mutex<Vec<Listening>>,
    /// How many of this side's streams in a row ended soon, or could not be opened again.
    pub endings: Mutex<HashMap<Behalf, u32>>,
    /// Cancelled when the clients' streams end.
    pub ends: Mutex<CancelToken>,
}

/// A stream of a client of the stateless era.
pub(super) struct Listener {
    pub route: Arc<Route>,
    pub kinds: Vec<Method>,
    pub uris: BTreeSet<Box<str>>,
}

/// A stream of this side, by the number of its connection and the id of its request there.
pub(super) type StreamId = (u64, u64);

/// A stream of this side.
pub(super) struct Listening {
    pub id: StreamId,
    pub behalf: Behalf,
    pub uris: BTreeSet<Box<str>>,
    /// Cancelled when the server has acknowledged the stream, or it has ended.
    pub acknowledged: CancelToken,
    /// Dropping it ends the stream.
    pub cancel: CancelToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.cancel.cancel(None);
        self.acknowledged.cancel(None);
    }
}

impl Listeners {
    /// A client's stream begins: changes find it. Returns its number.
    pub fn begin(&self, listener: Listener) -> u64 {
        let mut begun = lock(&self.begun);
        *begun += 1;
        lock(&self.clients).insert(*begun, listener);
        *begun
    }

    /// The resources of a client's stream, without those that the server has refused.
    pub fn uris_of(&self, number: u64) -> BTreeSet<Box<str>> {
        let all = lock(&self.clients);
        all.get(&number)
            .map(|one| one.uris.clone())
            .unwrap_or_default()
    }

    /// Ends this side's streams on that behalf.
    pub fn end_own(&self, behalf: &Behalf) {
        let mut all = lock(&self.servers);
        let gone = self.take_own(&mut all, behalf);
        drop(all);
        drop(gone);
    }

    /// The same, of those that `all` are: they end when they are dropped.
    pub fn take_own(&self, all: &mut Vec<Listening>, behalf: &Behalf) -> Vec<Listening> {
        lock(&self.endings).remove(behalf);
        all.extract_if(.., |one| one.behalf == *behalf).collect()
    }

    /// Whether this side has a stream on that behalf.
    pub fn has_own(&self, behalf: &Behalf) -> bool {
        lock(&self.servers).iter().any(|one| one.behalf == *behalf)
    }

    /// Ends all streams, in good order for clients.
    pub fn end(&self) {
        let ends = std::mem::take(&mut *lock(&self.ends));
        ends.cancel(None);
        let gone = std::mem::take(&mut *lock(&self.servers));
        lock(&self.uris).clear();
        lock(&self.endings).clear();
        drop(gone);
    }
}
