//! Calling a tool as a task, and finding tasks again.

use super::{Task, TaskInfo, created};
use crate::client::call::CallTool;
use crate::client::client::Client;
use crate::client::core::{parse, result};
use crate::client::known_tools::check_answer;
use crate::client::pages::all_items;
use crate::client::results::CallToolResult;
use crate::error::RequestError;
use crate::mcp::{Method, TaskForm, TaskSupport};
use crate::message::Message;

/// The first outcome of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Started<T = CallToolResult> {
    /// An immediate result.
    Done(T),
    /// A task.
    Task(Task),
}

impl Client {
    /// Returns a handle to the task with this id, which may come from an earlier connection if its
    /// revision lets tasks outlive connections.
    pub fn task(&self, id: &str) -> Task {
        Task {
            client: self.core.clone(),
            id: id.into(),
            schema: None,
        }
    }

    /// Lists the tasks of this client, all pages (2025-11-25).
    ///
    /// # Errors
    /// When the server or the revision has no task list; else as [`list_tools`](Self::list_tools).
    pub async fn list_tasks(&self) -> Result<Vec<TaskInfo>, RequestError> {
        let method = Method::ListTasks;
        self.core.require_method(method, method.name())?;
        self.core.require("tasks.list")?;
        let tasks = all_items(&self.core, (method, "tasks"), "").await?;
        tasks.iter().map(|task| TaskInfo::parse(task)).collect()
    }
}

impl CallTool {
    /// Sends the call and returns its task, if it becomes one. In 2025-11-25 this asks for a task,
    /// to be kept as long as `ttl` says. From 2026-07-28 on the server decides, if the client was
    /// built with [`tasks`](crate::client::ClientBuilder::tasks). Earlier revisions have no tasks.
    ///
    /// # Errors
    /// When the server does not support tasks, or not for this tool (2025-11-25, R-TSK-03); else as
    /// awaiting the call.
    pub async fn start(self) -> Result<Started, RequestError> {
        Ok(match self.start_unread().await? {
            Started::Done(answer) => Started::Done(parse(result(&answer))?),
            Started::Task(task) => Started::Task(task),
        })
    }

    /// Like [`start`](Self::start), but an immediate answer is returned raw: checked, but not
    /// parsed. For bindings that parse it in another language.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_unread(mut self) -> Result<Started<Message>, RequestError> {
        let client = self.client.clone();
        let form = client.revision().and_then(|r| r.rules().tasks);
        if form == Some(TaskForm::Core) {
            client.require("tasks.requests.tools.call")?;
            if self.support == Some(TaskSupport::Forbidden) {
                return Err(RequestError::Unsupported("tasks of this tool"));
            }
            self.ask_for_task();
        }
        let schema = self.schema.clone();
        let mut request = self.send()?.request;
        request.return_task();
        let answer = request.await?;
        match created(&answer, form) {
            Some(id) => Ok(Started::Task(Task { client, id, schema })),
            None => {
                check_answer(&answer, schema.as_deref())?;
                Ok(Started::Done(answer))
            }
        }
    }

    /// Returns the raw answer, checked but not parsed. Runs the call as a task if the tool cannot
    /// be called otherwise (R-TSK-03).
    ///
    /// # Errors
    /// As awaiting the call.
    pub async fn answer(self) -> Result<Message, RequestError> {
        let form = self.client.revision().and_then(|r| r.rules().tasks);
        if form != Some(TaskForm::Core) || self.support != Some(TaskSupport::Required) {
            let schema = self.schema.clone();
            let answer = self.send()?.request.await?;
            check_answer(&answer, schema.as_deref())?;
            return Ok(answer);
        }
        match self.start_unread().await? {
            Started::Done(answer) => Ok(answer),
            Started::Task(task) => task.answer(|_| ()).await,
        }
    }
}
