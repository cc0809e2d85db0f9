//! The streams of clients of the stateless era on which the changes are told that one connection to a server brings.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

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

/// The clients' streams of one connection, and what the server is subscribed for on it.
#[derive(Default)]
pub(super) struct Listeners {
    pub clients: Mutex<HashMap<u64, Listener>>,
    begun: Mutex<u64>,
    /// The resources that the server is subscribed for, with those for whom.
    pub uris: Mutex<HashMap<Box<str>, Wanting>>,
    /// Cancelled when the connection has ended, and the streams with it.
    pub ended: CancelToken,
}

/// A stream of a client of the stateless era.
pub(super) struct Listener {
    pub route: Arc<Route>,
    pub kinds: Vec<Method>,
    pub uris: BTreeSet<Box<str>>,
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
}
