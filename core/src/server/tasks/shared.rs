//! Tasks that every process of a server knows, on a store.
//!
//! ```text
//!   runs the task:   state ─▶ record, unless it has ended there      asked ◀─ log
//!   any other:       tasks/get, tasks/result ◀─ record      tasks/update ─▶ log
//!                    tasks/cancel ─▶ record: cancelled, then log
//!                    lease over ─▶ record: failed, or the task is run once more here
//!                    tasks/list ◀─ log of the ids of an owner's tasks
//! ```
//!
//! The process that runs a task holds its lease, and writes its state with the version that it has written before. So whoever
//! ends a record ends the task: there is one terminal state.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::join::join_all;
use super::record::{self, TaskOwner, TaskRecord};
use crate::mcp::Revision;
use crate::store::{
    BlobVersion, HolderId, Leased, LogBounds, LogPage, SharedStore, StoreError, StoreFault,
    Subscription, When,
};

/// How long a process that runs tasks may be silent.
pub const LEASE: Duration = Duration::from_secs(6);
/// How long who finds a lease free keeps it.
const TRIAL: Duration = Duration::from_secs(1);
/// What the log of a task keeps of what clients ask.
const ASKED: LogBounds = LogBounds {
    entries: 1_000,
    bytes: 16 << 20,
    keep: Duration::from_secs(3600),
};
/// What the log of a session keeps of what its tasks have told.
const TOLD: LogBounds = LogBounds {
    entries: 1_000,
    bytes: 4 << 20,
    keep: Duration::from_secs(60),
};
/// Most tasks of one owner that are listed.
const MAX_LISTED: u32 = 10_000;

/// Entries of a log that are read at once.
pub(super) const PAGE: usize = 64;

/// Records that are read at once for a list: each may be as long as the store allows.
const AT_ONCE: usize = 16;

/// Most runs of a task, each at another process when the one before has ended.
const MAX_RUNS: u32 = 3;

/// Why a task fails whose process has ended.
const DEAD: &str = "the process that ran the task has ended";

/// The tasks of all processes.
#[derive(Debug)]
pub struct SharedTasks {
    pub(super) store: Arc<dyn SharedStore>,
    pub(super) runner: HolderId,
    /// Finds out whether a lease is free; not the holder of any.
    pub(super) asker: HolderId,
}

/// What clients ask at other processes.
#[derive(Serialize, Deserialize)]
pub enum Asked {
    Cancel,
    /// Answers to questions, raw JSON.
    Answers(String),
}

/// What the store knows of a task.
pub enum Found {
    /// It has ended, or a process runs it.
    Known(TaskRecord),
    /// Nobody runs it any more, and it may be run once more, unless its record has changed.
    Abandoned(TaskRecord, BlobVersion),
}

impl Found {
    pub fn record(self) -> TaskRecord {
        match self {
            Self::Known(record) | Self::Abandoned(record, _) => record,
        }
    }
}

/// A page of an owner's tasks.
pub struct TaskPage {
    /// The members of the state of each.
    pub tasks: Vec<String>,
    /// Where the next page begins, if there may be one.
    pub next: Option<u64>,
}

pub(super) fn name(id: &str) -> String {
    format!("task {id}")
}

pub(super) fn asked(id: &str) -> String {
    format!("task {id} asked")
}

/// The request of a task that may be run once more.
pub(super) fn call(id: &str) -> String {
    format!("task {id} call")
}

/// The log of the ids of an owner's tasks.
fn index(owner: &TaskOwner) -> String {
    format!("tasks of {}", owner.digest())
}

/// Where changes of a task are told: the log of those of its session, or its own topic (2026-07-28).
fn told(record: &TaskRecord) -> String {
    match &record.origin.session {
        Some(session) => told_in(session),
        None => format!("task {} told", record.id),
    }
}

/// The log of the changes of a session's tasks.
fn told_in(session: &str) -> String {
    format!("tasks told {session}")
}

/// Whether a text of a client may be the id of a task.
fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_plain)
}

