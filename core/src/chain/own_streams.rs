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
    /// On whose behalf something may have changed while no stream told of it, until the next one is open.
    late: Mutex<HashMap<Behalf, Late>>,
}

/// What sessions may have missed: changes of their resources, of which they hear when the next stream is open.
#[derive(Clone, Copy, Default)]
pub(super) struct Late {
    /// Changes of lists, too.
    pub lists: bool,
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
        lock(&self.late).remove(behalf);
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

    /// The connection with that number is lost, and its streams with it. What may be said of lists is said when it is restored.
    pub fn lost(&self, connection: u64) {
        lock(&self.endings).clear();
        let is_lost = |one: &mut Listening| one.id.0 == connection;
        let gone: Vec<_> = lock(&self.all).extract_if(.., is_lost).collect();
        for one in gone.iter().filter(|one| one.is_open) {
            self.note_late(&one.behalf, false);
        }
        drop(gone);
    }

    /// Notes that no stream tells of changes on that behalf any more; `lists` says whether nobody else tells what its lists may be.
    pub fn note_late(&self, behalf: &Behalf, lists: bool) {
        lock(&self.late).entry(behalf.clone()).or_default().lists |= lists;
    }

    /// Forgets who is late, but for these.
    pub fn retain_late(&self, those: &[Behalf]) {
        lock(&self.late).retain(|behalf, _| those.contains(behalf));
    }

    /// Notes that a stream is open, which has everything that the streams before it on its behalf had. Returns on whose behalf it is,
    /// and what they missed; `None` if it is none of these.
    pub fn opened(&self, id: Option<StreamId>) -> Option<(Behalf, Option<Late>)> {
        let mut all = lock(&self.all);
        let at = all.iter().position(|one| Some(one.id) == id)?;
        let behalf = all[at].behalf.clone();
        let gone: Vec<_> = all.extract_if(..at, |one| one.behalf == behalf).collect();
        let own = &mut all[at - gone.len()];
        own.is_open = true;
        let acknowledged = own.acknowledged.clone();
        // The end of the connection before may not be told yet.
        let is_cut = |one: &Listening| one.is_open && one.id.0 != own.id.0;
        let cut = gone.iter().any(is_cut).then(Late::default);
        let late = lock(&self.late).remove(&behalf).or(cut);
        drop(all);
        drop(gone);
        acknowledged.cancel(None);
        Some((behalf, late))
    }

    /// Ends a stream. The request that waits for its acknowledgement fails with `why`. `lists` is that of [`note_late`](Self::note_late).
    pub fn forget(&self, id: StreamId, why: Option<&str>, lists: bool) {
        let mut all = lock(&self.all);
        let Some(at) = all.iter().position(|one| one.id == id) else {
            return;
        };
        let gone = all.remove(at);
        let is_another = |one: &Listening| one.is_open && one.behalf == gone.behalf;
        if gone.is_open && !all.iter().any(is_another) {
            self.note_late(&gone.behalf, lists);
        }
        drop(all);
        gone.acknowledged.cancel(why);
    }
}
