//! The state of a task, as the server reports it.

use std::time::Duration;

use crate::error::RequestError;
use crate::json::{number, reader};
use crate::mcp::TaskStatus;

/// The state of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskInfo {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: TaskStatus,
    /// Its status message: one sentence.
    pub message: Option<String>,
    /// When it began: ISO 8601.
    pub created_at: String,
    /// When it last changed: ISO 8601.
    pub updated_at: String,
    /// Its lifetime from creation; unlimited when `None`.
    pub ttl: Option<Duration>,
    /// The polling interval that the server asks for.
    pub poll_interval: Option<Duration>,
}

impl TaskInfo {
    /// Parses a task in either form, as [`Task::answer`](super::Task::answer) reports it.
    ///
    /// # Errors
    /// [`RequestError::BadAnswer`] when the JSON is no task.
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
