//! Adds layers around the handlers of tools: the program's own, approval, and sanitising of arguments.

use std::future::Future;
use std::sync::Arc;

use super::Builder;
use crate::handler::HandlerError;
use crate::model::ToolResult;
use crate::server::call::Context;
use crate::server::executor::{Layer, Next, Place, Replied, Reply, ToolCall, ToolSet};
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
    fn of(call: &ToolCall) -> Self {
        Self {
            tool: call.tool().to_owned(),
            arguments: call.arguments().to_owned(),
        }
    }
}

impl Builder {
    /// Runs `layer` around each call of a tool: it may change the arguments, [run](Next::run) the rest or
    /// answer without it, and change the result. Layers run in the order of registration, the outermost
    /// first, within [sanitising](Self::sanitise) and around [approval](Self::approval). The arguments were
    /// checked against the tool's schema before; the result is checked after the outermost layer. An error becomes a tool error for the model to read, unless it is a
    /// [protocol error](HandlerError::protocol).
    ///
    /// A cancelled call drops the layers with the handler. A handler that asks the client in rounds
    /// (2026-07-28) runs again in each round, and its layers with it. The tool's timeout includes the time of
    /// the layers. Tools that run inline run on the spawner if they have a layer.
    ///
    /// ```
    /// use std::time::Instant;
    /// use mcpbolt::server::{Arguments, Next, Server, Tool, ToolCall};
    ///
    /// let server = Server::builder("clock", "1.0.0")
    ///     .tool(Tool::new("now"), |_: Arguments, _| async { "noon" })
    ///     .layer(|call: ToolCall, next: Next| async move {
    ///         let (tool, began) = (call.tool().to_owned(), Instant::now());
    ///         let result = next.run(call).await;
    ///         eprintln!("{tool} took {:?}", began.elapsed());
    ///         result
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn layer<F, R>(self, layer: impl Fn(ToolCall, Next) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        self.layer_for(["*"], layer)
    }

    /// Runs `layer` around each call of these tools only: see [`layer`](Self::layer). The calls of other tools
    /// do not pass through it. [`build`](Self::build) fails for a name that no tool has, unless
    /// [tools may come later](Self::list_changes).
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, HandlerError, Next, Server, Tool, ToolCall};
    ///
    /// let server = Server::builder("disk", "1.0.0")
    ///     .tool(Tool::new("erase"), |_: Arguments, _| async { "erased" })
    ///     .layer_for(["erase"], |call: ToolCall, next: Next| async move {
    ///         match call.context().principal() {
    ///             Some("key:alice") => next.run(call).await,
    ///             _ => Err(HandlerError::new("only Alice erases")),
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn layer_for<F, R>(
        self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        layer: impl Fn(ToolCall, Next) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        self.layer_at(Place::Around, tools, layer)
    }

    fn layer_at<F, R>(
        mut self,
        place: Place,
        tools: impl IntoIterator<Item = impl Into<String>>,
        layer: impl Fn(ToolCall, Next) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let run = move |call: ToolCall, next: Next| -> Replied {
            let result = layer(call, next);
            Box::pin(async move { result.await.into_tool_result().map(Reply::Tool) })
        };
        let layer = Layer {
            place,
            tools: ToolSet::new(tools),
            run: Arc::new(run),
        };
        let layers = &mut self.handlers.layers;
        let at = layers.partition_point(|other| other.place <= place);
        layers.insert(at, layer);
        self
    }

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
        self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        ask: impl Fn(ProposedCall, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.layer_at(Place::Approval, tools, move |call: ToolCall, next: Next| {
            let approved = ask(ProposedCall::of(&call), call.context().clone());
            async move {
                match approved.await {
                    true => next.run(call).await,
                    false => Ok(ToolResult::error("the call was not approved")),
                }
            }
        })
    }

    /// Sanitises the arguments of these tools (`*` stands for all) after they passed the schema
    /// check and before anything uses them. `clean` returns a JSON object, changed or not, which
    /// must fit the schema, too. If `clean` refuses the call, the error is a tool error for the
    /// model to read, or a [protocol error](HandlerError::protocol). [Layers](Self::layer),
    /// [approval](Self::approval) and the result cache see the sanitised arguments; guards and the audit see the original ones.
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
        self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        clean: impl Fn(ProposedCall, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, HandlerError>> + Send + 'static,
    {
        self.layer_at(
            Place::Sanitiser,
            tools,
            move |mut call: ToolCall, next: Next| {
                let cleaned = clean(ProposedCall::of(&call), call.context().clone());
                async move {
                    let cleaned = cleaned.await?;
                    if cleaned != call.arguments() {
                        call.set_raw_arguments(&cleaned)?;
                    }
                    next.run(call).await
                }
            },
        )
    }
}