impl SharedTasks {
    /// `None` when the system provides no randomness.
    pub fn new(store: Arc<dyn SharedStore>) -> Option<Self> {
        Some(Self {
            store,
            runner: HolderId::random()?,
            asker: HolderId::random()?,
        })
    }

    /// Has `tasks/list` find a task that is kept at most so long.
    pub(super) async fn enlist(
        &self,
        id: &str,
        owner: &TaskOwner,
        keep: Duration,
    ) -> Result<(), StoreError> {
        let bounds = LogBounds {
            entries: MAX_LISTED,
            bytes: 4 << 20,
            keep: record::keep(keep),
        };
        let index = index(owner);
        self.store.append(&index, id.as_bytes(), bounds, 0).await?;
        Ok(())
    }

    /// The record of an owner's task as it stands in the store.
    async fn read(
        &self,
        id: &str,
        owner: &TaskOwner,
        revision: Revision,
    ) -> Result<Option<(TaskRecord, BlobVersion)>, StoreError> {
        if !is_id(id) {
            return Ok(None);
        }
        let Some(blob) = self.store.get(&name(id)).await? else {
            return Ok(None);
        };
        let record = TaskRecord::read(&blob.bytes)?;
        let is_own = record.belongs_to(owner, revision);
        Ok(is_own.then_some((record, blob.version)))
    }

    /// The record of an owner's task, which has ended if nobody runs it any more and it cannot be run once more. `is_here`:
    /// whether this process runs it. Its lease may have lapsed while the store was away.
    pub async fn find(
        &self,
        id: &str,
        (owner, revision): (&TaskOwner, Revision),
        is_here: bool,
    ) -> Result<Option<Found>, StoreError> {
        while let Some((record, version)) = self.read(id, owner, revision).await? {
            if record.has_ended || is_here {
                return Ok(Some(Found::Known(record)));
            }
            let name = name(id);
            let lease = self.store.lease(&name, self.asker, b"", TRIAL);
            if let Leased::Busy { .. } = lease.await? {
                return Ok(Some(Found::Known(record)));
            }
            let (is_idempotent, run) = (record.origin.is_idempotent, record.origin.run);
            if is_idempotent && run < MAX_RUNS {
                return Ok(Some(Found::Abandoned(record, version)));
            }
            let each_time =
                format!("the task was run {run} times, and its process has ended each time");
            let why = if run == 1 { DEAD } else { &*each_time };
            if let Some(failed) = self.fail(record, version, revision, why).await? {
                return Ok(Some(Found::Known(failed)));
            }
        }
        Ok(None)
    }

    /// Ends a task that cannot be run once more after all, unless its record has changed.
    pub async fn give_up(
        &self,
        record: TaskRecord,
        seen: BlobVersion,
        revision: Revision,
    ) -> Result<(), StoreError> {
        self.fail(record, seen, revision, DEAD).await?;
        Ok(())
    }

    async fn fail(
        &self,
        record: TaskRecord,
        seen: BlobVersion,
        revision: Revision,
        why: &str,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let failed = record.failed(revision, why);
        let is_written = self.replace(&failed, seen).await?;
        Ok(is_written.then_some(failed))
    }

    /// The request of a task that may be run once more, as a message.
    pub async fn call(&self, id: &str) -> Result<Option<Bytes>, StoreError> {
        let blob = self.store.get(&call(id)).await?;
        Ok(blob.map(|blob| blob.bytes))
    }

    /// Ends an owner's task as cancelled. Returns its record, and whether it had ended before.
    pub async fn cancel(
        &self,
        id: &str,
        owner: &TaskOwner,
        revision: Revision,
    ) -> Result<Option<(TaskRecord, bool)>, StoreError> {
        while let Some((record, version)) = self.read(id, owner, revision).await? {
            if record.has_ended {
                return Ok(Some((record, true)));
            }
            let cancelled = record.cancelled();
            if self.replace(&cancelled, version).await? {
                // The process that runs it also notices when it writes to the record.
                let _ = self.ask(id, &Asked::Cancel).await;
                return Ok(Some((cancelled, false)));
            }
        }
        Ok(None)
    }

