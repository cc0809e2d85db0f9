//! The JSON of a task, in both forms.

use std::fmt::Write as _;

use super::task::{Outcome, State, Task};
use super::timestamp::iso_8601;
use crate::json::string;
use crate::mcp::{TaskForm, TaskStatus, meta};

impl Task {
    /// The members that every task has, with the names of its form (R-TSK-09, R-TSX-22).
    fn fields(&self, state: &State) -> String {
        let mut out = b"\"taskId\":".to_vec();
        string::append(&mut out, &self.id);
        let mut out = String::from_utf8(out).unwrap_or_default();
        let (ttl, poll) = match self.form() {
            TaskForm::Core => ("ttl", "pollInterval"),
            TaskForm::Extension => ("ttlMs", "pollIntervalMs"),
        };
        // Writing to a string does not fail.
        let _ = write!(
            out,
            ",\"status\":\"{}\",\"createdAt\":\"{}\",\"lastUpdatedAt\":\"{}\",\"{ttl}\":{},\"{poll}\":{}",
            state.status.name(),
            iso_8601(self.created),
            iso_8601(state.updated),
            self.ttl.as_millis(),
            self.poll_interval.as_millis(),
        );
        if let Some(message) = &state.message {
            let mut text = Vec::new();
            string::append(&mut text, message);
            let text = String::from_utf8(text).unwrap_or_default();
            let _ = write!(out, ",\"statusMessage\":{text}");
        }
        out
    }

    /// The members without questions and outcome.
    pub fn summary(&self) -> String {
        self.fields(&self.state())
    }

    /// The members with the open questions or the outcome, where the form includes them (R-TSX-09).
    pub fn detail(&self) -> String {
        let state = self.state();
        let mut out = self.fields(&state);
        if self.form() == TaskForm::Core {
            return out;
        }
        match &state.outcome {
            Some(Outcome::Result(json)) => drop(write!(out, ",\"result\":{json}")),
            Some(Outcome::Error(kind, text, data)) => {
                let mut message = Vec::new();
                string::append(&mut message, text);
                let message = String::from_utf8(message).unwrap_or_default();
                let code = kind.code(self.revision);
                let _ = write!(out, ",\"error\":{{\"code\":{code},\"message\":{message}");
                if let Some(data) = data {
                    let _ = write!(out, ",\"data\":{data}");
                }
                out.push('}');
            }
            None if state.status == TaskStatus::InputRequired => {
                out.push_str(",\"inputRequests\":{");
                for (i, (key, method, params)) in state.open.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    let params = params.as_deref().unwrap_or("{}");
                    let name = method.name();
                    let _ = write!(
                        out,
                        "{comma}\"{key}\":{{\"method\":\"{name}\",\"params\":{params}}}"
                    );
                }
                out.push('}');
            }
            None => {}
        }
        out
    }

    /// The `_meta` of messages that belong to the task.
    pub fn related(&self) -> String {
        related(&self.id)
    }
}

/// The `_meta` of messages that belong to the task with this id (R-MET-12).
pub(super) fn related(id: &str) -> String {
    let mut text = Vec::new();
    string::append(&mut text, id);
    let id = String::from_utf8(text).unwrap_or_default();
    format!("{{\"{}\":{{\"taskId\":{id}}}}}", meta::RELATED_TASK)
}
