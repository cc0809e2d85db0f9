//! Adds layers around the handlers of tools: approval, and sanitising of arguments.

use std::future::Future;
use std::sync::Arc;

use super::Builder;
use crate::connection::Call;
use crate::handler::HandlerError;
use crate::json;
use crate::limits::Limits;
use crate::model::ToolResult;
use crate::server::call::Context;
use crate::server::executor::{Layer, Replied, Reply, Service, ToolCall, ToolSet};
use crate::server::output::IntoToolResult;

/// A call of a tool that has not begun: to be approved, or to have its arguments replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProposedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, a raw JSON object that fits the tool's schema.
    pub arguments: String,
}

impl ProposedCall {
    fn of(call: &Call) -> Self {
        let message = call.message.as_ref();
        Self {
            tool: message.name().unwrap_or_default().into_owned(),
            arguments: message.arguments().unwrap_or("{}").to_owned(),
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
    ///     .approval(["erase"], |call, context| async move {
    ///         eprintln!("{:?} wants {}", context.principal(), call.tool);
    ///         false
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn approval<F>(
        mut self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        ask: impl Fn(ProposedCall, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let run = move |tool: ToolCall, next: Service| -> Replied {
            let approved = ask(ProposedCall::of(&tool.call), tool.context.clone());
            Box::pin(async move {
                match approved.await {
                    true => next(tool.call, tool.context).await,
                    false => Ok(Reply::Tool(ToolResult::error("the call was not approved"))),
                }
            })
        };
        // After the sanitiser: what is approved is what runs.
        self.handlers.layers.push(Layer {
            tools: ToolSet::new(tools),
            run: Arc::new(run),
        });
        self
    }

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
    ///     .sanitise(["read"], |call, _| async move {
    ///         let mut arguments: Value = serde_json::from_str(&call.arguments)?;
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
        clean: impl Fn(ProposedCall, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, HandlerError>> + Send + 'static,
    {
        let run = move |tool: ToolCall, next: Service| -> Replied {
            let call = ProposedCall::of(&tool.call);
            let cleaned = clean(call.clone(), tool.context.clone());
            Box::pin(async move {
                let refused = |why: HandlerError| Err::<(), _>(why).into_tool_result();
                let cleaned = match cleaned.await {
                    Ok(cleaned) if cleaned == call.arguments => {
                        return next(tool.call, tool.context).await;
                    }
                    Ok(cleaned) => cleaned,
                    Err(why) => return refused(why).map(Reply::Tool),
                };
                let depth = Limits::STDIO.max_depth;
                let is_object =
                    cleaned.starts_with('{') && json::validate(cleaned.as_bytes(), depth).is_ok();
                let message = tool.call.message.with_arguments(&cleaned);
                let Some(message) = message.filter(|_| is_object) else {
                    let why = "the arguments could not be cleaned";
                    return Ok(Reply::Tool(ToolResult::error(why)));
                };
                if let Err(why) = tool.registry.check_arguments(tool.number, &cleaned) {
                    let why = HandlerError::typed("VALIDATION_ERROR", why);
                    return refused(why).map(Reply::Tool);
                }
                let context = tool.context.with_message(message.clone());
                let call = Call {
                    message,
                    ..tool.call
                };
                next(call, context).await
            })
        };
        let layer = Layer {
            tools: ToolSet::new(tools),
            run: Arc::new(run),
        };
        self.handlers.layers.insert(0, layer);
        self
    }
}
