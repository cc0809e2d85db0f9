//! Adds what the macros make of functions: tools, resources, prompts and completions.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Builder;
use crate::handler::HandlerError;
use crate::mcp::ErrorKind;
use crate::model::{Completions, Prompt, Resource, ResourceTemplate, Tool};
use crate::server::completion_request::CompletionRequest;
use crate::server::executor::{Completing, Reply, Service, ToolHandler};
use crate::server::extract::{Owner, Received, Signature};
use crate::server::output::IntoToolResult;
use crate::server::returned::{IntoCompletions, IntoContents, IntoPrompt};
use crate::server::template::Template;

/// Tools, resources, prompts and completions with their handlers, ready to be added to a server with
/// [`Builder::with`]. `#[mcpbolt::tools]` implements it for a type; [`handlers!`](crate::handlers) makes one of
/// functions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` offers no tools",
    label = "does not implement `Offer`",
    note = "put `#[mcpbolt::tools]` on an `impl` block of the type; functions with `#[mcpbolt::tool]` are added with `handlers![…]`"
)]
pub trait Offer: Sized + Send + Sync + 'static {
    /// Adds everything to a server.
    fn offer(self, server: Builder) -> Builder;
}

/// A type whose `impl` block has `#[mcpbolt::tools]`, for [`Builder::with`] and [`Builder::per_session`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no methods that are tools",
    label = "does not implement `OfferMethods`",
    note = "put `#[mcpbolt::tools]` on an `impl` block of the type"
)]
pub trait OfferMethods: Sized {
    /// Adds everything to a server.
    #[doc(hidden)]
    fn offer_methods(owner: Owner<Self>, server: Builder) -> Builder;
}

/// Lists functions that have `#[tool]`, `#[resource]`, `#[prompt]` or `#[completion]`, for
/// [`Builder::with`](crate::server::Builder::with).
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use mcpbolt::prelude::*;
///
/// /// Adds two numbers.
/// #[tool]
/// fn add(a: f64, b: f64) -> f64 {
///     a + b
/// }
///
/// /// Says which numbers can be added.
/// #[resource("about://numbers")]
/// fn numbers() -> &'static str {
///     "all of them"
/// }
///
/// let server = Server::builder("calculator", "1.0.0").with(handlers![add, numbers]).build()?;
/// # }
/// # Ok::<(), mcpbolt::server::RegistryError>(())
/// ```
#[macro_export]
macro_rules! handlers {
    ($($($name:ident)::+),* $(,)?) => {{
        let all = ();
        $(let all = (all, $($name)::+ {});)*
        all
    }};
}

/// The beginning of a list of handlers.
impl Offer for () {
    fn offer(self, server: Builder) -> Builder {
        server
    }
}

impl<A: Offer, B: Offer> Offer for (A, B) {
    fn offer(self, server: Builder) -> Builder {
        server.with(self.0).with(self.1)
    }
}

/// The functions that the generated code of the macros calls.
impl Builder {
    /// Adds the tools, resources, prompts and completions of a value whose type has `#[mcpbolt::tools]`, or of
    /// functions that are listed with [`handlers!`](crate::handlers).
    ///
    /// ```
    /// # #[cfg(feature = "macros")] {
    /// use mcpbolt::prelude::*;
    ///
    /// struct Scale(f64);
    ///
    /// #[tools]
    /// impl Scale {
    ///     /// Scales a number.
    ///     #[tool]
    ///     fn scale(&self, number: f64) -> f64 {
    ///         self.0 * number
    ///     }
    /// }
    ///
    /// let server = Server::builder("scale", "1.0.0").with(Scale(2.0)).build()?;
    /// # }
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn with(self, offer: impl Offer) -> Self {
        offer.offer(self)
    }

    /// Adds the tools, resources, prompts and completions of a type that has `#[mcpbolt::tools]`, with a value
    /// for each session. `make` creates it at the first call that needs it, and it is dropped after the session.
    ///
    /// The session is that of HTTP, and on other transports the connection. Over HTTP, requests of 2026-07-28
    /// have none: each has a value of its own. An inline tool with `&self` runs as other tools do.
    ///
    /// ```
    /// # #[cfg(feature = "macros")] {
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use mcpbolt::prelude::*;
    ///
    /// #[derive(Default)]
    /// struct Visits(AtomicU32);
    ///
    /// #[tools]
    /// impl Visits {
    ///     /// Counts the visits of this session.
    ///     #[tool]
    ///     fn visit(&self) -> u32 {
    ///         self.0.fetch_add(1, Ordering::Relaxed) + 1
    ///     }
    /// }
    ///
    /// let server = Server::builder("visits", "1.0.0").per_session(Visits::default).build()?;
    /// # use mcpbolt::client::{Client, block_on};
    /// # for _ in 0..2 {
    /// #     let client = block_on(Client::builder("me", "1").connect(&server)).unwrap();
    /// #     for count in ["1", "2"] {
    /// #         let visit = client.call_tool("visit", &serde_json::json!({})).wait().unwrap();
    /// #         assert_eq!(visit.text(), count);
    /// #     }
    /// # }
    /// # }
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn per_session<T: Offer + OfferMethods>(
        self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        T::offer_methods(Owner::OfSession(Arc::new(make)), self)
    }

