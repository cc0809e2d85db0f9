//! Builder methods that add tools, resources, prompts and completion, each with its handler.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use super::arguments::FromArguments;
use super::builder::Builder;
use super::completion::{CompletionRequest, Completions};
use super::content::{PromptResult, ResourceContents, ToolResult};
use super::context::Context;
use super::definition::{Prompt, Resource, Tool};
use super::handlers::{Handler, InlineTool, ToolHandler};
use super::output::IntoToolResult;
use super::template::Template;
use crate::handler::HandlerError;
use crate::json::{JsonStr, reader};

impl Builder {
    /// Adds a tool. The handler takes the arguments and a [`Context`]. The arguments are your own
    /// type, whose JSON Schema becomes the tool's, or raw [`Arguments`](super::Arguments).
    ///
    /// The handler runs on the spawner and is dropped at its next `await` when the call is
    /// cancelled. A panic becomes an error that does not show the panic's text.
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
        let handler = Arc::new(handler);
        let made: Handler<ToolResult> = Arc::new(move |call, context| {
            let handler = handler.clone();
            Box::pin(async move {
                let arguments =
                    A::from_arguments(call.message.as_ref().arguments().unwrap_or("{}"));
                drop(call);
                match arguments {
                    Ok(arguments) => handler(arguments, context).await.into_tool_result(),
                    Err(why) => ToolResult::error(format!("invalid arguments: {why}")),
                }
            })
        });
        self.taking::<A>(tool, ToolHandler::Spawned(made))
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
        let made: InlineTool = Arc::new(move |arguments| match A::from_arguments(arguments) {
            Ok(arguments) => handler(arguments).into_tool_result(),
            Err(why) => ToolResult::error(format!("invalid arguments: {why}")),
        });
        self.taking::<A>(tool, ToolHandler::Inline(made))
    }

    /// Adds a tool that takes arguments of type `A`.
    fn taking<A: FromArguments>(mut self, mut tool: Tool, handler: ToolHandler) -> Self {
        tool.input_schema = A::schema().unwrap_or(tool.input_schema);
        match self.registry.add_tool(tool) {
            Ok(number) => self.handlers.tools.insert(number, handler),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds a resource. The handler takes the URI and returns the contents.
    pub fn resource<F>(
        mut self,
        resource: Resource,
        handler: impl Fn(String, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResourceContents, HandlerError>> + Send + 'static,
    {
        let made: Handler<_> = Arc::new(move |call, context| {
            let uri = call.message.as_ref().uri().unwrap_or_default().into_owned();
            let made = handler(uri, context);
            Box::pin(async move { Ok(vec![made.await?]) })
        });
        match self.registry.add_resource(resource) {
            Ok(number) => self.handlers.resources.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds resources by URI template. The handler takes the URI and the template's variables, decoded.
    ///
    /// A `{name}` is one segment: it has no `/`, `\` or NUL, and is neither `.` nor `..`. A
    /// `{+path}` may have several segments and may be absolute; it has no segment `..`. Join it
    /// with [`path_under`](super::path_under):
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
    pub fn resource_template<F>(
        mut self,
        template: Resource,
        handler: impl Fn(String, HashMap<String, String>, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ResourceContents, HandlerError>> + Send + 'static,
    {
        let parsed = Template::parse(&template.uri);
        let made: Handler<_> = Arc::new(move |call, context| {
            let uri = call.message.as_ref().uri().unwrap_or_default().into_owned();
            let variables = parsed
                .as_ref()
                .ok()
                .and_then(|template| template.match_uri(&uri));
            let variables = variables.unwrap_or_default().into_iter().collect();
            let made = handler(uri, variables, context);
            Box::pin(async move { Ok(vec![made.await?]) })
        });
        match self.registry.add_template(template) {
            Ok(number) => self.handlers.templates.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds a prompt. The handler takes the arguments by name.
    pub fn prompt<F>(
        mut self,
        prompt: Prompt,
        handler: impl Fn(HashMap<String, String>, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<PromptResult, HandlerError>> + Send + 'static,
    {
        let made: Handler<_> = Arc::new(move |call, context| {
            let arguments = call.message.as_ref().arguments().unwrap_or("{}");
            let pair = |(key, value): (JsonStr<'_>, &str)| {
                let value = reader::as_str(value)?.into_owned();
                Some((key.decode().ok()?.into_owned(), value))
            };
            Box::pin(handler(
                reader::members(arguments).filter_map(pair).collect(),
                context,
            ))
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
            Box::pin(async move { Ok(made?.await?.into()) })
        }));
        self
    }
}
