//! Tasks that every process of a server knows, on a store (2026-07-28).
//!
//! ```text
//!   runs the task:   state ─▶ record, unless it has ended there      asked ◀─ log
//!   any other:       tasks/get ◀─ record         tasks/cancel, tasks/update ─▶ log
//!                    lease over ─▶ record: failed
//! ```
//!
//! The process that runs a task holds its lease, and writes its state with the version that it has written before. So whoever
//! ends a record ends the task: there is one terminal state.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::task::Task;
use crate::connection::{Handle, Sleep};
use crate::mcp::{ErrorKind, Revision, TaskStatus};
use crate::server::registry::Registry;
use crate::store::{
    BlobVersion, HolderId, Leased, LogBounds, SharedStore, StoreError, StoreFault, Subscription,
    When,
};

/// How long a process that runs tasks may be silent.
const LEASE: Duration = Duration::from_secs(6);
/// How often it renews its leases, and repeats what the store did not take.
const RENEWAL: Duration = Duration::from_secs(2);
/// How long who finds a lease free keeps it.
const TRIAL: Duration = Duration::from_secs(1);
/// What the log of a task keeps of what clients ask.
const BOUNDS: LogBounds = LogBounds {
    entries: 1_000,
    bytes: 16 << 20,
    keep: Duration::from_secs(3600),
};
const PAGE: usize = 64;

/// Why a task fails whose process has ended.
const DEAD: &str = "the process that ran the task has ended";

/// The tasks of all processes.
#[derive(Debug)]
pub struct SharedTasks {
    store: Arc<dyn SharedStore>,
    runner: HolderId,
    /// Finds out whether a lease is free; not the holder of any.
    asker: HolderId,
}

/// The state of a task, as all processes read it.
#[derive(Serialize, Deserialize)]
pub struct TaskRecord {
    principal: Option<Box<str>>,
    revision: Box<str>,
    has_ended: bool,
    /// The members of the answer to `tasks/get`.
    pub detail: String,
}

/// What clients ask at other processes.
#[derive(Serialize, Deserialize)]
pub enum Asked {
    Cancel,
    /// Answers to questions, raw JSON.
    Answers(String),
}

impl TaskRecord {
    fn of(task: &Task) -> Self {
        let status = task.state().status;
        Self {
            principal: task.principal.clone(),
            revision: task.revision.name().into(),
            has_ended: status.is_terminal(),
            detail: task.detail(),
        }
    }

    fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes).map_err(|_| {
            let why = "the record of a task is not one that this version knows";
            StoreError::new(StoreFault::Unreadable, why)
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        // Cannot fail: its members are texts.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether it belongs to the asker and the revision.
    pub fn belongs_to(&self, principal: Option<&str>, revision: Revision) -> bool {
        self.principal.as_deref() == principal && *self.revision == *revision.name()
    }

    /// The same of a task that nobody runs any more.
    fn failed(mut self, revision: Revision) -> Self {
        let members = serde_json::from_str::<Map<String, Value>>(&format!("{{{}}}", self.detail));
        let mut members = members.unwrap_or_default();
        members.remove("inputRequests");
        members.insert("status".into(), TaskStatus::Failed.name().into());
        members.insert("statusMessage".into(), DEAD.into());
        let error = json!({"code": ErrorKind::Internal.code(revision), "message": DEAD});
        members.insert("error".into(), error);
        let members = Value::Object(members).to_string();
        self.detail = members[1..members.len() - 1].to_owned();
        self.has_ended = true;
        self
    }
}

fn name(id: &str) -> String {
    format!("task {id}")
}

fn log(id: &str) -> String {
    format!("task {id} asked")
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

    /// Keeps the record of a task that this process runs, until it has ended. `announce` tells the client of the task once
    /// other processes know it, or the store is away: then this process alone knows it.
    pub async fn keep(
        self: Arc<Self>,
        registry: Arc<Registry>,
        task: Arc<Task>,
        timers: Handle,
        announce: impl FnOnce() + Send,
    ) {
        let begun = self.begin(&task).await;
        announce();
        match begun {
            Ok(mut kept) => {
                kept.follow(&self, &registry, &task, &timers).await;
                let _ = self.store.release(&name(&task.id), self.runner).await;
            }
            Err(why) => {
                #[cfg(feature = "tracing")]
                tracing::warn!(%why, "other processes do not know a task that begins while the store is away");
                #[cfg(not(feature = "tracing"))]
                let _ = why;
            }
        }
    }

    async fn begin(&self, task: &Task) -> Result<Kept, StoreError> {
        let name = name(&task.id);
        self.store.lease(&name, self.runner, b"", LEASE).await?;
        let hints = self.store.subscribe(&log(&task.id)).await?;
        let seen = task.changes();
        let record = TaskRecord::of(task);
        let bytes = record.to_bytes();
        let put = self.store.put(&name, &bytes, left(task), When::Absent);
        let version = put.await?.ok_or_else(|| {
            StoreError::new(StoreFault::Unreadable, "another task has the same name")
        })?;
        Ok(Kept {
            hints,
            version,
            written: seen,
            after: None,
            is_asked: false,
            is_over: record.has_ended,
        })
    }

    /// The record of a task, which has ended if nobody runs it any more.
    pub async fn find(
        &self,
        id: &str,
        revision: Revision,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let name = name(id);
        loop {
            let Some(blob) = self.store.get(&name).await? else {
                return Ok(None);
            };
            let record = TaskRecord::read(&blob.bytes)?;
            if record.has_ended || *record.revision != *revision.name() {
                return Ok(Some(record));
            }
            match self.store.lease(&name, self.asker, b"", TRIAL).await? {
                Leased::Busy { .. } => return Ok(Some(record)),
                Leased::Held { .. } => {
                    let failed = record.failed(revision);
                    let when = When::Is(blob.version);
                    let bytes = failed.to_bytes();
                    let put = self.store.put(&name, &bytes, BOUNDS.keep, when);
                    if put.await?.is_some() {
                        return Ok(Some(failed));
                    }
                }
            }
        }
    }

    /// Asks the process that runs a task.
    pub async fn ask(&self, id: &str, asked: &Asked) -> Result<(), StoreError> {
        // Cannot fail: it is a text.
        let entry = serde_json::to_vec(asked).unwrap_or_default();
        self.store.append(&log(id), &entry, BOUNDS, 0).await?;
        Ok(())
    }
}

/// How long a task is kept from now on.
fn left(task: &Task) -> Duration {
    let left = task.ends.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

/// The record of a task that this process runs.
struct Kept {
    hints: Subscription,
    version: BlobVersion,
    /// The number of the change that was written last.
    written: u64,
    /// The last entry of the log that was read.
    after: Option<u64>,
    /// There may be further ones.
    is_asked: bool,
    /// The task has ended on the store.
    is_over: bool,
}

impl Kept {
    async fn follow(
        &mut self,
        shared: &SharedTasks,
        registry: &Arc<Registry>,
        task: &Arc<Task>,
        timers: &Handle,
    ) {
        let (mut has_failed, mut renewed) = (false, Instant::now());
        while !self.is_over && !timers.is_closed() && task.ends > Instant::now() {
            let renewal = timers.sleep(RENEWAL.saturating_sub(renewed.elapsed()));
            self.wait(task, renewal, has_failed).await;
            if renewed.elapsed() >= RENEWAL {
                renewed = Instant::now();
                let name = name(&task.id);
                let _ = shared.store.lease(&name, shared.runner, b"", LEASE).await;
            }
            let heard = match self.is_asked {
                true => self.hear(shared, registry, task).await,
                false => Ok(()),
            };
            let written = match task.changes() == self.written {
                true => Ok(()),
                false => self.write(shared, task).await,
            };
            has_failed = heard.and(written).is_err();
        }
    }

    /// Waits for a change, a hint or the next renewal. After a failure a change has to wait for the others.
    async fn wait(&mut self, task: &Task, renewal: Sleep, has_failed: bool) {
        let mut renewal = pin!(renewal);
        poll_fn(|cx| {
            let is_due = renewal.as_mut().poll(cx).is_ready();
            let is_hinted = self.hints.poll_hinted(cx).is_ready();
            self.is_asked |= is_hinted;
            let is_changed = task.poll_changed(self.written, cx).is_ready();
            match is_due || is_hinted || is_changed && !has_failed {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Does what clients have asked at other processes.
    async fn hear(
        &mut self,
        shared: &SharedTasks,
        registry: &Arc<Registry>,
        task: &Arc<Task>,
    ) -> Result<(), StoreError> {
        loop {
            let page = shared.store.read(&log(&task.id), self.after, PAGE).await?;
            let Some(last) = page.entries.last() else {
                self.is_asked = false;
                return Ok(());
            };
            self.after = Some(last.id);
            for entry in &page.entries {
                match serde_json::from_slice(&entry.bytes) {
                    Ok(Asked::Cancel) => drop(registry.cancel_task(task)),
                    Ok(Asked::Answers(given)) => registry.answer_task(task, &given),
                    Err(_) => {}
                }
            }
        }
    }

    /// Writes the state of the task, unless it has ended on the store: then it ends here, too.
    async fn write(&mut self, shared: &SharedTasks, task: &Task) -> Result<(), StoreError> {
        let (name, seen) = (name(&task.id), task.changes());
        let record = TaskRecord::of(task);
        let (bytes, keep) = (record.to_bytes(), left(task));
        let put = shared
            .store
            .put(&name, &bytes, keep, When::Is(self.version));
        let mut version = put.await?;
        if version.is_none() {
            let when = match shared.store.get(&name).await? {
                Some(found) if TaskRecord::read(&found.bytes)?.has_ended => {
                    self.is_over = true;
                    task.cancel.cancel(Some("the task has ended elsewhere"));
                    return Ok(());
                }
                // It was written, but the answer of the store was lost.
                Some(found) => When::Is(found.version),
                // The store has lost it.
                None => When::Absent,
            };
            version = shared.store.put(&name, &bytes, keep, when).await?;
        }
        if let Some(version) = version {
            self.version = version;
            self.written = seen;
            self.is_over = record.has_ended;
        }
        Ok(())
    }
}
