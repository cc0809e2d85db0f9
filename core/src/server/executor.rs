//! Runs the operations of one connection with the handlers of a [`Server`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::builder::Server;
use super::completion::Completions;
use super::content::{PromptResult, ResourceContents, ToolResult, write_contents};
use super::context::Context;
use super::handlers::{Handlers, ToolHandler};
use super::live::{Offer, View};
use super::operations::missing_data;
use super::registry::Registry;
use super::rounds::Attended;
use super::state_signer::StateSigner;
use super::tasks::Ended;
use crate::connection::{
    Answer, Batch, Call, Disposition, Handle, IncomingRequest, Operation, RequestSource,
    ResultWriter,
};
use crate::handler::guarded::{Made, Outcome, guarded};
use crate::handler::{Executor, HandlerError, Job, Spawner};
use crate::limits::CHECK_HERE_BYTES;
use crate::mcp::ErrorKind;

/// Runs handlers on a [`Spawner`], and inline tools on the driver's thread.
pub struct HandlerExecutor {
    view: View<Handlers>,
    seal: Option<StateSigner>,
    handle: Handle,
    timers: Option<Handle>,
    spawner: Arc<dyn Spawner>,
    source: RequestSource,
}

impl HandlerExecutor {
    /// Creates the executor for the connection of `handle`.
    pub fn new(server: Server, handle: Handle, spawner: Arc<dyn Spawner>) -> Self {
        Self {
            view: View::of(&server.live),
            seal: server.seal,
            handle,
            timers: None,
            spawner,
            source: RequestSource::Unknown,
        }
    }

    /// Makes handlers sleep by the timers of a connection that outlives their own.
    pub(crate) fn with_timers(mut self, timers: Option<Handle>) -> Self {
        self.timers = timers;
        self
    }
}

impl std::fmt::Debug for HandlerExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerExecutor")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl Executor for HandlerExecutor {
    fn sent_from(&mut self, source: &RequestSource) {
        self.source.clone_from(source);
    }

    fn inline<'a>(
        &mut self,
        operation: Operation,
        request: IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let Operation::CallTool(number) = operation else {
            return Err(answer);
        };
        let offer = self.view.offer();
        if offer.handlers.looks_at(&request.message) {
            return Err(answer);
        }
        let Some(ToolHandler::Inline(handler)) = offer.handlers.tools.get(number) else {
            return Err(answer);
        };
        let arguments = request.message.arguments().unwrap_or("{}");
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(arguments)));
        let result = outcome.unwrap_or_else(|_| panicked());
        if let Some(error) = &result.refusal {
            return Ok(answer.error(error.kind(), &error.to_string(), error.data()));
        }
        offer.registry.notice(number, &result);
        Ok(match offer.registry.check_result(number, &result) {
            Ok(()) => answer.result(|writer| result.write(writer)),
            Err(why) => answer.error(ErrorKind::Internal, &why, None),
        })
    }

    fn checks_arguments(&mut self, operation: Operation) -> bool {
        let Operation::CallTool(number) = operation else {
            return false;
        };
        let handler = self.view.offer().handlers.tools.get(number);
        matches!(handler, Some(ToolHandler::Spawned(_)))
    }

    fn initialized(&mut self) {
        if let Some(hook) = &self.view.offer().handlers.initialized {
            guard_hook(|| hook(&self.handle));
        }
    }

    fn roots_changed(&mut self) {
        if let Some(hook) = &self.view.offer().handlers.roots_changed {
            guard_hook(|| hook(&self.handle));
        }
    }

    fn notification(&mut self, method: &str, params: &str) {
        if let Some(hook) = self.view.offer().handlers.notices.get(method) {
            guard_hook(|| hook(params, &self.handle));
        }
    }

    fn closed(&mut self) {
        if let Some(hook) = &self.view.offer().handlers.closed {
            guard_hook(|| hook(&self.handle));
        }
    }

    fn renew(&mut self) -> bool {
        self.view.offer().handlers.closed.is_none()
    }

    fn run(&mut self, batch: Batch) {
        let (offer, handle) = (self.view.offer().clone(), self.handle.clone());
        let (seal, timers) = (self.seal.clone(), self.timers.clone());
        let jobs = batch.into_calls().filter_map(move |call| -> Option<Job> {
            match Context::new(handle.clone(), &call, seal.as_ref()) {
                Ok(context) => {
                    // The timers of an HTTP exchange stop while its client does not read.
                    let context = context.sleeping_by(timers.clone());
                    let context = match call.operation {
                        Operation::CallTool(number) if offer.registry.has_tasks() => {
                            context.with_task(&offer.registry, number, &call)
                        }
                        _ => context,
                    };
                    Some(Box::pin(carry_out(offer.clone(), call, context)))
                }
                Err(why) => {
                    let mut replies = handle.replies();
                    replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
                    None
                }
            }
        });
        self.spawner.spawn_batch_of(&self.source, Box::new(jobs));
    }
}

