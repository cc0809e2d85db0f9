//! Calling a tool by way of a task.

use super::{Task, created};
use crate::client::call::{CallTool, check};
use crate::client::{CallToolResult, parse};
use crate::error::RequestError;
use crate::mcp::{TaskForm, TaskSupport};
use crate::message::Message;

/// What a call came to at first.
#[derive(Debug)]
#[non_exhaustive]
pub enum Started<T = CallToolResult> {
    /// A result at once.
    Done(T),
    /// A task.
    Task(Task),
}

impl CallTool {
    /// Sends the call and ends with the task that it becomes, if it does. In 2025-11-25 it asks for
    /// one, to be kept as long as `ttl` says; later the server decides, if the client was built
    /// with [`tasks`](crate::client::ClientBuilder::tasks); in earlier revisions there are none.
    ///
    /// # Errors
    /// When the server makes no tasks, or none of this tool (2025-11-25, R-TSK-03); else as awaiting
    /// the call.
    pub async fn start(self) -> Result<Started, RequestError> {
        Ok(match self.start_unread().await? {
            Started::Done(answer) => {
                Started::Done(parse(answer.as_ref().result().unwrap_or("{}"))?)
            }
            Started::Task(task) => Started::Task(task),
        })
    }

    /// The same with the answer as it came, if it came at once: checked, but not read. For who
    /// reads it in another language.
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

    /// The answer as it came, checked but not read: by way of a task where the tool cannot be
    /// called otherwise (R-TSK-03).
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
