//! The record of a task at the process that runs it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::record::{MAX_RECORD_BYTES, TOO_LONG, TaskOrigin, TaskOwner, TaskRecord, keep};
use super::shared::{Asked, LEASE, PAGE, SharedTasks, asked, call, name};
use super::task::Task;
use crate::connection::{Handle, Sleep};
use crate::mcp::TaskForm;
use crate::message::Message;
use crate::server::registry::Registry;
use crate::store::{
    BlobVersion, Leased, MAX_VALUE_BYTES, StoreError, StoreFault, Subscription, When,
};

/// How often a process renews the leases of its tasks, and repeats what the store did not take.
pub const RENEWAL: Duration = Duration::from_secs(2);

impl SharedTasks {
    /// Keeps the record of a task that this process runs, until it has ended. `announce` tells the client of the task once
    /// other processes know it, or the store is away: then this process alone knows it.
    pub async fn keep(
        self: Arc<Self>,
        registry: Arc<Registry>,
        (task, owner, again): (Arc<Task>, TaskOwner, Option<Message>),
        timers: Handle,
        announce: impl FnOnce() + Send,
    ) {
        let longest = registry.tasks().limits().ttl;
        let begun = self.begin(&task, owner, again, longest).await;
        task.set_shared(begun.is_ok());
        announce();
        match begun {
            Ok(kept) => self.keep_on(registry, task, kept, timers).await,
            Err(why) => {
                #[cfg(feature = "tracing")]
                tracing::warn!(%why, "a task begins that other processes do not know");
                #[cfg(not(feature = "tracing"))]
                let _ = why;
            }
        }
    }

    /// Takes a task over that nobody runs any more; `None` if another process has, or its record has changed otherwise.
    pub async fn take_over(
        &self,
        task: &Task,
        record: TaskRecord,
        seen: BlobVersion,
    ) -> Result<Option<Kept>, StoreError> {
        let name = name(&record.id);
        self.store.release(&name, self.asker).await?;
        let lease = self.store.lease(&name, self.runner, b"", LEASE);
        if let Leased::Busy { .. } = lease.await? {
            return Ok(None);
        }
        // What was asked of earlier runs answers none of this one's questions.
        let hints = self.store.subscribe(&asked(&record.id)).await?;
        let (again, changes) = (record.again(), task.changes());
        let bytes = again.to_bytes();
        let put = self.store.put(&name, &bytes, again.left(), When::Is(seen));
        let Some(version) = put.await? else {
            // The lease may be that of another request at this process.
            return Ok(None);
        };
        let _ = self.tell(&again).await;
        Ok(Some(Kept::new(again.origin, hints, Some(version), changes)))
    }

    /// Keeps a record that this process has begun, or taken over.
    pub async fn keep_on(
        self: Arc<Self>,
        registry: Arc<Registry>,
        task: Arc<Task>,
        mut kept: Kept,
        timers: Handle,
    ) {
        kept.follow(&self, &registry, &task, &timers).await;
        if kept.is_lost {
            registry.tasks().forget(&task);
            if !kept.is_over {
                return;
            }
        }
        if task.ends <= Instant::now() {
            task.expire();
        } else if !kept.is_over {
            // It fails or is run at another process.
            task.cancel.cancel(Some("the server has ended"));
        }
        if kept.is_over && kept.origin.is_idempotent {
            let _ = self.store.remove(&call(&task.id), When::Always).await;
        }
        let _ = self.store.release(&name(&task.id), self.runner).await;
    }

    /// Leaves a task that was taken over, but has not begun here, to whoever asks next. This is no run of the task.
    pub async fn let_go(self: Arc<Self>, registry: Arc<Registry>, task: Arc<Task>, kept: Kept) {
        task.cancel.cancel(Some("the call has not begun"));
        registry.tasks().forget(&task);
        let _ = self.take_back(&name(&task.id), kept.version).await;
        let _ = self.store.release(&name(&task.id), self.runner).await;
    }

    /// Counts the last run of a task no more, unless its record has changed since.
    async fn take_back(&self, name: &str, seen: Option<BlobVersion>) -> Result<(), StoreError> {
        let found = self.store.get(name).await?;
        if let Some(found) = found.filter(|found| Some(found.version) == seen) {
            let before = TaskRecord::read(&found.bytes)?.not_run();
            let (bytes, when) = (before.to_bytes(), When::Is(found.version));
            self.store.put(name, &bytes, before.left(), when).await?;
        }
        Ok(())
    }