/// Ignores a panic of a hook, so that the connection continues.
fn guard_hook(hook: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(hook));
}

/// The result of a panicked handler, without the panic's text.
fn panicked() -> ToolResult {
    ToolResult::error("the tool failed unexpectedly")
}

/// Runs one operation and answers it. A cancelled operation is not answered.
fn carry_out(
    offer: Offer<Handlers>,
    call: Call,
    context: Context,
) -> impl Future<Output = ()> + Send {
    // Created here, so that an answer is sent even if the future is never polled.
    let paid = false;
    carry_out_owed(offer, call, ReplyGuard { context, paid })
}

async fn carry_out_owed(offer: Offer<Handlers>, call: Call, mut debt: ReplyGuard) {
    let context = debt.context.clone();
    let Offer { registry, handlers } = &offer;
    match call.operation {
        Operation::CallTool(number) => {
            let Some(handler) = handlers.tools.get(number) else {
                return debt.refuse_gone();
            };
            let arguments = call.message.as_ref().arguments().unwrap_or("{}");
            if arguments.len() > CHECK_HERE_BYTES
                && let Err(why) = registry.check_arguments(number, arguments)
            {
                return debt.refuse_arguments(why);
            }
            // R-TSK-06
            if let Some(task) = debt.context.task()
                && task.is_asked()
                && !task.begin()
            {
                return debt.refuse(ErrorKind::Overloaded, "too many tasks");
            }
            let made = || match handlers.looks_at(&call.message.as_ref()) {
                false => handler.call(call, context),
                true => looked_at(offer.clone(), number, call, context),
            };
            match attended(&debt.context, made).await {
                None => debt.ask(),
                Some(Outcome::Made(result)) => debt.settle_tool(registry, number, result),
                Some(Outcome::Panicked) => debt.settle_tool(registry, number, panicked()),
                Some(Outcome::Cancelled) => debt.give_up(),
            }
        }
        Operation::ReadResource(number) => {
            let Some(handler) = handlers.resources.get(number) else {
                return debt.refuse_gone();
            };
            let made = attended(&debt.context, || handler(call, context)).await;
            debt.settle(made, |contents: Vec<ResourceContents>, writer| {
                write_contents(&contents, writer);
            });
        }
        Operation::ReadTemplate(number) => {
            let Some(handler) = handlers.templates.get(number) else {
                return debt.refuse_gone();
            };
            let made = attended(&debt.context, || handler(call, context)).await;
            debt.settle(made, |contents: Vec<ResourceContents>, writer| {
                write_contents(&contents, writer);
            });
        }
        Operation::Complete => {
            let Some(handler) = &handlers.completion else {
                return;
            };
            let made = attended(&debt.context, || handler(call, context)).await;
            debt.settle(made, |completions: Completions, writer| {
                completions.write(writer)
            });
        }
        Operation::Extension(number) => {
            let Some(handler) = handlers.methods.get(number) else {
                return debt.refuse_gone();
            };
            let made = attended(&debt.context, || handler(call, context)).await;
            debt.settle(made, |object: String, writer| writer.object(&object));
        }
        Operation::GetPrompt(number) => {
            let Some(handler) = handlers.prompts.get(number) else {
                return debt.refuse_gone();
            };
            let made = attended(&debt.context, || handler(call, context)).await;
            debt.settle(made, |prompt: PromptResult, writer| {
                prompt.write(writer);
            });
        }
        // The host keeps these to itself.
        Operation::Listen | Operation::AwaitTask | Operation::ServeBatch | Operation::Own(_) => {
            debt.refuse_gone();
        }
    }
}

/// Runs the sanitiser and the approval of a call, and then its handler.
fn looked_at(
    offer: Offer<Handlers>,
    number: u32,
    mut call: Call,
    mut context: Context,
) -> Made<ToolResult> {
    Box::pin(async move {
        let Offer { registry, handlers } = &offer;
        let message = call.message.clone();
        if let Some(sanitiser) = &handlers.sanitiser
            && sanitiser.tools.covers(&message.as_ref())
        {
            match sanitiser.clean(registry, number, call, context).await {
                Ok(clean) => (call, context) = clean,
                Err(instead) => return instead,
            }
        }
        if let Some(approval) = &handlers.approval
            && approval.tools.covers(&message.as_ref())
            && let Err(instead) = approval.ask(&call, &context).await
        {
            return instead;
        }
        match handlers.tools.get(number) {
            Some(handler) => handler.call(call, context).await,
            None => ToolResult::error("this is not offered any more"),
        }
    })
}

