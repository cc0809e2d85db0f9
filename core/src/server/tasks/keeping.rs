//! The record of a task at the process that runs it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::record::{TaskOwner, TaskRecord};
use super::shared::{Asked, LEASE, SharedTasks, asked, name};
use super::task::Task;
use crate::connection::{Handle, Sleep};
use crate::mcp::TaskForm;
use crate::server::registry::Registry;
use crate::store::{BlobVersion, StoreError, StoreFault, Subscription, When};

/// How often a process renews the leases of its tasks, and repeats what the store did not take.
pub const RENEWAL: Duration = Duration::from_secs(2);
const PAGE: usize = 64;

impl SharedTasks {
    /// Keeps the record of a task that this process runs, until it has ended. `announce` tells the client of the task once
    /// other processes know it, or the store is away: then this process alone knows it.
    pub async fn keep(
        self: Arc<Self>,
        registry: Arc<Registry>,
        (task, owner): (Arc<Task>, TaskOwner),
        timers: Handle,
        announce: impl FnOnce() + Send,
    ) {
        let longest = registry.tasks().limits().ttl;
        let begun = self.begin(&task, &owner, longest).await;
        task.set_shared(begun.is_ok());
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

    async fn begin(
        &self,
        task: &Task,
        owner: &TaskOwner,
        longest: Duration,
    ) -> Result<Kept, StoreError> {
        let name = name(&task.id);
        self.store.lease(&name, self.runner, b"", LEASE).await?;
        let hints = self.store.subscribe(&asked(&task.id)).await?;
        if task.form() == TaskForm::Core {
            // R-TSK-20
            self.enlist(&task.id, owner, longest).await?;
        }
        let seen = task.changes();
        let record = TaskRecord::of(task, owner);
        let bytes = record.to_bytes();
        let put = self.store.put(&name, &bytes, record.left(), When::Absent);
        let version = put.await?.ok_or_else(|| {
            StoreError::new(StoreFault::Unreadable, "another task has the same name")
        })?;
        Ok(Kept {
            owner: owner.clone(),
            hints,
            version,
            written: seen,
            after: None,
            is_asked: false,
            is_over: record.has_ended,
        })
    }
}

/// The record of a task that this process runs.
struct Kept {
    owner: TaskOwner,
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
            let log = asked(&task.id);
            let page = shared.store.read(&log, self.after, PAGE).await?;
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
        let record = TaskRecord::of(task, &self.owner);
        let (bytes, keep) = (record.to_bytes(), record.left());
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
            // What is not told is found by those who look.
            let _ = shared.tell(&record).await;
        }
        Ok(())
    }
}
