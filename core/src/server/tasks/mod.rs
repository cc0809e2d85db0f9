//! Tasks: calls that continue after they were answered, in both forms that the protocol defines.
//!
//! A tool opts in ([`Tool::task_support`](super::Tool::task_support)). In 2025-11-25 the client
//! asks for a task and gets it at once; from 2026-07-28 on the handler decides to make its call a
//! task ([`Context::begin_task`](super::Context::begin_task)). The server stores running and ended
//! tasks here, within limits on their number, bytes and age.

mod call;
mod requests;
mod shape;
mod task;
mod time;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub(super) use self::call::Ended;
pub use self::call::TaskCall;
pub(super) use self::requests::{Rule, declares, missing_extension};
pub(super) use self::task::Task;
use self::task::{Outcome, State};
use crate::connection::{Budget, Handle, Held, RequestSource};
use crate::correlate::CancelToken;
use crate::limits::{
    MAX_TASK_BYTES, MAX_TASK_TTL, MAX_TASKS, MAX_TASKS_PER_OWNER, TASK_POLL_INTERVAL,
};
use crate::mcp::{ErrorKind, Revision, TaskForm};
use crate::unguessable;

/// The tasks of one server.
#[derive(Debug)]
pub(super) struct Tasks {
    kept: Mutex<Kept>,
    limits: TaskLimits,
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

/// The client that asks for a task.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub handle: &'a Handle,
    pub principal: Option<&'a str>,
}

impl Asker<'_> {
    /// The owner whose share of the tasks counts.
    fn source(&self) -> RequestSource {
        match self.principal {
            Some(principal) => RequestSource::Principal(principal.into()),
            None => self.handle.source(),
        }
    }
}

/// Tasks in order of creation.
#[derive(Debug, Default)]
struct Kept {
    tasks: BTreeMap<u64, Arc<Task>>,
    last: u64,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new(TaskLimits::default())
    }
}

impl Tasks {
    pub fn new(limits: TaskLimits) -> Self {
        Self {
            kept: Mutex::default(),
            limits,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (now, clock) = (Instant::now(), SystemTime::now());
        let mut kept = self.kept();
        kept.tasks.retain(|_, task| keeps(task, now));
        let own = kept.tasks.values();
        let source = owner.source();
        let own = own.filter(|task| task.source == source);
        if kept.tasks.len() >= self.limits.tasks || own.count() >= self.limits.per_owner {
            return None;
        }
        kept.last += 1;
        let number = kept.last;
        let is_core = revision.rules().tasks == Some(TaskForm::Core);
        let ttl = asked.map_or(self.limits.ttl, |asked| asked.min(self.limits.ttl));
        let task = Arc::new(Task {
            id: format!("{number}-{name}").into(),
            revision,
            connection: is_core.then(|| owner.handle.clone()),
            principal: owner.principal.map(Into::into),
            source,
            cancel,
            ends: crate::limits::later(now, ttl),
            ttl,
            poll_interval: self.limits.poll_interval,
            created: clock,
            state: Mutex::new(State::new(clock)),
        });
        kept.tasks.insert(number, task.clone());
        Some(task)
    }

    /// Returns whether this principal has a task with this id that belongs to no connection.
    pub fn has(&self, id: &str, principal: Option<&str>) -> bool {
        let number = id
            .split_once('-')
            .and_then(|(number, _)| number.parse().ok());
        let kept = self.kept();
        let task = number.and_then(|number: u64| kept.tasks.get(&number));
        task.is_some_and(|task| {
            let is_own = task.principal.as_deref() == principal;
            *task.id == *id && task.connection.is_none() && is_own
        })
    }

    /// Returns the task with this id, if it belongs to the asker and the revision (R-TSK-17,
    /// R-TSX-23).
    fn find(&self, id: &str, asks: Asker<'_>, revision: Revision) -> Option<Arc<Task>> {
        let number = id.split_once('-')?.0.parse().ok()?;
        let task = self.kept().tasks.get(&number).cloned()?;
        let is_own = *task.id == *id && belongs(&task, asks, revision);
        (is_own && keeps(&task, Instant::now())).then_some(task)
    }

    /// Ends a task; a result beyond the limits becomes an error. Returns `false` if it had already
    /// ended.
    fn end(
        &self,
        task: &Task,
        outcome: Option<Outcome>,
        is_error: bool,
        budget: &Arc<Budget>,
    ) -> bool {
        let (mut held, mut own) = (0, 0);
        for other in self.kept().tasks.values() {
            let size = other.size();
            held += size;
            own += size * usize::from(other.source == task.source);
        }
        let (most, most_own) = (self.limits.bytes, self.limits.bytes_per_owner());
        let mut account = Held::of(budget);
        let mut too_much = |outcome: &Outcome| {
            let size = outcome.size();
            held + size > most || own + size > most_own || !account.try_keep(size)
        };
        let outcome = outcome.map(|outcome| match too_much(&outcome) {
            true => Outcome::Error(
                ErrorKind::Overloaded,
                "there is no room for the result".into(),
                None,
            ),
            false => outcome,
        });
        let ended = task.end(outcome, is_error);
        if ended {
            task.count(account);
        }
        ended
    }

    /// Ends and drops the tasks of a closed connection: nobody can ask for them any more.
    pub fn leave(&self, gone: &Handle) {
        let is_theirs = |task: &Arc<Task>| {
            let own = task.connection.as_ref();
            own.is_some_and(|own| own.is_same(gone))
        };
        let mut kept = self.kept();
        let numbers: Vec<_> = kept
            .tasks
            .iter()
            .filter(|(_, t)| is_theirs(t))
            .map(|(n, _)| *n)
            .collect();
        let left: Vec<_> = numbers
            .iter()
            .filter_map(|number| kept.tasks.remove(number))
            .collect();
        drop(kept);
        for task in left {
            task.cancel.cancel(Some("the connection has ended"));
            task.end(None, false);
        }
    }
}

fn belongs(task: &Task, asks: Asker<'_>, revision: Revision) -> bool {
    let connection = task.connection.as_ref();
    task.revision == revision
        && task.principal.as_deref() == asks.principal
        && connection.is_none_or(|own| own.is_same(asks.handle))
}

/// Returns whether the task has not expired. Cancels the call of an expired task.
fn keeps(task: &Task, now: Instant) -> bool {
    let keeps = task.ends > now;
    if !keeps && !task.is_terminal() {
        task.cancel.cancel(Some("the task's time is up"));
    }
    keeps
}
