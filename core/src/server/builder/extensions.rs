//! Additions to the protocol: methods and notifications of extensions, and the access guard.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;

use super::Builder;
use crate::connection::Handle;
use crate::handler::HandlerError;
use crate::server::access::Access;
use crate::server::arguments::FromArguments;
use crate::server::call::Context;
use crate::server::executor::{Reply, Service};

impl Builder {
    /// Adds a method of an [extension](Self::extension) that was declared before. Clients that
    /// declared the extension may call it (2026-07-28); other clients get an error that names the
    /// extension to declare. The handler takes the params and returns a value that serializes to a
    /// JSON object.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Context, HandlerError, Server, serde_json::json};
    ///
    /// let server = Server::builder("search", "1.0.0")
    ///     .extension("com.example/ranking", "{}")
    ///     .extension_method("com.example/ranking", "ranking/explain", |_: Arguments, _: Context| async {
    ///         Ok::<_, HandlerError>(json!({"because": "it was clicked most"}))
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn extension_method<P, F, R>(
        mut self,
        extension: &str,
        method: &str,
        handler: impl Fn(P, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        P: FromArguments,
        F: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Serialize,
    {
        let handler = Arc::new(handler);
        let made: Service = Arc::new(move |call, context| {
            let handler = handler.clone();
            Box::pin(async move {
                let params = P::from_arguments(call.message.as_ref().params().unwrap_or("{}"));
                drop(call);
                let given = handler(params.map_err(HandlerError::invalid)?, context).await?;
                let json = serde_json::to_string(&given)?;
                match json.starts_with('{') {
                    true => Ok(Reply::Object(json)),
                    false => Err(HandlerError::new(
                        "the result of a method must be a JSON object",
                    )),
                }
            })
        });
        match self.registry.add_method(extension, method) {
            Ok(number) => self.handlers.methods.insert(number, made),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Calls `hook` with the params, a raw JSON object, of each notification with this extension
    /// method. Runs on the driver's thread; must not block.
    pub fn on_extension_notice(
        mut self,
        method: &str,
        hook: impl Fn(&str, &Handle) + Send + Sync + 'static,
    ) -> Self {
        let notices = &mut self.handlers.notices;
        notices.insert(method.to_owned(), Arc::new(hook));
        self
    }

    /// Calls `guard` before every tool call, resource read, prompt, completion and subscription is
    /// served, whatever lists and caches showed before (R-TOL-03, R-RES-13, R-CCH-10). Methods of
    /// extensions are not guarded; their handlers check
    /// [`Context::principal`](crate::server::Context::principal) themselves. Runs on the driver's thread;
    /// must not block. If the guard panics, the access is refused.
    ///
    /// ```
    /// use mcpbolt::mcp::{ErrorKind, Method};
    /// use mcpbolt::server::{HandlerError, Server};
    ///
    /// let server = Server::builder("files", "1.0.0")
    ///     .guard(|access| match (access.method, access.principal) {
    ///         (Method::CallTool, None) => {
    ///             Err(HandlerError::protocol(ErrorKind::InvalidRequest, "only for who is known"))
    ///         }
    ///         _ => Ok(()),
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn guard(
        mut self,
        guard: impl Fn(&Access<'_>) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.registry.set_guard(guard);
        self
    }

    /// Declares the tools capability even while the server has no tools.
    pub fn offer_tools(mut self) -> Self {
        self.registry.offer_tools();
        self
    }

    /// Declares the resources capability even while the server has none, for tools that embed
    /// resources in their results (R-TOL-13).
    pub fn offer_resources(mut self) -> Self {
        self.registry.offer_resources();
        self
    }
}
