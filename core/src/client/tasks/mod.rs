//! Calls that the server answers later: tasks, in both forms that the protocol has for them.

mod info;
mod start;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::info::TaskInfo;
pub use self::start::Started;
use super::call::check;
use super::known::OutputSchema;
use super::results::CallToolResult;
use super::{Client, parse};
use crate::connection::RequestOptions;
use crate::error::{PeerError, RequestError};
use crate::json::{number, reader};
use crate::mcp::{Method, TaskForm, TaskStatus, extension};
use crate::message::Message;

/// How often to ask when the server does not say.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A call that goes on at the server, known by its id. Dropping this changes nothing there.
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
    client: Client,
    id: Box<str>,
    schema: Option<Arc<OutputSchema>>,
}

/// The id of the task that an answer to a call says it has become.
fn created(answer: &Message, form: Option<TaskForm>) -> Option<Box<str>> {
    let result = answer.as_ref().result()?;
    let task = match form? {
        TaskForm::Core => reader::find(result, "task")?,
        TaskForm::Extension => (answer.as_ref().result_type()? == "task").then_some(result)?,
    };
    Some(reader::as_str(reader::find(task, "taskId")?)?.into())
}

impl Client {
    /// The task of that id, which may come from an earlier connection where tasks outlive it.
    pub fn task(&self, id: &str) -> Task {
        Task {
            client: self.clone(),
            id: id.into(),
            schema: None,
        }
    }

    /// The tasks of this client, all pages (2025-11-25).
    ///
    /// # Errors
    /// When the server or the revision has no list; else as [`list_tools`](Self::list_tools).
    pub async fn list_tasks(&self) -> Result<Vec<TaskInfo>, RequestError> {
        self.knows(Method::ListTasks, "tasks/list")?;
        self.declares(&["tasks", "list"], "tasks.list")?;
        let mut tasks = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = cursor
                .as_ref()
                .map(|cursor| format!("{{\"cursor\":{cursor}}}"));
            let answer = self.ask(Method::ListTasks, params.as_deref()).await?;
            let result = answer.as_ref().result().unwrap_or("{}");
            for task in reader::elements(reader::find(result, "tasks").unwrap_or("[]")) {
                tasks.push(TaskInfo::parse(task)?);
            }
            let next = reader::find(result, "nextCursor").filter(|next| *next != "null");
            if next.is_some() && cursor.as_deref() == next {
                return Err(RequestError::BadAnswer("the same page again and again"));
            }
            match next {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(tasks),
            }
        }
    }

    /// The answer that a call comes to, whose first answer is a task; the call's own if it is
    /// none (R-TSX-03).
    pub(super) async fn follow_task(&self, answer: Message) -> Result<Message, RequestError> {
        let form = Some(TaskForm::Extension);
        let form = form.filter(|_| self.handlers().has_extension(extension::TASKS));
        match created(&answer, form) {
            Some(id) => {
                let mut followed = Followed(Some(self.task(&id)));
                let task = self.task(&id);
                let answer = task.answer(|_| ()).await;
                followed.0 = None;
                answer
            }
            None => Ok(answer),
        }
    }
}

/// The task of a call whose caller knows of none: who gives the call up gives up the task.
struct Followed(Option<Task>);

impl Drop for Followed {
    fn drop(&mut self) {
        let Some(task) = &self.0 else { return };
        let (handle, name) = (task.client.handle(), Method::CancelTask.name());
        // Nobody is left who could wait for the answer.
        drop(handle.request(name, Some(&task.params("")), RequestOptions::default()));
    }
}

impl Task {
    /// Its id, to be kept: [`Client::task`] finds it again.
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
        self.client.knows(method, method.name())?;
        self.client
            .request(method.name(), Some(&self.params(more)), options)?
            .await
    }

    async fn look(&self) -> Result<Message, RequestError> {
        self.ask(Method::GetTask, "", RequestOptions::default())
            .await
    }

    /// How far it is.
    ///
    /// # Errors
    /// When the server does not know it, or not any more; else as every request.
    pub async fn info(&self) -> Result<TaskInfo, RequestError> {
        TaskInfo::parse(self.look().await?.as_ref().result().unwrap_or("{}"))
    }

    /// Asks the server to give it up. It may be done before it does (R-TSX-12).
    ///
    /// # Errors
    /// As [`info`](Self::info), and in 2025-11-25 when it has ended (R-TSK-14).
    pub async fn cancel(&self) -> Result<(), RequestError> {
        let options = RequestOptions::default();
        self.ask(Method::CancelTask, "", options).await.map(drop)
    }

    /// Waits for its result, asking as often as the server says. What it asks of the user or the
    /// model meanwhile the client's handlers answer.
    ///
    /// # Errors
    /// Its error; [`RequestError::Cancelled`] when it was given up; else as [`info`](Self::info).
    pub async fn result(&self) -> Result<CallToolResult, RequestError> {
        let answer = self.answer(|_| ()).await?;
        parse(answer.as_ref().result().unwrap_or("{}"))
    }

    /// The same as the answer that the call would have had: checked, but not read. `seen` is told
    /// each state of the task that the server tells, as JSON.
    ///
    /// # Errors
    /// As [`result`](Self::result).
    pub async fn answer(&self, seen: impl FnMut(&str)) -> Result<Message, RequestError> {
        let answer = self.end(seen).await?;
        check(&answer, self.schema.as_deref())?;
        Ok(answer)
    }

    async fn end(&self, mut seen: impl FnMut(&str)) -> Result<Message, RequestError> {
        let is_core = self.client.revision().and_then(|r| r.rules().tasks) == Some(TaskForm::Core);
        let mut answered = BTreeSet::new();
        loop {
            let state = self.look().await?;
            let state = state.as_ref().result().unwrap_or("{}");
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
                    let depth = self.client.handle().config().limits.max_depth;
                    let message = Message::parse(line.as_bytes(), depth);
                    return message
                        .map_err(|_| RequestError::BadAnswer("a task without its result"));
                }
                TaskStatus::Failed => return Err(failure(state)),
                TaskStatus::InputRequired => self.respond(state, &mut answered).await?,
                TaskStatus::Working => {}
            }
            // R-TSK-16, R-TSX-16
            let pause = info.poll_interval.unwrap_or(POLL_INTERVAL);
            self.client.handle().sleep(pause).await;
        }
    }

    /// Answers what the task asks and was not answered before (R-TSX-16).
    async fn respond(
        &self,
        state: &str,
        answered: &mut BTreeSet<String>,
    ) -> Result<(), RequestError> {
        let asked = reader::find(state, "inputRequests").unwrap_or("{}");
        let mut responses = Vec::new();
        for (key, question) in reader::members(asked) {
            if answered.insert(key.raw().to_owned()) {
                let response = self.client.respond(question).await?;
                responses.push(format!("\"{}\":{response}", key.raw()));
            }
        }
        if responses.is_empty() {
            return Ok(());
        }
        let more = format!(",\"inputResponses\":{{{}}}", responses.join(","));
        let options = RequestOptions::default();
        self.ask(Method::UpdateTask, &more, options).await.map(drop)
    }
}

/// The error that a task ended with.
fn failure(state: &str) -> RequestError {
    let error = reader::find(state, "error").unwrap_or("{}");
    let text = reader::find(error, "message").and_then(reader::as_str);
    RequestError::Peer(PeerError {
        code: reader::find(error, "code")
            .and_then(number::as_i64)
            .unwrap_or(-32603),
        message: text.unwrap_or_default().into(),
        data: reader::find(error, "data").map(Box::from),
    })
}
