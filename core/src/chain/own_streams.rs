//! The streams on which this side listens to a server of the stateless era.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use super::behalf::Behalf;
use crate::correlate::CancelToken;
use crate::sync::lock;

/// This side's streams of one lane.
#[derive(Default)]
pub(super) struct OwnStreams {
    /// One for each on whose behalf this side listens, and those that are to replace them.
    pub all: Mutex<Vec<Listening>>,
    /// How many in a row ended soon, or could not be opened again.
    pub endings: Mutex<HashMap<Behalf, u32>>,
}

/// A stream of this side, by the number of its connection and the id of its request there.
pub(super) type StreamId = (u64, u64);

/// A stream of this side.
pub(super) struct Listening {
    pub id: StreamId,
    pub behalf: Behalf,
    pub uris: BTreeSet<Box<str>>,
    /// Whether the server has acknowledged it.
    pub is_open: bool,
    /// Whether its resources may have changed while no stream of this side told of that.
    pub is_late: bool,
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

impl OwnStreams {
    /// Ends the streams on that behalf.
    pub fn end(&self, behalf: &Behalf) {
        let mut all = lock(&self.all);
        let gone = self.take(&mut all, behalf);
        drop(all);
        drop(gone);
    }

    /// The same, of those that `all` are: they end when they are dropped.
    pub fn take(&self, all: &mut Vec<Listening>, behalf: &Behalf) -> Vec<Listening> {
        lock(&self.endings).remove(behalf);
        all.extract_if(.., |one| one.behalf == *behalf).collect()
    }

    /// Whether there is a stream on that behalf.
    pub fn has(&self, behalf: &Behalf) -> bool {
        lock(&self.all).iter().any(|one| one.behalf == *behalf)
    }

    /// Runs `note` if no stream on that behalf is open, before one that opens meanwhile is.
    pub fn unless_open(&self, behalf: &Behalf, note: impl FnOnce()) {
        let all = lock(&self.all);
        if !all.iter().any(|one| one.is_open && one.behalf == *behalf) {
            note();
        }
    }

    /// The connection with that number is lost, and its streams with it.
    pub fn lost(&self, connection: u64) {
        lock(&self.endings).clear();
        let is_lost = |one: &mut Listening| one.id.0 == connection;
        let gone: Vec<_> = lock(&self.all).extract_if(.., is_lost).collect();
        drop(gone);
    }
}
