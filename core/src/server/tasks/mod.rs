//! Tasks: calls that continue after they were answered, in both forms that the protocol defines.
//!
//! A tool opts in ([`Tool::task_support`](super::Tool::task_support)). In 2025-11-25 the client
//! asks for a task and gets it at once; from 2026-07-28 on the handler decides to make its call a
//! task ([`Context::begin_task`](super::Context::begin_task)). The server stores running and ended
//! tasks here, within limits on their number, bytes and age.

mod call;
mod join;
mod json;
mod keeping;
mod raw;
mod record;
mod resuming;
mod shared;
mod task;
mod timestamp;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub(super) use self::call::Ended;
pub use self::call::TaskCall;
pub(super) use self::keeping::{Kept, RENEWAL};
use self::record::{TOO_LONG, has_room};
pub(super) use self::record::{TaskOwner, TaskRecord};
pub(super) use self::resuming::Resuming;
pub(super) use self::shared::{Asked, Found, LEASE, SharedTasks};
use self::task::State;
pub(super) use self::task::{Asker, Outcome, Task};
use super::store::{Bounds, Keep, MemoryStore, Store};
use crate::connection::{Budget, Handle, Held};
use crate::correlate::CancelToken;
use crate::error::ConnectionError;
use crate::handler::driven::drive;
use crate::limits::{
    MAX_TASK_BYTES, MAX_TASK_TTL, MAX_TASKS, MAX_TASKS_PER_OWNER, TASK_POLL_INTERVAL,
};
use crate::mcp::{ErrorKind, Revision, TaskForm};
use crate::store::SharedStore;
use crate::unguessable;

/// The tasks of one server.
#[derive(Debug)]
pub(super) struct Tasks {
    /// Tasks by id, running and ended.
    kept: Box<dyn Store<Arc<Task>>>,
    /// The number of the last task; held while one is added, so that limits hold.
    last: Mutex<u64>,
    limits: TaskLimits,
    /// Where other processes find them, once that is settled.
    shared: OnceLock<Arc<SharedTasks>>,
    /// The calls of tasks of other processes, on their way to their handlers.
    resuming: Resuming,
}

/// Limits of a server's stored tasks.
///
/// ```
/// use std::time::Duration;
/// use mcpbolt::server::{Server, TaskLimits};
///
/// let limits = TaskLimits { ttl: Duration::from_secs(60), ..TaskLimits::default() };
/// let server = Server::builder("batch", "1.0.0").task_limits(limits).build()?;
/// # Ok::<(), mcpbolt::server::RegistryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// Maximum number of tasks, including ended ones. Beyond it, calls that the client asked to run
    /// as tasks are refused, and others run without one.
    pub tasks: usize,
    /// Maximum number of tasks per owner. An owner is a principal or, without verification, an
    /// address (an IPv6 /64 network); all clients without an address are one owner. The results of
    /// one owner may take the same share of `bytes`: by default a quarter.
    pub per_owner: usize,
    /// Maximum bytes of all results; a result that exceeds it is replaced by an error.
    pub bytes: usize,
    /// Maximum lifetime of a task from its creation.
    pub ttl: Duration,
    /// The polling interval that clients are told.
    pub poll_interval: Duration,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            tasks: MAX_TASKS,
            per_owner: MAX_TASKS_PER_OWNER,
            bytes: MAX_TASK_BYTES,
            ttl: MAX_TASK_TTL,
            poll_interval: TASK_POLL_INTERVAL,
        }
    }
}

impl TaskLimits {
    /// Maximum bytes of the results of one owner.
    fn bytes_per_owner(&self) -> usize {
        let share = self.bytes as u128 * self.per_owner.min(self.tasks) as u128;
        // At most `bytes`.
        (share / self.tasks.max(1) as u128) as usize
    }
}

/// What a task begins with.
struct Beginning {
    id: Box<str>,
    created: SystemTime,
    ttl: Duration,
    run: u32,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new(TaskLimits::default(), None)
    }
}

