//! Layers around handlers: each sees a call before its handler and the reply after it.

use std::future::Future;
use std::sync::Arc;

use super::handler_call::{HandlerCall, Next};
use super::reply::{Replied, Reply, Service};
use crate::connection::Operation;
use crate::handler::HandlerError;
use crate::mcp::ErrorKind;
use crate::message::MessageRef;
use crate::server::output::IntoToolResult;
use crate::server::registry::Registry;

/// The calls that a layer runs around.
#[derive(Clone)]
pub(in crate::server) enum Coverage {
    /// All calls of handlers.
    Everything,
    /// The calls of these tools; `*` stands for all tools.
    Tools(Arc<[String]>),
}

impl Coverage {
    pub fn tools(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Tools(tools.into_iter().map(Into::into).collect())
    }

    /// The names of the tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: &[String] = match self {
            Self::Everything => &[],
            Self::Tools(names) => names,
        };
        names.iter().map(String::as_str)
    }

    /// Returns whether the request is one of these calls.
    pub fn covers(&self, operation: Operation, message: &MessageRef<'_>) -> bool {
        let Self::Tools(names) = self else {
            return true;
        };
        let is_tool = matches!(operation, Operation::CallTool(_));
        let is_one = |name: &str| names.iter().any(|own| own == name || own == "*");
        is_tool && message.name().is_some_and(|name| is_one(&name))
    }
}

/// The place of a layer. The outermost comes first; layers in one place run in the order of registration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) enum Place {
    /// Sanitises arguments before anything else sees them.
    Sanitiser,
    /// Any other layer.
    Around,
    /// Asks for approval: what is approved is what runs.
    Approval,
}

/// Runs around some handlers.
#[derive(Clone)]
pub(in crate::server) struct Layer {
    pub place: Place,
    pub coverage: Coverage,
    run: Arc<dyn Fn(HandlerCall, Next) -> Replied + Send + Sync>,
}

impl Layer {
    pub fn new<F>(
        place: Place,
        coverage: Coverage,
        run: impl Fn(HandlerCall, Next) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Reply, HandlerError>> + Send + 'static,
    {
        let run = move |call: HandlerCall, next: Next| -> Replied {
            let operation = call.call.operation;
            let running = run(call, next);
            Box::pin(async move { fitting(operation, running.await) })
        };
        Self {
            place,
            coverage,
            run: Arc::new(run),
        }
    }

    /// Puts this layer around a service.
    pub fn around(&self, next: Service, registry: &Arc<Registry>) -> Service {
        let (run, registry, next) = (self.run.clone(), registry.clone(), Next(next));
        Arc::new(move |call, context| {
            let call = HandlerCall {
                registry: registry.clone(),
                call,
                context,
                #[cfg(feature = "tower")]
                rest: None,
            };
            run(call, next.clone())
        })
    }
}

/// What a layer returns, as the layer around it sees it: an error of a tool, for the model to read, is a reply.
fn fitting(
    operation: Operation,
    reply: Result<Reply, HandlerError>,
) -> Result<Reply, HandlerError> {
    let reply = match (operation, reply) {
        (Operation::CallTool(_), Err(error)) => {
            Err::<(), _>(error).into_tool_result().map(Reply::Tool)?
        }
        (_, reply) => reply?,
    };
    let fits = match operation {
        Operation::CallTool(_) => matches!(reply, Reply::Tool(_)),
        Operation::ReadResource(_) | Operation::ReadTemplate(_) => {
            matches!(reply, Reply::Contents(_))
        }
        Operation::GetPrompt(_) => matches!(reply, Reply::Prompt(_)),
        Operation::Complete => matches!(reply, Reply::Completions(_)),
        _ => matches!(reply, Reply::Object(_)),
    };
    match fits {
        true => Ok(reply),
        false => Err(HandlerError::protocol(
            ErrorKind::Internal,
            "a layer replied with the result of another kind of request",
        )),
    }
}
