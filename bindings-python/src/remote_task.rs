//! A client's access to tasks of the server.

use std::time::Duration;

use mcpbolt::client::{Started, Task, TaskInfo};
use mcpbolt::message::Message;
use pyo3::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::Link;
use crate::client_events::ClientEvent;
use crate::operation::{Operation, Outcome};
use crate::request_options::RequestOptions;
use crate::settings::{seconds, wrong};
use crate::write;

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
            Ok(Outcome::Json(shown(&task.info().await?).to_string()))
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
                    inbox.push(ClientEvent::State(number, shown(&info).to_string()));
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

/// Calls a tool with the knowledge from its list: the result is validated against its output schema, and it is
/// called as a task if it requires that. `future` gets the answer; with `start`, it gets the task instead, if
/// the call becomes one.
#[pyfunction]
#[pyo3(signature = (link, name, arguments, future, options, start, ttl))]
pub fn call_tool(
    link: &Link,
    name: &str,
    arguments: &Bound<'_, PyAny>,
    future: Py<PyAny>,
    options: Option<RequestOptions>,
    start: bool,
    ttl: Option<f64>,
) -> PyResult<u64> {
    let arguments = RawValue::from_string(write::json(arguments)?).map_err(wrong)?;
    let mut call = link.client.call_tool(name, &arguments);
    if let Some(ttl) = ttl {
        call = call.ttl(seconds(ttl)?);
    }
    link.begin(future, |number, inbox| {
        let (call, progress) = options.unwrap_or_default().of_call(call, number, inbox)?;
        let operation = match start {
            true => Operation::other(async move { call.start_unread().await.map(started) }),
            false => Operation::other(call.answer()),
        };
        Ok((operation, progress))
    })
}

/// The outcome of a call: a task, or its answer at once.
fn started(started: Started<Message>) -> Outcome {
    match started {
        Started::Done(answer) => Outcome::Answer(answer),
        Started::Task(task) => {
            Outcome::object(|py| Ok(Bound::new(py, RemoteTask(task))?.into_any()))
        }
        _ => Outcome::Nothing,
    }
}

/// Lists the client's tasks; `future` gets their states.
#[pyfunction]
pub fn list_tasks(link: &Link, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move {
        let all: Vec<_> = client.list_tasks().await?.iter().map(shown).collect();
        Ok(Outcome::Json(Value::from(all).to_string()))
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
