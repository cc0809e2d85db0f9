//! Tasks of the server's, as its client follows them.

use std::time::Duration;

use mcpbolt::client::{Task, TaskInfo};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::client::Link;
use crate::news::News;
use crate::work::Made;

/// A call that goes on at the server.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct RemoteTask(pub Task);

#[pymethods]
impl RemoteTask {
    /// The task of that id.
    #[new]
    fn new(link: &Link, id: &str) -> Self {
        Self(link.client.task(id))
    }

    /// Its id.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// `future` gets how far it is, as the other methods give it what they say.
    fn info(&self, link: &Link, future: Py<PyAny>) -> u64 {
        let task = self.0.clone();
        link.start(future, async move {
            Ok(Made::Json(shown(&task.info().await?).to_string()))
        })
    }

    /// The answer that the call would have had. `seen` is told how far the task is whenever it is
    /// asked.
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

    /// Nothing, once the server is asked to give it up.
    fn cancel(&self, link: &Link, future: Py<PyAny>) -> u64 {
        let task = self.0.clone();
        link.start(future, async move { task.cancel().await })
    }
}

/// `future` gets how far each of the client's tasks is.
#[pyfunction]
pub fn list_tasks(link: &Link, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move {
        let all: Vec<_> = client.list_tasks().await?.iter().map(shown).collect();
        Ok(Made::Json(Value::from(all).to_string()))
    })
}

/// As the face reads it; times are in seconds.
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
