//! Adds tools, resources, prompts and completion, each with its handler.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::sync::Arc;

use super::Builder;
use crate::handler::HandlerError;
use crate::json::{JsonStr, reader};
use crate::model::{Completions, Prompt, Resource, ResourceTemplate, Tool, ToolResult};
use crate::server::arguments::FromArguments;
use crate::server::call::Context;
use crate::server::completion_request::CompletionRequest;
use crate::server::executor::{Reply, Service, ToolHandler};
use crate::server::output::{IntoToolResult, Output};
use crate::server::result_cache::{KeptCall, Results};
use crate::server::returned::{IntoContents, IntoPrompt};
use crate::server::rollback::{Attempt, Steps};
use crate::server::template::Template;

/// A handler of a tool as the executor calls it.
fn service<A, F, R>(handler: impl Fn(A, Context) -> F + Send + Sync + 'static) -> Service
where
    A: FromArguments,
    F: Future<Output = R> + Send + 'static,
    R: IntoToolResult,
{
    let handler = Arc::new(handler);
    Arc::new(move |call, context| {
        let handler = handler.clone();
        Box::pin(async move {
            let arguments = A::from_arguments(call.message.as_ref().arguments().unwrap_or("{}"));
            drop(call);
            let result = match arguments {
                Ok(arguments) => handler(arguments, context).await.into_tool_result()?,
                Err(why) => ToolResult::error(format!("invalid arguments: {why}")),
            };
            Ok(Reply::Tool(result))
        })
    })
}

impl Builder {
    /// Adds a tool. The handler takes the arguments and a [`Context`]. The arguments are your own
    /// type, whose JSON Schema becomes the tool's, or raw [`Arguments`](crate::server::Arguments).
    ///
    /// The handler runs on the spawner and is dropped at its next `await` when the call is
    /// cancelled. A panic becomes an error that does not show the panic's text.
    ///
    /// A tool that a client has listed can be served as it is, by a handler that takes raw arguments:
    ///
    /// ```
    /// # #[cfg(feature = "client")] {
    /// use mcpbolt::client::Client;
    /// use mcpbolt::model::RawJson;
    /// use mcpbolt::server::{Arguments, Builder, HandlerError, ToolResult};
    ///
    /// async fn forward(client: Client, mut server: Builder) -> Result<Builder, HandlerError> {
    ///     for tool in client.list_tools().await? {
    ///         let (client, name) = (client.clone(), tool.name.clone());
    ///         server = server.tool(tool, move |Arguments(json): Arguments, _| {
    ///             let call = client.call_tool(&name, &RawJson::from(String::from(json)));
    ///             async move { Ok::<_, HandlerError>(ToolResult::from(call.await?)) }
    ///         });
    ///     }
    ///     Ok(server)
    /// }
    /// # }
    /// ```
    pub fn tool<A, F, R>(
        self,
        tool: Tool,
        handler: impl Fn(A, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        self.taking::<A, R>(tool, ToolHandler::Spawned(service(handler)))
    }

    /// Adds a tool that blocks its thread, by files, a database or long computations. On a tokio
    /// runtime it runs on a thread for blocking work; on the engine's own threads every tool may block.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// let server = Server::builder("files", "1.0.0")
    ///     .blocking_tool(Tool::new("count"), |_: Arguments, _| {
    ///         std::fs::read_dir(".").map_or(0, Iterator::count).to_string()
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn blocking_tool<A, R>(
        self,
        tool: Tool,
        handler: impl Fn(A, Context) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        R: IntoToolResult + Send + 'static,
    {
        let handler = service(move |arguments, context| ready(handler(arguments, context)));
        self.taking::<A, R>(tool, ToolHandler::Blocking(handler))
    }

    /// Adds a tool that runs on the driver's thread, before the next message is read. For handlers
    /// that take microseconds and never wait.
    pub fn inline_tool<A, R>(
        self,
        tool: Tool,
        handler: impl Fn(A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        R: IntoToolResult,
    {
        let made = move |arguments: &str| match A::from_arguments(arguments) {
            Ok(arguments) => handler(arguments).into_tool_result(),
            Err(why) => Ok(ToolResult::error(format!("invalid arguments: {why}"))),
        };
        self.taking::<A, R>(tool, ToolHandler::inline(Arc::new(made)))
    }

    /// Adds a tool that takes arguments of type `A` and returns an `R`.
    fn taking<A: FromArguments, R: IntoToolResult>(
        self,
        mut tool: Tool,
        handler: ToolHandler,
    ) -> Self {
        tool.input_schema = A::schema().map_or(tool.input_schema, Into::into);
        self.add_tool::<R>(tool, handler)
    }

    /// Adds a tool that returns an `R`.
    pub(super) fn add_tool<R: IntoToolResult>(
        mut self,
        mut tool: Tool,
        handler: ToolHandler,
    ) -> Self {
        let output = tool.output_schema.take();
        tool.output_schema = output.or_else(|| R::output_schema().map(Into::into));
        match self.registry.add_tool(tool) {
            Ok(number) => self.handlers.insert_tool(number, handler),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds a tool that rolls back when a call fails. The handler records an undo function for each
    /// step. Unless the call ends with a successful result that fits the output schema, all of them
    /// run, the last one first: before the answer or, after a timeout or cancellation, when the
    /// handler is dropped soon after. The tool's description says so, and `mcp.get_schema` shows
    /// `"atomic": "transactional"`.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use mcpbolt::server::{Arguments, Context, HandlerError, Server, Steps, Tool};
    ///
    /// let rooms = Arc::new(Mutex::new(vec!["101"]));
    /// let server = Server::builder("hotel", "1.0.0")
    ///     .atomic_tool(Tool::new("stay.book"), move |_: Arguments, _: Context, steps: Steps| {
    ///         let rooms = rooms.clone();
    ///         async move {
    ///             let room = rooms.lock().ok().and_then(|mut rooms| rooms.pop());
    ///             let room = room.ok_or_else(|| HandlerError::typed("CONFLICT", "no room is free"))?;
    ///             steps.taken(move || rooms.lock().map_or((), |mut rooms| rooms.push(room)));
    ///             Err::<(), _>(HandlerError::typed("DEPENDENCY_ERROR", "the card was refused"))
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn atomic_tool<A, F, R>(
        self,
        tool: Tool,
        handler: impl Fn(A, Context, Steps) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let output = Output::of(&tool);
        self.tool(tool.atomic(), move |arguments: A, context| {
            let attempt = Attempt::default();
            let made = handler(arguments, context, attempt.steps());
            let output = output.clone();
            async move {
                let result = made.await.into_tool_result();
                if output.is_good(&result) {
                    attempt.keep();
                }
                result
            }
        })
    }

    /// Adds a tool whose results are cached: until an entry expires or is forgotten, the same call
    /// gets the same answer without running the handler. Failures and results that do not fit the
    /// output schema are not cached. `mcp.get_schema` shows the lifetime as
    /// `"cache": {"ttl_ms": …}`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcpbolt::server::{Arguments, CacheScope, Results, Server, Tool};
    ///
    /// let results = Results::new(Duration::from_secs(60), CacheScope::Public);
    /// let stale = results.clone();
    /// let server = Server::builder("shop", "1.0.0")
    ///     .kept_tool(Tool::new("price.get"), &results, |_: Arguments, _| async { "7 €" })
    ///     .tool(Tool::new("price.update"), move |_: Arguments, _| {
    ///         stale.forget("price.get");
    ///         async { "updated" }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn kept_tool<A, F, R>(
        self,
        tool: Tool,
        results: &Results,
        handler: impl Fn(A, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: FromArguments,
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let results = results.clone();
        let output = Output::of(&tool);
        let tool = tool.kept_for(results.ttl());
        self.tool(tool, move |arguments: A, context: Context| {
            let output = output.clone();
            let asked = context.message().and_then(|message| {
                let given = message.arguments().unwrap_or("{}");
                results.count_in(&context.connection().config().budget);
                results.ask(&message.name()?, given, context.principal())
            });
            let made = match asked.as_ref().and_then(KeptCall::found) {
                Some(result) => Err(result),
                None => Ok(handler(arguments, context)),
            };
            async move {
                let result = match made {
                    Err(found) => return Ok(found),
                    Ok(made) => made.await.into_tool_result(),
                };
                if let Some(asked) = asked.filter(|_| output.is_good(&result))
                    && let Ok(result) = &result
                {
                    asked.keep(result.clone(), result.held_bytes());
                }
                result
            }
        })
    }

    /// Adds a resource, possibly one that a client has listed. The handler takes the URI and returns the contents:
    /// [`ResourceContents`](crate::model::ResourceContents), a text, bytes, or several contents.
    pub fn resource<F, C>(
        mut self,
        resource: Resource,
        handler: impl Fn(String, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<C, HandlerError>> + Send + 'static,
        C: IntoContents,
    {
        let made: Service = Arc::new(move |call, context| {
            let uri = call.message.as_ref().uri().unwrap_or_default().into_owned();
            let made = handler(uri.clone(), context);
            Box::pin(async move { Ok(Reply::Contents(made.await?.into_contents(&uri)?)) })
        });
        match self.registry.add_resource(resource) {
            Ok(number) => self.handlers.resources.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds resources by URI template. The handler takes the URI and the template's variables, decoded, and returns
    /// what that of a [`resource`](Self::resource) returns.
    ///
    /// A `{name}` is one segment: it has no `/`, `\` or NUL, and is neither `.` nor `..`. A
    /// `{+path}` may have several segments and may be absolute; it has no segment `..`. Join it
    /// with [`path_under`](crate::server::path_under):
    ///
    /// ```
    /// use std::path::Path;
    /// use mcpbolt::handler::HandlerError;
    /// use mcpbolt::server::{Resource, ResourceContents, Server, path_under};
    ///
    /// let docs = Resource::new("docs://{+path}", "docs");
    /// let server = Server::builder("docs", "1.0.0").resource_template(docs, |uri, named, _| async move {
    ///     let path = path_under(Path::new("/srv/docs"), &named["path"]);
    ///     let path = path.ok_or_else(|| HandlerError::new("there is no such file"))?;
    ///     let text = std::fs::read_to_string(path).map_err(|why| HandlerError::new(why.to_string()))?;
    ///     Ok(ResourceContents::text(uri, text))
    /// });
    /// # drop(server.build()?);
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn resource_template<F, C>(
        mut self,
        template: impl Into<ResourceTemplate>,
        handler: impl Fn(String, HashMap<String, String>, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<C, HandlerError>> + Send + 'static,
        C: IntoContents,
    {
        let template = template.into();
        let parsed = Template::parse(&template.uri_template);
        let made: Service = Arc::new(move |call, context| {
            let uri = call.message.as_ref().uri().unwrap_or_default().into_owned();
            let variables = parsed
                .as_ref()
                .ok()
                .and_then(|template| template.match_uri(&uri));
            let variables = variables.unwrap_or_default().into_iter().collect();
            let made = handler(uri.clone(), variables, context);
            Box::pin(async move { Ok(Reply::Contents(made.await?.into_contents(&uri)?)) })
        });
        match self.registry.add_template(template) {
            Ok(number) => self.handlers.templates.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds a prompt, possibly one that a client has listed. The handler takes the arguments by name and returns a
    /// [`PromptResult`](crate::model::PromptResult), the text of the user's message, or messages with their roles.
    pub fn prompt<F, P>(
        mut self,
        prompt: Prompt,
        handler: impl Fn(HashMap<String, String>, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<P, HandlerError>> + Send + 'static,
        P: IntoPrompt,
    {
        let made: Service = Arc::new(move |call, context| {
            let arguments = call.message.as_ref().arguments().unwrap_or("{}");
            let pair = |(key, value): (JsonStr<'_>, &str)| {
                let value = reader::as_str(value)?.into_owned();
                Some((key.decode().ok()?.into_owned(), value))
            };
            let made = handler(
                reader::members(arguments).filter_map(pair).collect(),
                context,
            );
            Box::pin(async move { Ok(Reply::Prompt(made.await?.into_prompt()?)) })
        });
        match self.registry.add_prompt(prompt) {
            Ok(number) => self.handlers.prompts.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Sets the handler that completes the arguments of prompts and resource templates.
    ///
    /// ```
    /// # use mcpbolt::server::{Completions, Prompt, PromptResult, Server};
    /// let server = Server::builder("greeter", "1.0.0")
    ///     .prompt(Prompt::new("greet").argument("lang", "Which language", true), |_, _| async {
    ///         Ok(PromptResult::user("Greet me."))
    ///     })
    ///     .completion(|request, _| async move {
    ///         let all = ["english", "esperanto", "greek"].map(String::from);
    ///         Ok(all.into_iter().filter(|lang| lang.starts_with(&request.value)).collect::<Vec<_>>())
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn completion<F, C>(
        mut self,
        handler: impl Fn(CompletionRequest, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<C, HandlerError>> + Send + 'static,
        C: Into<Completions>,
    {
        self.registry.offer_completion();
        self.handlers.completion = Some(Arc::new(move |call, context| {
            let params = call.message.as_ref().params().unwrap_or("{}");
            let profile = context.connection().config().profile;
            let request = CompletionRequest::parse(params, profile.in_revision(context.revision()))
                .map_err(HandlerError::new);
            let made = request.map(|request| handler(request, context));
            Box::pin(async move { Ok(Reply::Completions(made?.await?.into())) })
        }));
        self
    }
}
