//! The state of a task, as all processes read it on a store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::json::related;
use super::raw;
use super::task::{Asker, Outcome, Task};
use super::timestamp::iso_8601;
use crate::connection::{Replies, ReplyTo};
use crate::digest;
use crate::mcp::{ErrorKind, Revision, TaskForm, TaskStatus};
use crate::store::{MAX_KEEP, MAX_VALUE_BYTES, StoreError, StoreFault};

/// Most bytes of a record; a sealed one is somewhat longer.
pub(super) const MAX_RECORD_BYTES: usize = MAX_VALUE_BYTES - 4096;

/// Why a task fails that ends with more.
pub(super) const TOO_LONG: &str =
    "the result is too long for the store: a task that processes share has at most 4 MiB";

/// Whom a task belongs to at every process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskOwner {
    Principal(Box<str>),
    /// The session of a client that nobody has verified (2025-11-25).
    Session(Box<str>),
    /// Any client that nobody has verified, if it knows the id (2026-07-28).
    Anybody,
}

impl TaskOwner {
    /// What stands for the owner in the names of the store, which are short.
    pub fn digest(&self) -> String {
        let (kind, name) = match self {
            Self::Principal(name) => ("principal", &**name),
            Self::Session(name) => ("session", &**name),
            Self::Anybody => ("anybody", ""),
        };
        digest::short([kind, "\0", name].concat().as_bytes())
    }
}

impl Asker<'_> {
    /// Who asks, as every process knows it; `None` if this process alone does.
    pub fn owner(&self, revision: Revision) -> Option<TaskOwner> {
        let principal = self.principal.map(|name| TaskOwner::Principal(name.into()));
        match revision.rules().tasks? {
            TaskForm::Extension => Some(principal.unwrap_or(TaskOwner::Anybody)),
            TaskForm::Core => {
                let session = self.handle.shared_session()?;
                Some(principal.unwrap_or_else(|| TaskOwner::Session(session.into())))
            }
        }
    }
}

/// The state of a task, as all processes read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskRecord {
    pub id: Box<str>,
    pub origin: TaskOrigin,
    revision: Box<str>,
    /// When it was begun, in milliseconds since 1970.
    created: u64,
    /// How long it is kept from then on, in milliseconds.
    ttl: u64,
    pub has_ended: bool,
    /// The members of the answer to `tasks/get`.
    #[serde(with = "raw::members")]
    pub detail: String,
    /// The answer to `tasks/result`, in revisions with this method; `None` if the task was cancelled.
    outcome: Option<RecordedOutcome>,
}