impl Tasks {
    pub fn new(limits: TaskLimits, shared: Option<Arc<SharedTasks>>) -> Self {
        let shared = shared.map(OnceLock::from).unwrap_or_default();
        let store = MemoryStore::new(Bounds {
            values: limits.tasks,
            bytes: usize::MAX,
            evicts: false,
        });
        Self {
            kept: Box::new(store),
            last: Mutex::default(),
            limits,
            shared,
            resuming: Resuming::default(),
        }
    }

    pub fn limits(&self) -> TaskLimits {
        self.limits
    }

    /// Where other processes find the tasks.
    pub fn shared(&self) -> Option<&Arc<SharedTasks>> {
        self.shared.get()
    }

    /// Has other processes find the tasks that begin from now on, if they do not yet.
    pub fn share(&self, store: Arc<dyn SharedStore>) {
        if let Some(shared) = SharedTasks::new(store) {
            let _ = self.shared.set(Arc::new(shared));
        }
    }

    /// The calls of tasks of other processes, on their way to their handlers.
    pub fn resuming(&self) -> &Resuming {
        &self.resuming
    }

    /// Calls `see` with each task whose time is not over. Drops the others and cancels their calls.
    fn each(&self, mut see: impl FnMut(&Arc<Task>)) {
        let now = Instant::now();
        self.kept.retain(&mut |_, task| {
            let keeps = task.ends > now;
            match keeps {
                true => see(task),
                false => task.expire(),
            }
            keeps
        });
    }

    /// Creates and stores a task (R-TSX-07); `None` when the limits are reached.
    pub fn begin(
        &self,
        revision: Revision,
        owner: Asker<'_>,
        asked: Option<Duration>,
        cancel: CancelToken,
    ) -> Option<Arc<Task>> {
        // R-TSK-07, R-TSX-18
        let name = unguessable::name()?;
        let ttl = asked.map_or(self.limits.ttl, |asked| asked.min(self.limits.ttl));
        self.add(revision, owner, cancel, |number| Beginning {
            id: format!("{number}-{name}").into(),
            created: SystemTime::now(),
            ttl,
            run: 1,
        })
    }

    /// Stores a task that another process has begun, to be run once more here; `None` when the limits are reached.
    pub fn take_over(
        &self,
        record: &TaskRecord,
        revision: Revision,
        owner: Asker<'_>,
    ) -> Option<Arc<Task>> {
        let (created, ttl) = record.times();
        self.add(revision, owner, CancelToken::new(), |_| Beginning {
            id: record.id.clone(),
            created,
            ttl,
            run: record.origin.run + 1,
        })
    }

    fn add(
        &self,
        revision: Revision,
        owner: Asker<'_>,
        cancel: CancelToken,
        begin: impl FnOnce(u64) -> Beginning,
    ) -> Option<Arc<Task>> {
        let source = owner.source();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = 0;
        self.each(|task| own += usize::from(task.source == source));
        if own >= self.limits.per_owner {
            return None;
        }
        let number = *last + 1;
        let Beginning {
            id,
            created,
            ttl,
            run,
        } = begin(number);
        let age = created.elapsed().unwrap_or_default();
        let is_core = revision.rules().tasks == Some(TaskForm::Core);
        let task = Arc::new(Task {
            id,
            number,
            revision,
            connection: is_core.then(|| owner.handle.clone()),
            principal: owner.principal.map(Into::into),
            source,
            is_shared: AtomicBool::new(false),
            cancel,
            ends: crate::limits::later(Instant::now(), ttl.saturating_sub(age)),
            ttl,
            poll_interval: self.limits.poll_interval,
            created,
            state: Mutex::new(State::new(created, run)),
        });
        let keep = Keep {
            until: task.ends,
            bytes: 0,
            replaces: false,
        };
        let put = self.kept.put(&task.id, task.clone(), keep);
        put.removed.iter().for_each(|expired| expired.expire());
        put.stored.then(|| {
            *last = number;
            task
        })
    }

    /// Drops a task that other processes know, since they know better.
    pub fn forget(&self, task: &Task) {
        let ours = self.kept.get(&task.id);
        if ours.is_some_and(|ours| std::ptr::eq(&*ours, task)) {
            self.kept.remove(&task.id);
        }
    }

