//! Calls that go on after they were answered, in both forms that the protocol has for them.
//!
//! A tool opts in ([`Tool::task_support`](super::Tool::task_support)). In 2025-11-25 the client asks
//! for a task and gets one at once; from 2026-07-28 on the handler makes its call a task where it
//! sees fit ([`Context::begin_task`](super::Context::begin_task)). The tasks of a server are kept here, ended
//! or not, bounded by their number, their bytes and their age.

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
pub(super) use self::requests::{RESULT, Rule, declares, missing_extension};
pub(super) use self::task::Task;
use self::task::{Outcome, State};
use crate::connection::Handle;
use crate::correlate::CancelToken;
use crate::limits::{MAX_TASK_BYTES, MAX_TASK_TTL, MAX_TASKS, TASK_POLL_INTERVAL};
use crate::mcp::{ErrorKind, Revision, TaskForm};
use crate::unguessable;

/// The tasks of one server.
#[derive(Debug)]
pub(super) struct Tasks {
    kept: Mutex<Kept>,
    limits: TaskLimits,
}

/// How much of its tasks a server keeps.
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
    /// Most tasks, the ended ones included; further calls are refused, or run without one.
    pub tasks: usize,
    /// Most bytes of all results; what would exceed it becomes an error.
    pub bytes: usize,
    /// How long a task is kept from its creation, at most.
    pub ttl: Duration,
    /// How often clients are told to ask how far a task is.
    pub poll_interval: Duration,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            tasks: MAX_TASKS,
            bytes: MAX_TASK_BYTES,
            ttl: MAX_TASK_TTL,
            poll_interval: TASK_POLL_INTERVAL,
        }
    }
}

/// By the order of their creation.
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

    /// A new task, to be found from now on (R-TSX-07); `None` when there is no room.
    pub fn begin(
        &self,
        revision: Revision,
        owner: &Handle,
        asked: Option<Duration>,
        cancel: CancelToken,
    ) -> Option<Arc<Task>> {
        // R-TSK-07, R-TSX-18
        let name = unguessable::name()?;
        let (now, clock) = (Instant::now(), SystemTime::now());
        let mut kept = self.kept();
        kept.tasks.retain(|_, task| keeps(task, now));
        if kept.tasks.len() >= self.limits.tasks {
            return None;
        }
        kept.last += 1;
        let number = kept.last;
        let is_core = revision.rules().tasks == Some(TaskForm::Core);
        let ttl = asked.map_or(self.limits.ttl, |asked| asked.min(self.limits.ttl));
        let task = Arc::new(Task {
            id: format!("{number}-{name}").into(),
            revision,
            owner: is_core.then(|| owner.clone()),
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

    /// Whether there is a task of that id which belongs to no connection.
    pub fn has(&self, id: &str) -> bool {
        let number = id
            .split_once('-')
            .and_then(|(number, _)| number.parse().ok());
        let kept = self.kept();
        let task = number.and_then(|number: u64| kept.tasks.get(&number));
        task.is_some_and(|task| *task.id == *id && task.owner.is_none())
    }

    /// The task of that id, for who asks on that connection in that revision (R-TSK-17, R-TSX-23).
    fn find(&self, id: &str, asks: &Handle, revision: Revision) -> Option<Arc<Task>> {
        let number = id.split_once('-')?.0.parse().ok()?;
        let task = self.kept().tasks.get(&number).cloned()?;
        let is_own = *task.id == *id && belongs(&task, asks, revision);
        (is_own && keeps(&task, Instant::now())).then_some(task)
    }

    /// Ends a task, within the bounds. Whether it had not ended.
    fn end(&self, task: &Task, outcome: Option<Outcome>, is_error: bool) -> bool {
        let held: usize = self.kept().tasks.values().map(|task| task.size()).sum();
        let too_much = |outcome: &Outcome| matches!(outcome, Outcome::Result(json) if held + json.len() > self.limits.bytes);
        let outcome = outcome.map(|outcome| match too_much(&outcome) {
            true => Outcome::Error(
                ErrorKind::Overloaded,
                "there is no room for the result".into(),
            ),
            false => outcome,
        });
        task.end(outcome, is_error)
    }

    /// A connection has ended, and so have its tasks: nobody can ask for them any more.
    pub fn leave(&self, gone: &Handle) {
        let is_theirs = |task: &Arc<Task>| task.owner.as_ref().is_some_and(|own| own.is_same(gone));
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

fn belongs(task: &Task, asks: &Handle, revision: Revision) -> bool {
    let owner = task.owner.as_ref();
    task.revision == revision && owner.is_none_or(|owner| owner.is_same(asks))
}

/// Whether its time is not up; if it is, nobody waits for it any more.
fn keeps(task: &Task, now: Instant) -> bool {
    let keeps = task.ends > now;
    if !keeps && !task.is_terminal() {
        task.cancel.cancel(Some("the task's time is up"));
    }
    keeps
}
