//! One task: its status, open questions and outcome.
//!
//! ```text
//!   working ⇄ input_required ─▶ completed | failed | cancelled, for good (R-TSK-08)
//! ```

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime};

use super::record::CANCELLED;
use crate::connection::{Call, Handle, Held, Principal, ReplyTo, RequestSource};
use crate::correlate::CancelToken;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm, TaskStatus};

/// A call that continues after it was answered.
#[derive(Debug)]
pub(in crate::server) struct Task {
    pub id: Box<str>,
    /// Its place in the order of creation.
    pub number: u64,
    pub revision: Revision,
    /// The owning connection, in revisions where tasks belong to connections.
    pub connection: Option<Handle>,
    /// The owning principal, if it was verified.
    pub principal: Option<Box<str>>,
    /// The owner whose share of the tasks counts.
    pub source: RequestSource,
    /// Whether other processes know it.
    pub is_shared: AtomicBool,
    /// The cancellation token of the call.
    pub cancel: CancelToken,
    pub ends: Instant,
    pub ttl: Duration,
    pub poll_interval: Duration,
    pub created: SystemTime,
    pub state: Mutex<State>,
}

/// The client that asks for a task.
#[derive(Clone, Copy)]
pub(in crate::server) struct Asker<'a> {
    pub handle: &'a Handle,
    pub principal: Option<&'a str>,
}

impl<'a> Asker<'a> {
    /// Who sent a request: its verified sender, or else that of the connection.
    pub fn of(handle: &'a Handle, reply: &'a ReplyTo) -> Self {
        let proven = reply.principal().map(Principal::as_str);
        Self {
            handle,
            principal: proven.or_else(|| handle.principal()),
        }
    }

    /// The owner whose share of the tasks counts.
    pub fn source(&self) -> RequestSource {
        match self.principal {
            Some(principal) => RequestSource::Principal(principal.into()),
            None => self.handle.source(),
        }
    }
}

#[derive(Debug)]
pub(in crate::server) struct State {
    pub(super) status: TaskStatus,
    pub(super) message: Option<Box<str>>,
    pub(super) updated: SystemTime,
    pub(super) outcome: Option<Outcome>,
    /// Counts the outcome's bytes in the server's budget.
    account: Option<Held>,
    /// Open questions: key, method, params.
    pub(super) open: Vec<(String, Method, Option<String>)>,
    answers: HashMap<String, Box<str>>,
    /// Number of questions so far, so that no key is used twice (R-TSX-10).
    asked: usize,
    wakers: Vec<Waker>,
    /// Number of changes so far that were told, and who writes them to a store.
    changes: u64,
    writer: Option<Waker>,
    /// `tasks/result` requests that wait for the end.
    waiting: Vec<(Handle, Call)>,
}

/// The outcome of a call.
#[derive(Debug)]
pub(in crate::server) enum Outcome {
    /// A result, as an object.
    Result(Box<str>),
    /// A protocol error, with its `data` as raw JSON.
    Error(ErrorKind, Box<str>, Option<Box<str>>),
}

impl Outcome {
    pub fn size(&self) -> usize {
        match self {
            Self::Result(text) | Self::Error(_, text, None) => text.len(),
            Self::Error(_, text, Some(data)) => text.len() + data.len(),
        }
    }
}

impl State {
    /// `run`: how often the task is run, with this time.
    pub fn new(now: SystemTime, run: u32) -> Self {
        Self {
            status: TaskStatus::Working,
            message: None,
            updated: now,
            outcome: None,
            account: None,
            open: Vec::new(),
            answers: HashMap::new(),
            // No earlier run has asked so many.
            asked: (run as usize - 1) << 16,
            wakers: Vec::new(),
            changes: 0,
            writer: None,
            waiting: Vec::new(),
        }
    }

    /// Changes the status. Returns `false` if the task has ended or already has this status.
    fn set_status(&mut self, status: TaskStatus, message: Option<&str>) -> bool {
        if self.status.is_terminal() || self.status == status {
            return false;
        }
        self.status = status;
        self.message = message.map(Box::from);
        self.updated = SystemTime::now();
        true
    }
}

impl Task {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn form(&self) -> TaskForm {
        self.revision.rules().tasks.unwrap_or(TaskForm::Core)
    }

    /// Size of the stored outcome in bytes.
    pub fn size(&self) -> usize {
        self.state().outcome.as_ref().map_or(0, Outcome::size)
    }

    /// Keeps the account that counts the outcome, as long as the task is stored.
    pub fn count(&self, account: Held) {
        self.state().account = Some(account);
    }

    pub fn set_shared(&self, is_shared: bool) {
        self.is_shared.store(is_shared, Ordering::Release);
    }

