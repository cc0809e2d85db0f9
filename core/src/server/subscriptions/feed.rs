//! Changes on their way between the processes of a server.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::{Change, Subscribers, lock};

/// Most updated resources that are told one by one.
const MAX_UPDATED: usize = 1_000;
/// Most bytes of their URIs.
const MAX_UPDATED_BYTES: usize = 256 << 10;

/// What has changed. More than can be told one by one is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Changes {
    everything: bool,
    tools: bool,
    prompts: bool,
    resources: bool,
    /// The resources whose contents have changed.
    updated: BTreeSet<Box<str>>,
}

impl Changes {
    /// All lists and all resources.
    pub fn of_everything() -> Self {
        Self {
            everything: true,
            ..Self::default()
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, change: Change<'_>) {
        match change {
            Change::Tools => self.tools = true,
            Change::Prompts => self.prompts = true,
            Change::Resources => self.resources = true,
            Change::Resource(uri) => {
                self.updated.insert(uri.into());
            }
        }
        self.bound();
    }

    /// Adds what has changed before.
    fn merge(&mut self, before: Self) {
        self.everything |= before.everything;
        self.tools |= before.tools;
        self.prompts |= before.prompts;
        self.resources |= before.resources;
        self.updated.extend(before.updated);
        self.bound();
    }

    fn bound(&mut self) {
        let bytes: usize = self.updated.iter().map(|uri| uri.len()).sum();
        let is_much = self.updated.len() > MAX_UPDATED || bytes > MAX_UPDATED_BYTES;
        if self.everything || is_much {
            *self = Self::of_everything();
        }
    }

    /// Each change; `None` if everything has changed.
    fn each(&self) -> Option<impl Iterator<Item = Change<'_>>> {
        let lists = [
            (self.tools, Change::Tools),
            (self.prompts, Change::Prompts),
            (self.resources, Change::Resources),
        ];
        let lists = lists.into_iter().filter(|(is_changed, _)| *is_changed);
        let updated = self.updated.iter().map(|uri| Change::Resource(uri));
        (!self.everything).then(|| lists.map(|(_, change)| change).chain(updated))
    }
}

/// The changes that other processes are still to be told of.
#[derive(Debug, Default)]
pub(super) struct Untold {
    changes: Changes,
    waker: Option<Waker>,
}

impl Untold {
    /// Adds a change. Returns the task to wake once no lock is held.
    pub fn add(&mut self, change: Change<'_>) -> Option<Waker> {
        self.changes.add(change);
        self.waker.take()
    }
}

/// The changes of a server in this process, for other processes, and theirs for clients of this one. A transport that
/// has the means passes them on.
#[derive(Debug)]
pub struct ChangeFeed {
    subscribers: Arc<Subscribers>,
    /// Whether clients expect changes of the lists.
    has_lists: bool,
}

impl ChangeFeed {
    pub(in crate::server) fn new(subscribers: &Arc<Subscribers>, has_lists: bool) -> Self {
        Self {
            subscribers: subscribers.clone(),
            has_lists,
        }
    }

    /// Begins to collect changes, once no other feed of the server does.
    pub(crate) async fn turn(&self) -> FeedTurn {
        let turn = self.subscribers.turn.clone().lock_owned().await;
        *lock(&self.subscribers.untold) = Some(Untold::default());
        FeedTurn {
            subscribers: self.subscribers.clone(),
            _turn: turn,
        }
    }

    /// The changes since the last ones; waits for the first.
    pub(crate) async fn next(&self) -> Changes {
        poll_fn(|cx| {
            let mut untold = lock(&self.subscribers.untold);
            let untold = untold.get_or_insert_default();
            if untold.changes.is_empty() {
                untold.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(std::mem::take(&mut untold.changes))
        })
        .await
    }

    /// Takes changes back that could not be passed on.
    pub(crate) fn put_back(&self, changes: Changes) {
        let mut untold = lock(&self.subscribers.untold);
        untold.get_or_insert_default().changes.merge(changes);
    }

    /// Notifies the clients of this process of changes at another one.
    pub(crate) fn tell(&self, changes: &Changes) {
        match changes.each() {
            Some(changes) => changes.for_each(|change| self.subscribers.tell_here(change)),
            None => self.subscribers.tell_everything(self.has_lists),
        }
    }
}

/// Has a feed collect changes until it is dropped; then another one may.
pub(crate) struct FeedTurn {
    subscribers: Arc<Subscribers>,
    _turn: OwnedMutexGuard<()>,
}

impl Drop for FeedTurn {
    fn drop(&mut self) {
        *lock(&self.subscribers.untold) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_together_and_are_everything_beyond_a_bound() {
        let mut changes = Changes::default();
        for change in [
            Change::Tools,
            Change::Resource("a:1"),
            Change::Tools,
            Change::Resource("a:1"),
        ] {
            changes.add(change);
        }
        let each: Vec<_> = changes.each().unwrap().collect();
        assert_eq!(each, [Change::Tools, Change::Resource("a:1")]);
        let mut later = Changes::default();
        later.add(Change::Prompts);
        later.merge(changes.clone());
        assert_eq!(later.each().unwrap().count(), 3);
        let long = "a".repeat(MAX_UPDATED_BYTES);
        for many in [0..MAX_UPDATED + 1, 0..0] {
            let mut all = changes.clone();
            let is_long = many.is_empty();
            many.for_each(|n| all.add(Change::Resource(&n.to_string())));
            if is_long {
                all.add(Change::Resource(&long));
            }
            assert_eq!(all, Changes::of_everything());
            all.add(Change::Resource("b:1"));
            assert_eq!(all, Changes::of_everything());
        }
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let read: Changes = serde_json::from_str(r#"{"tools":true,"skills":["a"]}"#).unwrap();
        assert_eq!(read.each().unwrap().collect::<Vec<_>>(), [Change::Tools]);
    }
}
