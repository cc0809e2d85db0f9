//! Asking somebody before a tool is called that the program marked as sensitive.

use std::future::Future;
use std::sync::Arc;

use super::builder::Builder;
use super::content::ToolResult;
use super::context::Context;
use crate::connection::Call;
use crate::handler::guarded::Made;
use crate::message::MessageRef;

/// A call that waits for approval.
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

/// Tools by their names; `*` is all of them.
#[derive(Clone)]
pub(super) struct Marked(Arc<[String]>);

impl Marked {
    pub fn new(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(tools.into_iter().map(Into::into).collect())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether what a request asks for is one of them.
    pub fn covers(&self, message: &MessageRef<'_>) -> bool {
        let is_one = |name: &str| self.0.iter().any(|own| own == name || own == "*");
        message.name().is_some_and(|name| is_one(&name))
    }
}

/// Which tools are sensitive, and who is asked.
#[derive(Clone)]
pub(super) struct Approval {
    pub tools: Marked,
    ask: Arc<Ask>,
}

type Ask = dyn Fn(Pending, Context) -> Made<bool> + Send + Sync;

impl Approval {
    /// # Errors
    /// What a call gets that is not approved.
    pub async fn ask(&self, call: &Call, context: &Context) -> Result<(), ToolResult> {
        match (self.ask)(Pending::of(call), context.clone()).await {
            true => Ok(()),
            false => Err(ToolResult::error("the call was not approved")),
        }
    }
}

impl Builder {
    /// Asks before each call of these tools (`*` is all of them), when everything else about it is
    /// in order; a call that is not approved is a failure for the model to read. Asks the program, or
    /// through the [`Context`] the user: by [`elicit`](Context::elicit), for example. What bounds the time of a
    /// tool bounds this, too.
    ///
    /// A name that no tool has is an error of [`build`](Self::build), unless [tools may come
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