fn attended<T>(context: &Context, make: impl FnOnce() -> Made<T>) -> Attended<T> {
    Attended {
        handler: guarded(context.cancel_token().cancelled(), make),
        rounds: context.rounds().cloned(),
    }
}

/// The pending answer of one call. Dropped without an answer, it sends an internal error, so that
/// no caller waits for a handler that is gone.
struct ReplyGuard {
    context: Context,
    paid: bool,
}

impl ReplyGuard {
    fn pay(mut self, write: impl FnOnce(&mut ResultWriter<'_>)) {
        self.paid = true;
        let mut replies = self.context.connection().replies();
        replies.result(self.context.reply_to(), write);
        replies.submit_last();
    }

    fn forgive(mut self) {
        self.paid = true;
    }

    /// Ends a cancelled tool call, or the task that it became.
    fn give_up(self) {
        if let Some(task) = self.context.task() {
            task.end(Ended::<fn(&mut ResultWriter<'_>)>::Cancelled);
        }
        self.forgive();
    }

    /// Sends a tool's result to the client, or stores it in the task that the call became.
    fn settle_tool(mut self, registry: &Registry, number: u32, result: ToolResult) {
        registry.notice(number, &result);
        let misfit = registry.check_result(number, &result);
        let refused = match (&result.refusal, misfit) {
            (Some(error), _) => Some(error.clone()),
            (None, Err(why)) => Some(HandlerError::new(why)),
            (None, Ok(())) => None,
        };
        let task = self.context.task().filter(|task| task.is_task()).cloned();
        match (task, refused) {
            (Some(task), refused) => {
                task.end(match refused {
                    Some(error) => Ended::Error(
                        error.kind(),
                        error.to_string(),
                        error.data().map(Into::into),
                    ),
                    None => {
                        Ended::Result(|w: &mut ResultWriter<'_>| result.write(w), result.is_error)
                    }
                });
                self.forgive();
            }
            (None, Some(error)) => self.refuse_with(&error),
            (None, None) => self.pay(|writer| result.write(writer)),
        }
    }

    /// Refuses a call whose entry was removed after the call was accepted.
    fn refuse_gone(&mut self) {
        self.refuse(ErrorKind::MethodNotFound, "this is not offered any more");
    }

    fn refuse(&mut self, kind: ErrorKind, message: &str) {
        self.refuse_with(&HandlerError::of(kind, message));
    }

    fn refuse_with(&mut self, error: &HandlerError) {
        self.paid = true;
        let mut replies = self.context.connection().replies();
        let kind = error.kind();
        let message = self.context.message();
        let message = message.filter(|_| kind == ErrorKind::ResourceNotFound);
        let missing = message.and_then(|message| Some(missing_data(&message.uri()?)));
        let data = error.data().or(missing.as_deref());
        replies.error(self.context.reply_to(), kind, &error.to_string(), data);
    }

    /// Ends the round: sends the open questions to the client.
    fn ask(mut self) {
        self.paid = true;
        let mut replies = self.context.connection().replies();
        self.context.end_round(&mut replies);
        replies.submit_last();
    }

    /// R-TOL-05
    fn refuse_arguments(mut self, why: String) {
        let profile = self.context.connection().config().profile;
        match profile.arguments_are_tool_errors(self.context.revision()) {
            true => self.pay(|writer| ToolResult::error(why).write(writer)),
            false => self.refuse(ErrorKind::ToolArguments, &why),
        }
    }

    fn settle<T>(
        mut self,
        outcome: Option<Outcome<Result<T, HandlerError>>>,
        write: impl FnOnce(T, &mut ResultWriter<'_>),
    ) {
        match outcome {
            None => self.ask(),
            Some(Outcome::Made(Ok(value))) => self.pay(|writer| write(value, writer)),
            Some(Outcome::Made(Err(error))) => self.refuse_with(&error),
            Some(Outcome::Panicked) => {
                self.refuse(ErrorKind::Internal, "the handler failed unexpectedly")
            }
            Some(Outcome::Cancelled) => self.forgive(),
        }
    }
}

impl Drop for ReplyGuard {
    fn drop(&mut self) {
        if !self.paid {
            self.refuse(ErrorKind::Internal, "the handler ended without an answer");
        }
    }
}
