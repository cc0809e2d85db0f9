//! The streams of one connection to the server on which changes are told.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use super::route::Route;
use crate::correlate::CancelToken;
use crate::mcp::Method;
use crate::sync::lock;

/// The streams of one lane, in either direction.
#[derive(Default)]
pub(super) struct Listeners {
    /// Streams of clients of the stateless era.
    pub clients: Mutex<HashMap<u64, Listener>>,
    pub begun: Mutex<u64>,
    /// How many streams want a resource that the server is subscribed for.
    pub uris: Mutex<HashMap<Box<str>, usize>>,
    /// The stream of this side on a server of the stateless era, and those that are to replace it.
    pub servers: Mutex<Vec<Listening>>,
    /// How many of this side's streams in a row ended soon, or could not be opened again.
    pub endings: Mutex<u32>,
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
    /// Ends all streams, in good order for clients.
    pub fn end(&self) {
        let ends = std::mem::take(&mut *lock(&self.ends));
        ends.cancel(None);
        let gone = std::mem::take(&mut *lock(&self.servers));
        lock(&self.uris).clear();
        drop(gone);
    }
}
