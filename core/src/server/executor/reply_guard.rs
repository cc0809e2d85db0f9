//! The pending answer of one call.

use super::reply::{Reply, panicked};
use crate::connection::{Operation, ResultWriter};
use crate::handler::HandlerError;
use crate::handler::guarded::Outcome;
use crate::mcp::ErrorKind;
use crate::model::ToolResult;
use crate::server::call::Context;
use crate::server::lookup::missing_data;
use crate::server::registry::Registry;
use crate::server::tasks::Ended;

/// The pending answer of one call. Dropped without an answer, it sends an internal error, so that
/// no caller waits for a handler that is gone.
pub(super) struct ReplyGuard {
    context: Context,
    is_done: bool,
}

impl ReplyGuard {
    pub fn new(context: Context) -> Self {
        Self {
            context,
            is_done: false,
        }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Answers the call with what its handler gave, or stores it in the task that the call became.
    /// No outcome means that the handler asks the client, which ends the round.
    pub fn settle(
        mut self,
        registry: &Registry,
        operation: Operation,
        outcome: Option<Outcome<Result<Reply, HandlerError>>>,
    ) {
        match (outcome, operation) {
            (None, _) => {
                self.is_done = true;
                let mut replies = self.context.connection().replies();
                self.context.end_round(&mut replies);
                replies.submit_last();
            }
            (Some(Outcome::Cancelled), _) => {
                if let Some(task) = self.context.task() {
                    task.end(Ended::<fn(&mut ResultWriter<'_>)>::Cancelled);
                }
                self.is_done = true;
            }
            (Some(Outcome::Panicked), Operation::CallTool(number)) => {
                self.settle_tool(registry, number, Ok(panicked()));
            }
            (Some(Outcome::Panicked), _) => {
                self.refuse(ErrorKind::Internal, "the handler failed unexpectedly");
            }
            (Some(Outcome::Made(Ok(Reply::Tool(result)))), Operation::CallTool(number)) => {
                self.settle_tool(registry, number, Ok(result));
            }
            (Some(Outcome::Made(Err(error))), Operation::CallTool(number)) => {
                self.settle_tool(registry, number, Err(error));
            }
            (Some(Outcome::Made(Ok(reply))), _) => self.answer(|writer| reply.write(writer)),
            (Some(Outcome::Made(Err(error))), _) => self.refuse_with(&error),
        }
    }

    fn settle_tool(
        mut self,
        registry: &Registry,
        number: u32,
        result: Result<ToolResult, HandlerError>,
    ) {
        let result = result.and_then(|result| {
            registry.notice(number, &result);
            let verdict = registry.check_result(number, &result);
            verdict.map_err(HandlerError::new).map(|()| result)
        });
        let Some(task) = self.context.task().filter(|task| task.is_task()) else {
            return match result {
                Ok(result) => self.answer(|writer| result.write(writer)),
                Err(error) => self.refuse_with(&error),
            };
        };
        task.end(match &result {
            Ok(result) => Ended::Result(
                |writer: &mut ResultWriter<'_>| result.write(writer),
                result.is_error,
            ),
            Err(error) => Ended::Error(
                error.kind(),
                error.to_string(),
                error.data().map(Into::into),
            ),
        });
        self.is_done = true;
    }

    fn answer(mut self, write: impl FnOnce(&mut ResultWriter<'_>)) {
        self.is_done = true;
        let mut replies = self.context.connection().replies();
        replies.result(self.context.reply_to(), write);
        replies.submit_last();
    }

    pub fn refuse(&mut self, kind: ErrorKind, message: &str) {
        self.refuse_with(&HandlerError::of(kind, message));
    }

    fn refuse_with(&mut self, error: &HandlerError) {
        self.is_done = true;
        let mut replies = self.context.connection().replies();
        let kind = error.kind();
        let message = self.context.message();
        let message = message.filter(|_| kind == ErrorKind::ResourceNotFound);
        let missing = message.and_then(|message| Some(missing_data(&message.uri()?)));
        let data = error.data().or(missing.as_deref());
        replies.error(self.context.reply_to(), kind, &error.to_string(), data);
    }

    /// Refuses arguments that break the tool's schema (R-TOL-05).
    pub fn refuse_arguments(mut self, why: String) {
        let profile = self.context.connection().config().profile;
        match profile.arguments_are_tool_errors(self.context.revision()) {
            true => self.answer(|writer| ToolResult::error(why).write(writer)),
            false => self.refuse(ErrorKind::ToolArguments, &why),
        }
    }
}

impl Drop for ReplyGuard {
    fn drop(&mut self) {
        if !self.is_done {
            self.refuse(ErrorKind::Internal, "the handler ended without an answer");
        }
    }
}
