//! Asking somebody before a tool is called that the program marked as sensitive.

use std::future::Future;
use std::sync::Arc;

use super::builder::{Builder, ToolHandler};
use super::content::ToolResult;
use super::context::Context;
use crate::connection::Call;
use crate::handler::guarded::Made;

/// A call that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The tool.
    pub tool: String,
    /// Its arguments, a raw JSON object that fits the tool's schema.
    pub arguments: String,
}

/// Which tools are sensitive, and who is asked.
#[derive(Clone)]
pub(super) struct Approval {
    tools: Arc<[String]>,
    ask: Arc<Ask>,
}

type Ask = dyn Fn(Pending, Context) -> Made<bool> + Send + Sync;

impl Approval {
    /// Whether that tool is not called without.
    pub fn covers(&self, tool: &str) -> bool {
        self.tools.iter().any(|own| own == tool || own == "*")
    }

    /// The call of a tool, once it is approved.
    pub fn before(&self, handler: ToolHandler, call: Call, context: Context) -> Made<ToolResult> {
        let message = call.message.as_ref();
        let pending = Pending {
            tool: message.name().unwrap_or_default().into_owned(),
            arguments: message.arguments().unwrap_or("{}").to_owned(),
        };
        let asked = (self.ask)(pending, context.clone());
        Box::pin(async move {
            match asked.await {
                true => handler.call(call, context).await,
                false => ToolResult::error("the call was not approved"),
            }
        })
    }
}

impl Builder {
    /// Asks before each call of these tools (`*` is all of them), when everything else about it is
    /// in order; a call that is not approved is a failure for the model to read. Asks the program, or
    /// through the [`Context`] the user: by [`elicit`](Context::elicit), for example. What bounds the time of a
    /// tool bounds this, too.
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
            tools: tools.into_iter().map(Into::into).collect(),
            ask: Arc::new(move |pending, context| Box::pin(ask(pending, context))),
        });
        self
    }
}