    /// Ends the tasks of a session that nobody has verified, wherever they run, as cancelled.
    pub async fn end_session(self: Arc<Self>, session: Box<str>, revision: Revision) {
        let (owner, mut after) = (TaskOwner::Session(session), Some(0));
        while let Some(entry) = after {
            let page = self.store.read(&index(&owner), Some(entry), PAGE).await;
            // What is not ended here ends when its time is over.
            let Ok(page) = page else { return };
            for entry in &page.entries {
                let id = std::str::from_utf8(&entry.bytes).unwrap_or_default();
                let _ = self.cancel(id, &owner, revision).await;
            }
            let last = page.entries.last().map(|entry| entry.id);
            after = last.filter(|last| *last < page.last);
        }
    }

    /// Writes the end of a task unless its record has changed, and tells of it. Returns whether it was written.
    async fn replace(&self, record: &TaskRecord, seen: BlobVersion) -> Result<bool, StoreError> {
        let (name, bytes) = (name(&record.id), record.to_bytes());
        let put = self.store.put(&name, &bytes, record.left(), When::Is(seen));
        let is_written = put.await?.is_some();
        if is_written {
            if record.origin.is_idempotent {
                let _ = self.store.remove(&call(&record.id), When::Always).await;
            }
            let _ = self.tell(record).await;
        }
        Ok(is_written)
    }

    /// Tells whoever waits for changes of a task that there was one.
    pub(super) async fn tell(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let told = told(record);
        if record.origin.session.is_none() {
            return self.store.publish(&told).await;
        }
        let entry = record.detail.as_bytes();
        self.store.append(&told, entry, TOLD, 0).await?;
        Ok(())
    }

    /// Is woken by changes of a task.
    pub async fn changes(&self, record: &TaskRecord) -> Result<Subscription, StoreError> {
        self.store.subscribe(&told(record)).await
    }

    /// Is woken by changes of a session's tasks.
    pub async fn changes_in(&self, session: &str) -> Result<Subscription, StoreError> {
        self.store.subscribe(&told_in(session)).await
    }

    /// The changes of a session's tasks behind an entry, each as the members of the state; without an entry, where they end now.
    pub async fn told_in(&self, session: &str, after: Option<u64>) -> Result<LogPage, StoreError> {
        let most = if after.is_some() { PAGE } else { 0 };
        self.store.read(&told_in(session), after, most).await
    }

    /// An owner's tasks in the order of their beginning, `most` at most, behind the place where the page before has ended.
    /// `is_here`: whether this process runs a task.
    pub async fn list(
        &self,
        (owner, revision): (&TaskOwner, Revision),
        (after, most): (u64, usize),
        is_here: impl Fn(&str) -> bool,
    ) -> Result<TaskPage, StoreError> {
        let page = self.store.read(&index(owner), Some(after), most).await?;
        let mut tasks = Vec::new();
        for entries in page.entries.chunks(AT_ONCE) {
            let ids = entries
                .iter()
                .map(|entry| std::str::from_utf8(&entry.bytes).unwrap_or_default());
            let found = ids.map(|id| self.find(id, (owner, revision), is_here(id)));
            for found in join_all(found).await {
                match found {
                    // Others have been forgotten.
                    Ok(found) => tasks.extend(found.map(|found| found.record().detail)),
                    // A later version of this program has written it.
                    Err(why) if why.fault() == StoreFault::Unreadable => {}
                    Err(why) => return Err(why),
                }
            }
        }
        let last = page.entries.last().map(|entry| entry.id);
        Ok(TaskPage {
            tasks,
            next: last.filter(|last| *last < page.last),
        })
    }

    /// Asks the process that runs a task.
    pub async fn ask(&self, id: &str, what: &Asked) -> Result<(), StoreError> {
        // Cannot fail: it is a text.
        let entry = serde_json::to_vec(what).unwrap_or_default();
        self.store.append(&asked(id), &entry, ASKED, 0).await?;
        Ok(())
    }
}