    /// Whether a task runs here whose changes are told on this connection.
    pub fn tells(&self, id: &str, handle: &Handle) -> bool {
        let task = self.kept.get(id);
        let connection = task.as_ref().and_then(|task| task.connection.as_ref());
        connection.is_some_and(|own| own.is_same(handle))
    }

    /// Returns whether this principal has a task with this id that belongs to no connection.
    pub fn has(&self, id: &str, principal: Option<&str>) -> bool {
        self.kept
            .get(id)
            .is_some_and(|task| task.connection.is_none() && task.principal.as_deref() == principal)
    }

    /// Whether this process runs a task that others know.
    pub fn runs_shared(&self, id: &str) -> bool {
        self.kept.get(id).is_some_and(|task| task.is_shared())
    }

    /// Returns the task with this id, if it belongs to the asker and the revision (R-TSK-17,
    /// R-TSX-23).
    pub fn find(&self, id: &str, asks: Asker<'_>, revision: Revision) -> Option<Arc<Task>> {
        let Some(task) = self.kept.get(id) else {
            // The call of a task whose time is over ends when somebody asks for it.
            self.each(|_| {});
            return None;
        };
        task.belongs_to(asks, revision).then_some(task)
    }

    /// Returns the tasks of the asker with a number above `after`, in order of creation.
    pub fn list(&self, asks: Asker<'_>, revision: Revision, after: u64) -> Vec<Arc<Task>> {
        let mut own = Vec::new();
        self.each(|task| {
            if task.number > after && task.belongs_to(asks, revision) {
                own.push(task.clone());
            }
        });
        own.sort_by_key(|task| task.number);
        own
    }

    /// Ends a task; a result beyond the limits becomes an error. Returns `false` if it had already
    /// ended.
    pub fn end(
        &self,
        task: &Task,
        outcome: Option<Outcome>,
        is_error: bool,
        budget: &Arc<Budget>,
    ) -> bool {
        let (mut held, mut own) = (0, 0);
        self.each(|other| {
            let size = other.size();
            held += size;
            own += size * usize::from(other.source == task.source);
        });
        let (most, most_own) = (self.limits.bytes, self.limits.bytes_per_owner());
        let mut account = Held::of(budget);
        let mut too_much = |outcome: &Outcome| {
            let size = outcome.size();
            held + size > most || own + size > most_own || !account.try_keep(size)
        };
        let fail = |kind, why: &str| Outcome::Error(kind, why.into(), None);
        let outcome = outcome.map(|outcome| match &outcome {
            Outcome::Result(result) if task.is_shared() && !has_room(result) => {
                fail(ErrorKind::Internal, TOO_LONG)
            }
            _ if too_much(&outcome) => {
                fail(ErrorKind::Overloaded, "there is no room for the result")
            }
            _ => outcome,
        });
        let ended = task.end(outcome, is_error);
        if ended {
            task.count(account);
        }
        ended
    }

    /// Ends and drops the tasks of a closed connection: nobody can ask for them any more. If other processes know them, they
    /// go on, unless the client has ended the session that they belong to.
    pub fn leave(&self, gone: &Handle, reason: &ConnectionError) {
        let has_ended = *reason == ConnectionError::ClosedByPeer;
        let session = gone.shared_session();
        if has_ended
            && gone.principal().is_none()
            && let Some((shared, session)) = self.shared().zip(session)
            && let Some(revision) = gone.revision()
        {
            let end = shared.clone().end_session(session.into(), revision);
            drive(Box::pin(end));
        }
        let is_own = |own: &Handle| {
            own.is_same(gone) || session.is_some() && own.shared_session() == session
        };
        let mut left = Vec::new();
        self.kept.retain(&mut |_, task| {
            let own = task.connection.as_ref();
            let goes_on = task.is_shared() && (task.principal.is_some() || !has_ended);
            let stays = goes_on || !own.is_some_and(is_own);
            if !stays {
                left.push(task.clone());
            }
            stays
        });
        for task in left {
            task.cancel.cancel(Some("the connection has ended"));
            if task.end(None, false) {
                task.changed();
            }
        }
    }
}