/// What is known of a task beside its state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskOrigin {
    pub owner: TaskOwner,
    /// The session in which it was begun, if it was.
    pub session: Option<Box<str>>,
    /// How often it is run, with the present run.
    pub run: u32,
    /// Whether it may be run once more.
    pub is_idempotent: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum RecordedOutcome {
    /// A result, as an object.
    Result(#[serde(with = "raw")] Box<str>),
    /// An error: its code, its message and its `data` as raw JSON.
    Error(i64, Box<str>, Option<Box<str>>),
}

impl TaskRecord {
    pub fn of(task: &Task, origin: &TaskOrigin) -> Self {
        let state = task.state();
        let has_ended = state.status.is_terminal();
        let outcome = match (&task.connection, &state.outcome) {
            (Some(_), Some(Outcome::Result(json))) => Some(RecordedOutcome::Result(json.clone())),
            (Some(made_by), Some(Outcome::Error(kind, text, data))) => {
                let code = kind.code_in(made_by.config().profile, task.revision);
                Some(RecordedOutcome::Error(code, text.clone(), data.clone()))
            }
            _ => None,
        };
        drop(state);
        Self {
            id: task.id.clone(),
            origin: origin.clone(),
            revision: task.revision.name().into(),
            created: millis(task.created),
            ttl: u64::try_from(task.ttl.as_millis()).unwrap_or(u64::MAX),
            has_ended,
            detail: task.detail(),
            outcome,
        }
    }

    pub fn read(bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes).map_err(|_| {
            let why = "the record of a task is not one that this version knows";
            StoreError::new(StoreFault::Unreadable, why)
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        // Cannot fail: its members are texts and numbers.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// How long it is kept from now on.
    pub fn left(&self) -> Duration {
        let age = millis(SystemTime::now()).saturating_sub(self.created);
        keep(Duration::from_millis(self.ttl.saturating_sub(age)))
    }

    /// When it was begun, and how long it is kept from then on.
    pub fn times(&self) -> (SystemTime, Duration) {
        let created = UNIX_EPOCH + Duration::from_millis(self.created);
        (created, Duration::from_millis(self.ttl))
    }

    /// Whether it belongs to the asker and the revision.
    pub fn belongs_to(&self, owner: &TaskOwner, revision: Revision) -> bool {
        self.origin.owner == *owner && *self.revision == *revision.name()
    }

    /// The same of a task that has failed without an answer.
    pub fn failed(self, revision: Revision, why: &str) -> Self {
        let code = ErrorKind::Internal.code(revision);
        let mut failed = self.changed(TaskStatus::Failed, |members| {
            members.remove("result");
            members.insert("statusMessage".into(), why.into());
            if revision.rules().tasks == Some(TaskForm::Extension) {
                members.insert("error".into(), json!({"code": code, "message": why}));
            }
        });
        failed.outcome = Some(RecordedOutcome::Error(code, why.into(), None));
        failed
    }

    /// The same of a task that was cancelled.
    pub fn cancelled(self) -> Self {
        self.changed(TaskStatus::Cancelled, |members| {
            members.remove("statusMessage");
        })
    }

    /// The same of a task that runs once more.
    pub fn again(self) -> Self {
        let mut again = self.changed(TaskStatus::Working, |members| {
            members.remove("statusMessage");
        });
        again.origin.run += 1;
        again
    }

    /// The same of a task whose last run has not begun after all.
    pub fn not_run(mut self) -> Self {
        self.origin.run = self.origin.run.saturating_sub(1);
        self
    }

    fn changed(mut self, status: TaskStatus, edit: impl FnOnce(&mut Map<String, Value>)) -> Self {
        let members = serde_json::from_str::<Map<String, Value>>(&format!("{{{}}}", self.detail));
        let mut members = members.unwrap_or_default();
        members.remove("inputRequests");
        members.insert("status".into(), status.name().into());
        members.insert("lastUpdatedAt".into(), iso_8601(SystemTime::now()).into());
        edit(&mut members);
        let members = Value::Object(members).to_string();
        self.detail = members[1..members.len() - 1].to_owned();
        self.has_ended = status.is_terminal();
        self
    }

    /// Answers `tasks/result` (R-TSK-10). The task has ended.
    pub fn answer(&self, replies: &mut Replies, to: &ReplyTo) {
        match &self.outcome {
            Some(RecordedOutcome::Result(json)) => replies.result(to, |result| {
                result.object(json);
                result.meta(&related(&self.id));
            }),
            Some(RecordedOutcome::Error(code, text, data)) => {
                replies.error_code(to, *code, text, data.as_deref());
            }
            None => replies.error(to, ErrorKind::InvalidParams, CANCELLED, None),
        }
    }
}

/// What `tasks/result` says of a cancelled task.
pub(super) const CANCELLED: &str = "the task was cancelled";

/// Whether a record has room for a result.
pub(super) fn has_room(result: &str) -> bool {
    // Beside the result a record has less than this.
    result.len() <= MAX_RECORD_BYTES - 4096
}

/// As long as a store can keep something, and close to this time.
pub(super) fn keep(time: Duration) -> Duration {
    time.clamp(Duration::from_millis(1), MAX_KEEP)
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a record keeps is as long there as it is.
    #[test]
    fn results_are_json_in_the_json_of_a_record() {
        let text = concat!(
            r#"{"id":"1-a","origin":{"owner":"Anybody","session":null,"run":1,"is_idempotent":false},"#,
            r#""revision":"2025-11-25","created":1,"ttl":1,"has_ended":true,"#,
            r#""detail":{"taskId":"1-a","status":"completed"},"outcome":{"Result":{"a":[1e400,"\""]}}}"#,
        );
        let record = TaskRecord::read(text.as_bytes()).unwrap();
        assert_eq!(record.detail, r#""taskId":"1-a","status":"completed""#);
        assert_eq!(String::from_utf8(record.to_bytes()).unwrap(), text);
    }
}
