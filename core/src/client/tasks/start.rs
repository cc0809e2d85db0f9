//! Calling a tool as a task.

use super::{Task, created};
use crate::client::call::{CallTool, check};
use crate::client::{CallToolResult, parse};
use crate::error::RequestError;
use crate::mcp::{TaskForm, TaskSupport};
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
            Started::Done(answer) => {
                Started::Done(parse(answer.as_ref().result().unwrap_or("{}"))?)
            }
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
            client.declares(
                &["tasks", "requests", "tools", "call"],
                "tasks.requests.tools.call",
            )?;
            if self.support == Some(TaskSupport::Forbidden) {
                return Err(RequestError::Unsupported("tasks of this tool"));
            }
            self.ask_for_task();
        }
        let schema = self.schema.clone();
        let mut asking = self.send()?.into_asking();
        asking.hand_over();
        let answer = asking.await?;
        match created(&answer, form) {
            Some(id) => Ok(Started::Task(Task { client, id, schema })),
            None => {
                check(&answer, schema.as_deref())?;
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
            let answer = self.send()?.into_asking().await?;
            check(&answer, schema.as_deref())?;
            return Ok(answer);
        }
        match self.start_unread().await? {
            Started::Done(answer) => Ok(answer),
            Started::Task(task) => task.answer(|_| ()).await,
        }
    }
}
