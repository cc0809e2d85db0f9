//! What a server says of a task.

use std::time::Duration;

use crate::error::RequestError;
use crate::json::{number, reader};
use crate::mcp::TaskStatus;

/// How far a task is.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskInfo {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// A sentence about it.
    pub message: Option<String>,
    /// When it began: ISO 8601.
    pub created_at: String,
    /// When it last changed: ISO 8601.
    pub updated_at: String,
    /// How long it is kept from its beginning; for ever when `None`.
    pub ttl: Option<Duration>,
    /// How often to ask.
    pub poll_interval: Option<Duration>,
}

impl TaskInfo {
    /// Reads one, in either form: what [`Task::answer`](super::Task::answer) shows of a task.
    ///
    /// # Errors
    /// [`RequestError::BadAnswer`], where it is none.
    pub fn parse(json: &str) -> Result<Self, RequestError> {
        let shape = RequestError::BadAnswer("a task of another shape");
        let text = |name| Some(reader::as_str(reader::find(json, name)?)?.into_owned());
        let millis = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| reader::find(json, name));
            found.and_then(number::as_u64).map(Duration::from_millis)
        };
        Ok(Self {
            id: text("taskId").ok_or_else(|| shape.clone())?,
            status: text("status")
                .and_then(|name| TaskStatus::parse(&name))
                .ok_or(shape)?,
            message: text("statusMessage"),
            created_at: text("createdAt").unwrap_or_default(),
            updated_at: text("lastUpdatedAt").unwrap_or_default(),
            ttl: millis(["ttlMs", "ttl"]),
            poll_interval: millis(["pollIntervalMs", "pollInterval"]),
        })
    }
}
