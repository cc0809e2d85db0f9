//! Approval of calls to tools that the program marked as sensitive.

use std::future::Future;
use std::sync::Arc;

use super::builder::Builder;
use super::content::ToolResult;
use super::context::Context;
use crate::connection::Call;
use crate::handler::guarded::Made;
use crate::message::MessageRef;

/// A call that awaits approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The tool.
    pub tool: String,
    /// Its arguments, a raw JSON object that fits the tool's schema.
    pub arguments: String,
}

impl Pending {
    pub(super) fn of(call: &Call) -> Self {
        let message = call.message.as_ref();
        Self {
            tool: message.name().unwrap_or_default().into_owned(),
            arguments: message.arguments().unwrap_or("{}").to_owned(),
        }
    }
}

/// A set of tool names; `*` stands for all tools.
#[derive(Clone)]
pub(super) struct Marked(Arc<[String]>);

impl Marked {
    pub fn new(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(tools.into_iter().map(Into::into).collect())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether the request names one of these tools.
    pub fn covers(&self, message: &MessageRef<'_>) -> bool {
        let is_one = |name: &str| self.0.iter().any(|own| own == name || own == "*");
        message.name().is_some_and(|name| is_one(&name))
    }
}

/// The sensitive tools, and the function that approves their calls.
#[derive(Clone)]
pub(super) struct Approval {
    pub tools: Marked,
    ask: Arc<Ask>,
}

type Ask = dyn Fn(Pending, Context) -> Made<bool> + Send + Sync;

impl Approval {
    /// # Errors
    /// The tool result for a call that is not approved.
    pub async fn ask(&self, call: &Call, context: &Context) -> Result<(), ToolResult> {
        match (self.ask)(Pending::of(call), context.clone()).await {
            true => Ok(()),
            false => Err(ToolResult::error("the call was not approved")),
        }
    }
}

impl Builder {
    /// Asks for approval before each call of these tools (`*` stands for all), after all other
    /// checks. A call that is not approved becomes a tool error for the model to read. `ask` may
    /// decide in the program, or ask the user through the [`Context`], for example by
    /// [`elicit`](Context::elicit). The tool's timeout includes the time for approval.
    ///
    /// [`build`](Self::build) fails for a name that no tool has, unless [tools may come
    /// later](Self::list_changes).
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// let server = Server::builder("disk", "1.0.0")
    ///     .tool(Tool::new("erase"), |_: Arguments, _| async { "erased" })
    ///     .approval(["erase"], |pending, context| async move {
    ///         eprintln!("{:?} wants {}", context.principal(), pending.tool);
    ///         false
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn approval<F>(
        mut self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        ask: impl Fn(Pending, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.handlers.approval = Some(Approval {
            tools: Marked::new(tools),
            ask: Arc::new(move |pending, context| Box::pin(ask(pending, context))),
        });
        self
    }
}
