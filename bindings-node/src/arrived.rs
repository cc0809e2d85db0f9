//! Calls of the peer on their way to JavaScript.

use std::sync::Arc;

use mcpbolt::connection::{Call, Operation};
use mcpbolt::handler::Head;
use mcpbolt::mcp::{Era, ErrorKind};
use mcpbolt::message::Field;
use mcpbolt::server::{Context, Registry, StateSigner};

use crate::caller::Caller;
use crate::operation::Delegated;
use crate::panics::Panicked;

/// A call; boxed because it moves from queue to queue.
#[derive(Debug)]
pub struct Arrived {
    pub call: Box<Call>,
    pub caller: Caller,
    /// The context for rounds of questions or for a task, if the call may need one.
    pub context: Option<Box<Context>>,
    /// The head of the HTTP request that brought it, if a delegate wants it.
    pub head: Option<Arc<Head>>,
}

impl Arrived {
    /// Prepares a call; starts a task if its client asked for one. `None` if the call was refused, which
    /// answers it.
    pub fn new(
        call: Call,
        caller: &Caller,
        signer: Option<&StateSigner>,
        registry: &Arc<Registry>,
        head: Option<Arc<Head>>,
    ) -> Option<Self> {
        let context = match context(&call, caller, signer, registry) {
            Ok(context) => context.map(Box::new),
            Err((kind, why)) => {
                let mut replies = caller.handle.replies();
                replies.error(&call.reply, kind, why, None);
                return None;
            }
        };
        Some(Self {
            call: Box::new(call),
            caller: caller.clone(),
            context,
            head,
        })
    }

    /// Answers it with a panic.
    pub fn fail(&self, panic: &Panicked) {
        panic.answer_now(&self.caller.handle, &self.call.reply);
    }

    /// Whether its caller has cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }
}

type Refusal = (ErrorKind, &'static str);

/// The context of a call that may take rounds of questions, or run as a task.
fn context(
    call: &Call,
    caller: &Caller,
    signer: Option<&StateSigner>,
    registry: &Arc<Registry>,
) -> Result<Option<Context>, Refusal> {
    let tool = match call.operation {
        Operation::CallTool(number) => Some(number),
        _ => None,
    };
    let tool = tool.filter(|number| registry.supports_tasks(*number));
    if Delegated::of(call.operation).is_some() || tool.is_none() && !takes_rounds(call) {
        return Ok(None);
    }
    let context = Context::new(caller.handle.clone(), call, signer);
    let mut context = context.map_err(|why| (ErrorKind::InvalidParams, why))?;
    if let Some(number) = tool {
        context = context.with_task(registry, number, call);
    }
    // R-TSK-06
    let asked = context.task().filter(|task| task.is_asked());
    match asked.is_none_or(|task| task.begin()) {
        true => Ok(Some(context)),
        false => Err((ErrorKind::Overloaded, "too many tasks")),
    }
}

/// Whether the client is asked by the answer to its call, which it then repeats.
fn takes_rounds(call: &Call) -> bool {
    let declared = |call: &Call| {
        let declared = call.message.as_ref().raw(Field::ClientCapabilities);
        declared.is_some_and(|declared| declared != "{}")
    };
    call.reply.revision().era() == Era::Stateless && declared(call)
}
