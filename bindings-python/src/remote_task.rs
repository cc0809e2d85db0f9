//! A client's access to tasks of the server.

use std::time::Duration;

use mcpbolt::client::{Task, TaskInfo};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::client::Link;
use crate::news::News;
use crate::work::Made;

/// A tool call that runs as a task at the server.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct RemoteTask(pub Task);

#[pymethods]
impl RemoteTask {
    /// Makes the object for the task with that id.
    #[new]
    fn new(link: &Link, id: &str) -> Self {
        Self(link.client.task(id))
    }

    /// The id of the task.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// Gets the state of the task. Here and in the methods below, `future` gets the outcome.
    fn info(&self, link: &Link, future: Py<PyAny>) -> u64 {
        let task = self.0.clone();
        link.start(future, async move {
            Ok(Made::Json(shown(&task.info().await?).to_string()))
        })
    }

    /// Waits for the answer that the call would have had. `seen` is called with the task's state after each
    /// poll.
    #[pyo3(signature = (link, future, seen = None))]
    fn answer(&self, link: &Link, future: Py<PyAny>, seen: Option<Py<PyAny>>) -> u64 {
        let task = self.0.clone();
        link.start_watched(future, seen, |number, inbox| async move {
            let tell = |state: &str| {
                if let Ok(info) = TaskInfo::parse(state) {
                    inbox.push(News::State(number, shown(&info).to_string()));
                }
            };
            task.answer(tell).await
        })
    }

    /// Asks the server to cancel the task; the outcome is `None`.
    fn cancel(&self, link: &Link, future: Py<PyAny>) -> u64 {
        let task = self.0.clone();
        link.start(future, async move { task.cancel().await })
    }
}

/// Lists the client's tasks; `future` gets their states.
#[pyfunction]
pub fn list_tasks(link: &Link, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move {
        let all: Vec<_> = client.list_tasks().await?.iter().map(shown).collect();
        Ok(Made::Json(Value::from(all).to_string()))
    })
}

/// The state of a task as the Python `TaskInfo` takes it; times are in seconds.
fn shown(info: &TaskInfo) -> Value {
    json!({
        "id": info.id,
        "status": info.status.name(),
        "message": info.message,
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "ttl": info.ttl.map(|ttl| ttl.as_secs_f64()),
        "poll_interval": info.poll_interval.as_ref().map(Duration::as_secs_f64),
    })
}
