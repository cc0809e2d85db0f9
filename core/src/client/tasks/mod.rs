//! Tasks: calls that the server answers later, in both forms that the protocol defines.

mod info;
mod start;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::info::TaskInfo;
pub use self::start::Started;
use super::core::{ClientCore, parse, result};
use super::known_tools::{OutputSchema, check_answer};
use super::results::CallToolResult;
use super::rounds::input_responses;
use crate::connection::{RequestOptions, read_error};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::{Method, TaskForm, TaskStatus, extension};
use crate::message::Message;

/// The polling interval when the server does not state one.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A call that continues on the server, identified by its id. Dropping this does not affect the
/// call.
///
/// ```no_run
/// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
/// use mcpbolt::client::Started;
/// let arguments = serde_json::json!({"film": "Metropolis"});
/// let result = match client.call_tool("render", &arguments).start().await? {
///     Started::Task(task) => {
///         println!("{} is {:?}", task.id(), task.info().await?.status);
///         task.result().await?
///     }
///     Started::Done(result) => result,
/// #   _ => return Ok(()),
/// };
/// println!("{}", result.text());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Task {
    client: ClientCore,
    id: Box<str>,
    schema: Option<Arc<OutputSchema>>,
}

/// The id of the task that a call became, according to its answer.
fn created(answer: &Message, form: Option<TaskForm>) -> Option<Box<str>> {
    let result = answer.as_ref().result()?;
    let task = match form? {
        TaskForm::Core => reader::find(result, "task")?,
        TaskForm::Extension => (answer.as_ref().result_type()? == "task").then_some(result)?,
    };
    Some(reader::as_str(reader::find(task, "taskId")?)?.into())
}

/// Waits for the final answer of a call whose first answer is a task; returns other answers
/// unchanged (R-TSX-03).
pub(super) async fn follow_task(
    client: &ClientCore,
    answer: Message,
) -> Result<Message, RequestError> {
    let has_tasks = client.responder.has_extension(extension::TASKS);
    let form = has_tasks.then_some(TaskForm::Extension);
    let Some(id) = created(&answer, form) else {
        return Ok(answer);
    };
    let task = Task {
        client: client.clone(),
        id,
        schema: None,
    };
    let mut followed = Followed(Some(task.clone()));
    let mut has_ended = false;
    let answer = task.answer(|state| has_ended = is_terminal(state)).await;
    if answer.is_ok() || has_ended {
        followed.0 = None;
    }
    answer
}

/// Whether the status in the state of a task is final.
fn is_terminal(state: &str) -> bool {
    let status = reader::find(state, "status").and_then(reader::as_str);
    status
        .and_then(|status| TaskStatus::parse(&status))
        .is_some_and(TaskStatus::is_terminal)
}

/// A task that the caller of a call does not see. The task is cancelled if the call is dropped, or
/// fails before the task has ended.
struct Followed(Option<Task>);

impl Drop for Followed {
    fn drop(&mut self) {
        let Some(task) = &self.0 else { return };
        let (handle, name) = (&task.client.handle, Method::CancelTask.name());
        // Nobody is left to wait for the answer.
        drop(handle.request(name, Some(&task.params("")), RequestOptions::default()));
    }
}

impl Task {
    /// The task's id. Store it to find the task again with [`Client::task`](super::Client::task).
    pub fn id(&self) -> &str {
        &self.id
    }

    fn params(&self, more: &str) -> String {
        let id = Value::from(&*self.id);
        format!("{{\"taskId\":{id}{more}}}")
    }

    async fn ask(
        &self,
        method: Method,
        more: &str,
        options: RequestOptions,
    ) -> Result<Message, RequestError> {
        self.client.require_method(method, method.name())?;
        let params = self.params(more);
        self.client.ask_with(method, Some(&params), options).await
    }

    async fn look(&self) -> Result<Message, RequestError> {
        self.ask(Method::GetTask, "", RequestOptions::default())
            .await
    }

    /// Asks for the state of the task.
    ///
    /// # Errors
    /// When the server does not know the task, or no longer; else as every request.
    pub async fn info(&self) -> Result<TaskInfo, RequestError> {
        TaskInfo::parse(result(&self.look().await?))
    }

    /// Asks the server to cancel the task. The task may still complete first (R-TSX-12).
    ///
    /// # Errors
    /// As [`info`](Self::info), and in 2025-11-25 when the task has ended (R-TSK-14).
    pub async fn cancel(&self) -> Result<(), RequestError> {
        let options = RequestOptions::default();
        self.ask(Method::CancelTask, "", options).await.map(drop)
    }

    /// Waits for the task's result, polling at the interval that the server states. Meanwhile the
    /// client's handlers answer the task's questions to the user or the model.
    ///
    /// # Errors
    /// The task's error; [`RequestError::Cancelled`] when it was cancelled; else as
    /// [`info`](Self::info).
    pub async fn result(&self) -> Result<CallToolResult, RequestError> {
        parse(result(&self.answer(|_| ()).await?))
    }

    /// Waits for the raw answer that the call would have had, checked but not parsed. `seen` is
    /// called with each state of the task that the server reports, as JSON.
    ///
    /// # Errors
    /// As [`result`](Self::result).
    pub async fn answer(&self, seen: impl FnMut(&str)) -> Result<Message, RequestError> {
        let answer = self.end(seen).await?;
        check_answer(&answer, self.schema.as_deref())?;
        Ok(answer)
    }

    async fn end(&self, mut seen: impl FnMut(&str)) -> Result<Message, RequestError> {
        let is_core = self.client.revision().and_then(|r| r.rules().tasks) == Some(TaskForm::Core);
        let mut answered = BTreeSet::new();
        loop {
            let state = self.look().await?;
            let state = result(&state);
            let info = TaskInfo::parse(state)?;
            seen(state);
            match info.status {
                TaskStatus::Cancelled => {
                    return Err(RequestError::Cancelled(info.message.map(Into::into)));
                }
                // R-TSK-13
                TaskStatus::Completed | TaskStatus::Failed | TaskStatus::InputRequired
                    if is_core =>
                {
                    let options = RequestOptions {
                        timeout: Some(Duration::MAX),
                        ..RequestOptions::default()
                    };
                    return self.ask(Method::TaskResult, "", options).await;
                }
                TaskStatus::Completed => {
                    let result = reader::find(state, "result").unwrap_or("null");
                    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{result}}}");
                    let depth = self.client.handle.config().limits.max_depth;
                    let message = Message::parse(line.as_bytes(), depth);
                    return message
                        .map_err(|_| RequestError::BadAnswer("a task without its result"));
                }
                TaskStatus::Failed => {
                    let error = reader::find(state, "error").unwrap_or("{}");
                    return Err(RequestError::Peer(read_error(error)));
                }
                TaskStatus::InputRequired => self.respond(state, &mut answered).await?,
                TaskStatus::Working => {}
            }
            // R-TSK-16, R-TSX-16
            let pause = info.poll_interval.unwrap_or(POLL_INTERVAL);
            self.client.handle.sleep(pause).await;
        }
    }

    /// Answers the task's questions that were not answered before (R-TSX-16).
    async fn respond(
        &self,
        state: &str,
        answered: &mut BTreeSet<String>,
    ) -> Result<(), RequestError> {
        let is_new = |key: &str| answered.insert(key.to_owned());
        let Some(responses) = input_responses(&self.client, state, is_new).await? else {
            return Ok(());
        };
        let (more, options) = (format!(",{responses}"), RequestOptions::default());
        self.ask(Method::UpdateTask, &more, options).await.map(drop)
    }
}
