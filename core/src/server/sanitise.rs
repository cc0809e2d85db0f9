//! Sanitising of arguments before a tool sees them.

use std::future::Future;
use std::sync::Arc;

use super::approval::{Marked, Pending};
use super::builder::Builder;
use super::content::ToolResult;
use super::context::Context;
use super::output::IntoToolResult;
use super::registry::Registry;
use crate::connection::Call;
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::json;
use crate::limits::Limits;

/// The tools whose arguments are sanitised, and the function that does it.
#[derive(Clone)]
pub(super) struct Sanitiser {
    pub tools: Marked,
    clean: Arc<Clean>,
}

type Clean = dyn Fn(Pending, Context) -> Made<Result<String, HandlerError>> + Send + Sync;

impl Sanitiser {
    /// Returns the call with sanitised arguments, which fit the schema of tool `number`.
    ///
    /// # Errors
    /// The result that the call gets instead.
    pub async fn clean(
        &self,
        registry: &Registry,
        number: u32,
        call: Call,
        context: Context,
    ) -> Result<(Call, Context), ToolResult> {
        let pending = Pending::of(&call);
        let refused = |why: HandlerError| Err::<ToolResult, _>(why).into_tool_result();
        let clean = (self.clean)(pending.clone(), context.clone()).await;
        let clean = clean.map_err(refused)?;
        if clean == pending.arguments {
            return Ok((call, context));
        }
        let depth = Limits::STDIO.max_depth;
        let is_object = clean.starts_with('{') && json::validate(clean.as_bytes(), depth).is_ok();
        let message = call.message.with_arguments(&clean);
        let Some(message) = message.filter(|_| is_object) else {
            return Err(ToolResult::error("the arguments could not be cleaned"));
        };
        if let Err(why) = registry.check_arguments(number, &clean) {
            return Err(refused(HandlerError::typed("VALIDATION_ERROR", why)));
        }
        let context = context.with_message(message.clone());
        Ok((Call { message, ..call }, context))
    }
}

impl Builder {
    /// Sanitises the arguments of these tools (`*` stands for all) after they passed the schema
    /// check and before anything uses them. `clean` returns a JSON object, changed or not, which
    /// must fit the schema, too. If `clean` refuses the call, the error is a tool error for the
    /// model to read, or a [protocol error](HandlerError::protocol). [Approval](Self::approval) and
    /// the result cache see the sanitised arguments; guards and the audit see the original ones.
    /// The tool's timeout includes the time for sanitising. [`build`](Self::build) fails for a name
    /// that no tool has, unless [tools may come later](Self::list_changes).
    ///
    /// ```
    /// use mcpbolt::handler::HandlerError;
    /// use mcpbolt::server::{Arguments, Server, Tool};
    /// use serde_json::Value;
    ///
    /// let server = Server::builder("disk", "1.0.0")
    ///     .tool(Tool::new("read"), |Arguments(json): Arguments, _| async move { json.to_string() })
    ///     .sanitise(["read"], |pending, _| async move {
    ///         let mut arguments: Value = serde_json::from_str(&pending.arguments)?;
    ///         let path = arguments["path"].as_str().unwrap_or_default().trim().to_owned();
    ///         if path.contains("..") {
    ///             return Err(HandlerError::new("the path leads out of the folder"));
    ///         }
    ///         arguments["path"] = path.into();
    ///         Ok(arguments.to_string())
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn sanitise<F>(
        mut self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        clean: impl Fn(Pending, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, HandlerError>> + Send + 'static,
    {
        self.handlers.sanitiser = Some(Sanitiser {
            tools: Marked::new(tools),
            clean: Arc::new(move |pending, context| Box::pin(clean(pending, context))),
        });
        self
    }
}