    async fn begin(
        &self,
        task: &Task,
        owner: TaskOwner,
        again: Option<Message>,
        longest: Duration,
    ) -> Result<Kept, StoreError> {
        let name = name(&task.id);
        self.store.lease(&name, self.runner, b"", LEASE).await?;
        let hints = self.store.subscribe(&asked(&task.id)).await?;
        if task.form() == TaskForm::Core {
            // R-TSK-20
            self.enlist(&task.id, &owner, longest).await?;
        }
        let again = again.as_ref().map(|request| request.as_ref().bytes());
        let again = again.filter(|request| request.len() <= MAX_VALUE_BYTES);
        if let Some(request) = again {
            let call = call(&task.id);
            let put = self.store.put(&call, request, keep(task.ttl), When::Always);
            put.await?;
        }
        let session = task.connection.as_ref();
        let session = session.and_then(|connection| connection.shared_session());
        let origin = TaskOrigin {
            owner,
            session: session.map(Into::into),
            run: 1,
            is_idempotent: again.is_some(),
        };
        let seen = task.changes();
        let (record, bytes, is_too_long) = record(task, &origin);
        let put = self.store.put(&name, &bytes, record.left(), When::Absent);
        let version = match put.await {
            Ok(None) => {
                let why = "another task has the same name";
                return Err(StoreError::new(StoreFault::Unreadable, why));
            }
            // Other processes may know it: it is written once more.
            Err(why) if why.may_have_happened() => None,
            written => written?,
        };
        if seen > 0 {
            let _ = self.tell(&record).await;
        }
        let mut kept = Kept::new(origin, hints, version, seen);
        kept.is_over = version.is_some() && record.has_ended;
        kept.is_lost = kept.is_over && is_too_long;
        Ok(kept)
    }
}

/// The record of a task, its bytes, and whether the task has failed in it because they would be too many.
fn record(task: &Task, origin: &TaskOrigin) -> (TaskRecord, Vec<u8>, bool) {
    let record = TaskRecord::of(task, origin);
    let bytes = record.to_bytes();
    if bytes.len() <= MAX_RECORD_BYTES {
        return (record, bytes, false);
    }
    let failed = record.failed(task.revision, TOO_LONG);
    let bytes = failed.to_bytes();
    (failed, bytes, true)
}

/// The record of a task that this process runs.
pub struct Kept {
    origin: TaskOrigin,
    hints: Subscription,
    /// `None` if the answer of the store was lost.
    version: Option<BlobVersion>,
    /// The number of the change that was written last.
    written: Option<u64>,
    /// The last entry of the log that was read.
    after: Option<u64>,
    /// There may be further ones.
    is_asked: bool,
    /// The task has ended on the store.
    is_over: bool,
    /// The task is another one there: another process has ended it or runs it, or its result is too long for the store.
    is_lost: bool,
}

impl Kept {
    /// `written`: the number of the change that the record has.
    pub fn new(
        origin: TaskOrigin,
        hints: Subscription,
        version: Option<BlobVersion>,
        written: u64,
    ) -> Self {
        Self {
            origin,
            hints,
            version,
            written: version.map(|_| written),
            after: None,
            is_asked: false,
            is_over: false,
            is_lost: false,
        }
    }

    async fn follow(
        &mut self,
        shared: &SharedTasks,
        registry: &Arc<Registry>,
        task: &Arc<Task>,
        timers: &Handle,
    ) {
        let (mut has_failed, mut renewed) = (false, Instant::now());
        while !self.is_over && !self.is_lost && !timers.is_closed() && task.ends > Instant::now() {
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
            let written = match Some(task.changes()) == self.written {
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

    /// Writes the state of the task, unless it has ended on the store, or another process runs it: then it ends here, too.
    async fn write(&mut self, shared: &SharedTasks, task: &Task) -> Result<(), StoreError> {
        let (name, seen) = (name(&task.id), task.changes());
        let (record, bytes, is_too_long) = record(task, &self.origin);
        let keep = record.left();
        let mut version = match self.version {
            Some(last) => {
                let put = shared.store.put(&name, &bytes, keep, When::Is(last));
                put.await?
            }
            None => None,
        };
        if version.is_none() {
            let found = shared.store.get(&name).await?;
            let when = match &found {
                // It has an earlier state, or another end.
                Some(found) => When::Is(found.version),
                // The store has lost it.
                None => When::Absent,
            };
            // It was written, but the answer of the store was lost.
            let written = found.as_ref().filter(|found| *found.bytes == *bytes);
            let written = written.map(|found| found.version);
            if let Some(found) = found.as_ref().filter(|_| written.is_none()) {
                let found = TaskRecord::read(&found.bytes)?;
                if found.has_ended || found.origin.run != self.origin.run {
                    self.is_lost = true;
                    task.cancel.cancel(Some("the task has ended elsewhere"));
                    return Ok(());
                }
            }
            version = match written {
                None => shared.store.put(&name, &bytes, keep, when).await?,
                written => written,
            };
        }
        if let Some(version) = version {
            self.version = Some(version);
            self.written = Some(seen);
            self.is_over = record.has_ended;
            if is_too_long {
                // The task here has not failed.
                self.is_lost = true;
                task.cancel.cancel(Some(TOO_LONG));
            }
            // What is not told is found by those who look.
            let _ = shared.tell(&record).await;
        }
        Ok(())
    }
}