    /// Adds a value for handlers that take a [`State<T>`](crate::server::State). There is one of each type; a
    /// second one replaces the first. [`build`](Self::build) fails if a handler takes a state that is not
    /// there.
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        let states = self.handlers.states.get_or_insert_default();
        Arc::make_mut(states).insert(state);
        self
    }

    /// Adds a tool.
    #[doc(hidden)]
    pub fn declared_tool<F, R>(
        self,
        tool: Tool,
        signature: Signature,
        start: impl Fn(&Received<'_>) -> Result<F, HandlerError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        self.spawned_tool(tool, signature, start, ToolHandler::Spawned)
    }

    /// Adds a tool that blocks its thread.
    #[doc(hidden)]
    pub fn declared_blocking_tool<F, R>(
        self,
        tool: Tool,
        signature: Signature,
        start: impl Fn(&Received<'_>) -> Result<F, HandlerError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        self.spawned_tool(tool, signature, start, ToolHandler::Blocking)
    }

    fn spawned_tool<F, R>(
        mut self,
        tool: Tool,
        mut signature: Signature,
        start: impl Fn(&Received<'_>) -> Result<F, HandlerError> + Send + Sync + 'static,
        handler: fn(Service) -> ToolHandler,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        self.need(&tool.name, &signature);
        let (tool, names) = described(tool, &mut signature);
        let start = Arc::new(start);
        let made: Service = Arc::new(move |call, context| {
            let (start, names) = (start.clone(), names.clone());
            Box::pin(async move {
                let started = {
                    let message = call.message.as_ref();
                    let arguments = message.arguments().unwrap_or("{}");
                    start(&Received::json(&names, arguments, Some(&context)))
                };
                drop((call, context));
                let result = match started {
                    Ok(running) => running.await.into_tool_result(),
                    Err(error) => Err::<(), _>(error).into_tool_result(),
                };
                result.map(Reply::Tool)
            })
        });
        self.add_tool::<R>(tool, handler(made))
    }

    /// Adds a tool that runs on the driver's thread.
    #[doc(hidden)]
    pub fn declared_inline_tool<R: IntoToolResult>(
        self,
        mut tool: Tool,
        mut signature: Signature,
        run: impl Fn(&Received<'_>) -> Result<R, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        if signature.needs().has_session_values() {
            // Only handlers on the spawner know their session.
            let output = tool.output_schema.take();
            tool.output_schema = output.or_else(|| R::output_schema().map(Into::into));
            return self.declared_tool(tool, signature, move |call| {
                let result = run(call).and_then(R::into_tool_result);
                Ok(std::future::ready(result))
            });
        }
        let (tool, names) = described(tool, &mut signature);
        let made = move |arguments: &str| match run(&Received::json(&names, arguments, None)) {
            Ok(result) => result.into_tool_result(),
            Err(error) => Err::<(), _>(error).into_tool_result(),
        };
        self.add_tool::<R>(tool, ToolHandler::inline(Arc::new(made)))
    }

    /// Adds a resource, or a resource template if the URI has variables.
    #[doc(hidden)]
    pub fn declared_resource<F, R>(
        mut self,
        resource: Resource,
        signature: Signature,
        start: impl Fn(&Received<'_>) -> Result<F, HandlerError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoContents,
    {
        self.need(&resource.name, &signature);
        let names = signature.names();
        // A URI that is no template is an error when it is registered.
        let template = resource
            .uri
            .contains('{')
            .then(|| Template::parse(&resource.uri).ok());
        let mime_type = resource.mime_type.clone();
        let start = Arc::new(start);
        let matched = template.clone().flatten();
        let made: Service = Arc::new(move |call, context| {
            let (start, names) = (start.clone(), names.clone());
            let uri = call.message.as_ref().uri().unwrap_or_default().into_owned();
            let variables = matched
                .as_ref()
                .and_then(|template| template.match_uri(&uri));
            let mime_type = mime_type.clone();
            Box::pin(async move {
                let started = {
                    let variables = variables.iter().flatten();
                    let texts = variables.map(|(name, value)| (&**name, &**value));
                    let fault = ErrorKind::ResourceNotFound;
                    start(&Received::texts(&names, texts, &context, fault))
                };
                drop((call, context));
                let mut contents = started?.await.into_contents(&uri)?;
                for contents in &mut contents {
                    contents.mime_type = contents.mime_type.take().or_else(|| mime_type.clone());
                }
                Ok(Reply::Contents(contents))
            })
        });
        let added = match template {
            Some(_) => {
                let added = self.registry.add_template(ResourceTemplate::from(resource));
                added.map(|number| self.handlers.templates.insert(number, made))
            }
            None => {
                let added = self.registry.add_resource(resource);
                added.map(|number| self.handlers.resources.insert(number, made))
            }
        };
        if let Err(error) = added {
            self.fail(error);
        }
        self
    }

    /// Adds a prompt.
    #[doc(hidden)]
    pub fn declared_prompt<F, R>(
        mut self,
        mut prompt: Prompt,
        signature: Signature,
        start: impl Fn(&Received<'_>) -> Result<F, HandlerError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoPrompt,
    {
        self.need(&prompt.name, &signature);
        let names = signature.names();
        prompt.arguments = signature.prompt_arguments();
        let start = Arc::new(start);
        let made: Service = Arc::new(move |call, context| {
            let (start, names) = (start.clone(), names.clone());
            Box::pin(async move {
                let started = {
                    let message = call.message.as_ref();
                    let arguments = message.arguments().unwrap_or("{}");
                    start(&Received::prompt(&names, arguments, &context))
                };
                drop((call, context));
                Ok(Reply::Prompt(started?.await.into_prompt()?))
            })
        });
        match self.registry.add_prompt(prompt) {
            Ok(number) => self.handlers.prompts.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds the completion of one argument. `target` is the name of a prompt or a URI template. If the handler
    /// does not see what the user typed, it returns all values, and those that begin with it are sent.
    #[doc(hidden)]
    pub fn declared_completion<F, R>(
        mut self,
        target: &str,
        argument: &'static str,
        sees_value: bool,
        signature: Signature,
        start: impl Fn(&Received<'_>) -> Result<F, HandlerError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoCompletions,
    {
        self.need(argument, &signature);
        let names = signature.names();
        let start = Arc::new(start);
        let service: Service = Arc::new(move |call, context| {
            let (start, names) = (start.clone(), names.clone());
            Box::pin(async move {
                let params = call.message.as_ref();
                let params = params.params().unwrap_or("{}");
                let profile = context.connection().config().profile;
                let profile = profile.in_revision(context.revision());
                let request =
                    CompletionRequest::parse(params, profile).map_err(HandlerError::new)?;
                let started = {
                    let others = request.context.iter();
                    let others = others.map(|(name, value)| (&**name, &**value));
                    let texts = others.chain([("value", &*request.value)]);
                    let fault = ErrorKind::InvalidParams;
                    start(&Received::texts(&names, texts, &context, fault))
                };
                drop((call, context));
                let mut completions = started?.await.into_completions()?;
                if !sees_value {
                    let typed = request.value.to_lowercase();
                    completions
                        .values
                        .retain(|value| value.to_lowercase().starts_with(&typed));
                }
                Ok(Reply::Completions(completions))
            })
        });
        self.registry.offer_completion();
        let completions = &mut self.handlers.completions;
        completions.retain(|own| *own.target != *target || own.argument != argument);
        completions.push(Completing {
            target: target.into(),
            argument,
            service,
        });
        // For all other arguments, unless the program has a handler for them.
        self.handlers.completion.get_or_insert_with(|| {
            Arc::new(|_, _| {
                let none = Reply::Completions(Completions::default());
                Box::pin(std::future::ready(Ok(none)))
            })
        });
        self
    }

    fn need(&mut self, handler: &str, signature: &Signature) {
        let needs = signature.needs();
        let states = needs.states().iter();
        self.needs
            .extend(states.map(|state| (handler.to_owned(), *state)));
        self.handlers.session_values |= needs.has_session_values();
        if needs.has_head() {
            self.handlers.wants_heads.store(true, Ordering::Relaxed);
        }
    }
}

/// The tool with its input schema, and the names of its parameters.
fn described(mut tool: Tool, signature: &mut Signature) -> (Tool, Arc<[&'static str]>) {
    let names = signature.names();
    tool.input_schema = signature.input_schema().into();
    (tool, names)
}
