//! Adds layers around handlers: the program's own, approval of tools, and sanitising of their arguments.

use std::future::Future;

use super::Builder;
use crate::handler::HandlerError;
use crate::model::ToolResult;
use crate::server::call::Context;
use crate::server::executor::{Coverage, HandlerCall, Layer, Next, Place, Reply};

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
    fn of(call: &HandlerCall) -> Self {
        Self {
            tool: call.name().into_owned(),
            arguments: call.arguments().to_owned(),
        }
    }
}

impl Builder {
    /// Runs `layer` around each call of a handler: of tools, prompts, resources, completions and methods of
    /// extensions. It may change the arguments, insert [values](HandlerCall::extensions_mut) for the handler,
    /// [run](Next::run) the rest or reply without it, and change the reply. Requests that the server answers
    /// itself, such as lists, pass no layer.
    ///
    /// Layers run in the order of registration, the outermost first, within [sanitising](Self::sanitise) and
    /// around [approval](Self::approval). Arguments were checked before; a tool's result is checked against its
    /// output schema after the outermost layer. An error for a call of a tool becomes a tool error for the model
    /// to read, unless it is a [protocol error](HandlerError::protocol).
    ///
    /// A cancelled call drops the layers with the handler. A handler that asks the client in rounds
    /// (2026-07-28) runs again in each round, and its layers with it. The tool's timeout includes the time of
    /// the layers. Tools that run inline run on the spawner if they have a layer.
    ///
    /// ```
    /// use std::time::Instant;
    /// use mcpbolt::server::{Arguments, HandlerCall, Next, Server, Tool};
    ///
    /// let server = Server::builder("clock", "1.0.0")
    ///     .tool(Tool::new("now"), |_: Arguments, _| async { "noon" })
    ///     .layer(|call: HandlerCall, next: Next| async move {
    ///         let (what, began) = (format!("{} {}", call.method(), call.name()), Instant::now());
    ///         let reply = next.run(call).await;
    ///         eprintln!("{what} took {:?}", began.elapsed());
    ///         reply
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn layer<F>(self, layer: impl Fn(HandlerCall, Next) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Reply, HandlerError>> + Send + 'static,
    {
        self.layer_at(Place::Around, Coverage::Everything, layer)
    }

    /// Runs `layer` around each call of these tools only, `*` for all tools: see [`layer`](Self::layer). Other
    /// calls do not pass through it. [`build`](Self::build) fails for a name that no tool has, unless
    /// [tools may come later](Self::list_changes).
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, HandlerCall, HandlerError, Next, Server, Tool};
    ///
    /// let server = Server::builder("disk", "1.0.0")
    ///     .tool(Tool::new("erase"), |_: Arguments, _| async { "erased" })
    ///     .layer_for(["erase"], |call: HandlerCall, next: Next| async move {
    ///         match call.context().principal() {
    ///             Some("key:alice") => next.run(call).await,
    ///             _ => Err(HandlerError::new("only Alice erases")),
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn layer_for<F>(
        self,
        tools: impl IntoIterator<Item = impl Into<String>>,
        layer: impl Fn(HandlerCall, Next) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Reply, HandlerError>> + Send + 'static,
    {
        self.layer_at(Place::Around, Coverage::tools(tools), layer)
    }

    fn layer_at<F>(
        mut self,
        place: Place,
        coverage: Coverage,
        layer: impl Fn(HandlerCall, Next) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Reply, HandlerError>> + Send + 'static,
    {
        let layers = &mut self.handlers.layers;
        let at = layers.partition_point(|other| other.place <= place);
        layers.insert(at, Layer::new(place, coverage, layer));
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
        let coverage = Coverage::tools(tools);
        self.layer_at(Place::Approval, coverage, move |call, next| {
            let approved = ask(ProposedCall::of(&call), call.context().clone());
            async move {
                match approved.await {
                    true => next.run(call).await,
                    false => Ok(ToolResult::error("the call was not approved").into()),
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
        let coverage = Coverage::tools(tools);
        self.layer_at(Place::Sanitiser, coverage, move |mut call, next| {
            let cleaned = clean(ProposedCall::of(&call), call.context().clone());
            async move {
                let cleaned = cleaned.await?;
                if cleaned != call.arguments() {
                    call.set_raw_arguments(&cleaned)?;
                }
                next.run(call).await
            }
        })
    }
}