    /// Whether other processes know it: what they know is then its state.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Acquire)
    }

    /// Returns whether the task belongs to the asker and the revision.
    pub fn belongs_to(&self, asks: Asker<'_>, revision: Revision) -> bool {
        let connection = self.connection.as_ref();
        self.revision == revision
            && self.principal.as_deref() == asks.principal
            && connection.is_none_or(|own| own.is_same(asks.handle))
    }

    /// Cancels the call of a task whose time is over.
    pub fn expire(&self) {
        if !self.state().status.is_terminal() {
            self.cancel.cancel(Some("the task's time is up"));
        }
    }

    /// Ends the task. Returns `false` if it had already ended.
    pub fn end(&self, outcome: Option<Outcome>, is_error: bool) -> bool {
        let mut state = self.state();
        let (status, message) = match &outcome {
            None => (TaskStatus::Cancelled, None),
            Some(Outcome::Error(_, text, _)) => (TaskStatus::Failed, Some(text.clone())),
            // R-TSK-21, R-TSX-09
            Some(_) if is_error && self.form() == TaskForm::Core => {
                (TaskStatus::Failed, Some("the tool reports an error".into()))
            }
            Some(_) => (TaskStatus::Completed, None),
        };
        if !state.set_status(status, message.as_deref()) {
            return false;
        }
        state.outcome = outcome;
        state.open.clear();
        let waiting = std::mem::take(&mut state.waiting);
        state.wakers.drain(..).for_each(Waker::wake);
        for (handle, call) in waiting {
            self.answer(&state, &handle, &call.reply);
        }
        true
    }

    /// Counts a change that is told.
    pub fn changed(&self) {
        let mut state = self.state();
        state.changes += 1;
        let writer = state.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// The number of changes so far.
    pub(super) fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Completes when there were other changes than those `seen`.
    pub(super) fn poll_changed(&self, seen: Option<u64>, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if Some(state.changes) != seen {
            return Poll::Ready(());
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Answers `tasks/result` when the task ends, or now if it has ended (R-TSK-10).
    pub fn answer_at_end(&self, handle: &Handle, call: Call) {
        let mut state = self.state();
        if state.status.is_terminal() {
            return self.answer(&state, handle, &call.reply);
        }
        state
            .waiting
            .retain(|(_, call)| !call.cancel.is_cancelled());
        state.waiting.push((handle.clone(), call));
    }

    fn answer(&self, state: &State, handle: &Handle, reply: &ReplyTo) {
        let mut replies = handle.replies();
        match &state.outcome {
            Some(Outcome::Result(json)) => replies.result(reply, |result| {
                result.object(json);
                result.meta(&self.related());
            }),
            Some(Outcome::Error(kind, text, data)) => {
                replies.error(reply, *kind, text, data.as_deref());
            }
            None => {
                replies.error(reply, ErrorKind::InvalidParams, CANCELLED, None);
            }
        }
    }

    /// Sets the status message. Returns `false` if the task has ended.
    pub fn say(&self, message: &str) -> bool {
        let mut state = self.state();
        if state.status.is_terminal() {
            return false;
        }
        state.message = Some(message.into());
        state.updated = SystemTime::now();
        true
    }

    /// Sets whether the task waits for the client. Returns whether the status changed.
    pub fn set_waiting(&self, waits: bool) -> bool {
        let status = match waits {
            true => TaskStatus::InputRequired,
            false => TaskStatus::Working,
        };
        self.state().set_status(status, None)
    }

    /// Asks the client, which finds the question in the task. `told` notifies the listeners of it.
    pub async fn ask(&self, method: Method, params: Option<String>, told: impl Fn()) -> Box<str> {
        let key = self.put(method, params);
        told();
        poll_fn(|cx| {
            let mut state = self.state();
            match state.answers.remove(&key) {
                Some(answer) => Poll::Ready(answer),
                None => {
                    if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                        state.wakers.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Adds a question and returns its key.
    fn put(&self, method: Method, params: Option<String>) -> String {
        let mut state = self.state();
        state.asked += 1;
        let key = format!("input-{}", state.asked);
        state.open.push((key.clone(), method, params));
        state.set_status(TaskStatus::InputRequired, None);
        key
    }

    /// Stores answers to open questions and ignores others (R-TSX-11). Returns whether any was
    /// stored.
    pub fn take_answers(&self, responses: &str) -> bool {
        let mut state = self.state();
        let before = state.open.len();
        for (key, answer) in reader::members(responses) {
            let Some(at) = state.open.iter().position(|(own, ..)| own == key.raw()) else {
                continue;
            };
            let (key, ..) = state.open.remove(at);
            state.answers.insert(key, answer.into());
        }
        let taken = state.open.len() < before;
        if taken && state.open.is_empty() {
            state.set_status(TaskStatus::Working, None);
        }
        state.wakers.drain(..).for_each(Waker::wake);
        taken
    }
}
