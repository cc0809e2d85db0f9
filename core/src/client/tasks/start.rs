//! Calling a tool by way of a task.

use super::{Task, created, read};
use crate::client::CallToolResult;
use crate::client::call::CallTool;
use crate::error::RequestError;
use crate::mcp::{TaskForm, TaskSupport};

/// What a call came to at first.
#[derive(Debug)]
#[non_exhaustive]
pub enum Started {
    /// A result at once.
    Done(CallToolResult),
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
    pub async fn start(mut self) -> Result<Started, RequestError> {
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
                read(answer.as_ref().result().unwrap_or("{}"), schema.as_deref()).map(Started::Done)
            }
        }
    }

    /// The result, by way of a task where the tool cannot be called otherwise (R-TSK-03).
    pub(in crate::client) async fn finish(self) -> Result<CallToolResult, RequestError> {
        let form = self.client.revision().and_then(|r| r.rules().tasks);
        if form != Some(TaskForm::Core) || self.support != Some(TaskSupport::Required) {
            return self.send()?.await;
        }
        match self.start().await? {
            Started::Done(result) => Ok(result),
            Started::Task(task) => task.result().await,
        }
    }
}
