//! A call on its way through layers to its handler.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::reply::{Reply, Service};
use crate::connection::{Call, Operation};
use crate::handler::{Extensions, HandlerError};
use crate::json;
use crate::json::reader;
use crate::limits::Limits;
use crate::server::call::Context;
use crate::server::lookup::check_prompt_arguments;
use crate::server::registry::Registry;

/// A call on its way to its handler, as a [layer](crate::server::Builder::layer) sees it: a call of a tool, a
/// prompt, a resource, a completion or a method of an extension. Cheap to clone: a layer may run the handler
/// more than once.
#[derive(Clone)]
pub struct HandlerCall {
    pub(super) registry: Arc<Registry>,
    pub(super) call: Call,
    pub(super) context: Context,
    /// The rest of the way, while the call is in a stack of `tower` services.
    #[cfg(feature = "tower")]
    pub(in crate::server) rest: Option<Next>,
}

impl HandlerCall {
    /// The method of the request, such as `tools/call`; in the [action dialect](crate::action) the name of the
    /// action.
    pub fn method(&self) -> Cow<'_, str> {
        self.call.message.as_ref().method().unwrap_or_default()
    }

    /// The name of the tool or the prompt, or the URI of the resource. Of a completion, the prompt or the URI
    /// template; empty for methods of extensions.
    pub fn name(&self) -> Cow<'_, str> {
        let message = self.call.message.as_ref();
        let name = match self.call.operation {
            Operation::CallTool(number) => {
                let tool = self.registry.tool_at(number);
                tool.map(|tool| tool.name.as_str().into())
            }
            Operation::ReadResource(_) | Operation::ReadTemplate(_) => message.uri(),
            Operation::Complete => {
                let params = message.params().unwrap_or("{}");
                let named = |member| reader::find_path(params, &["ref", member]);
                let name = named("name").or_else(|| named("uri"));
                name.and_then(reader::as_str)
            }
            _ => message.name(),
        };
        name.unwrap_or_default()
    }

    /// Whether this is a call of a tool.
    pub fn is_tool(&self) -> bool {
        matches!(self.call.operation, Operation::CallTool(_))
    }

    /// The arguments of a tool or a prompt, checked against what it declares; the params of any other request.
    /// A raw JSON object.
    pub fn arguments(&self) -> &str {
        let message = self.call.message.as_ref();
        let arguments = match self.call.operation {
            Operation::CallTool(_) | Operation::GetPrompt(_) => message.arguments(),
            _ => message.params(),
        };
        arguments.unwrap_or("{}")
    }

    /// Parses the arguments, for example into a [`serde_json::Value`].
    ///
    /// # Errors
    /// When the arguments do not fit the type.
    pub fn parse_arguments<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        let parsed = serde_json::from_str(self.arguments());
        parsed.map_err(|why| HandlerError::invalid(format!("invalid arguments: {why}")))
    }

    /// Replaces the arguments of a tool or a prompt with a value that serializes to a JSON object.
    ///
    /// # Errors
    /// When the value is no JSON object, or does not fit the tool's schema or what the prompt declares, or when
    /// the request is another one. The arguments then stay as they were.
    pub fn set_arguments(&mut self, arguments: &impl Serialize) -> Result<(), HandlerError> {
        self.set_raw_arguments(&serde_json::to_string(arguments)?)
    }

    pub(in crate::server) fn set_raw_arguments(&mut self, json: &str) -> Result<(), HandlerError> {
        let depth = Limits::STDIO.max_depth;
        let is_object = json.starts_with('{') && json::validate(json.as_bytes(), depth).is_ok();
        let message = is_object.then(|| self.call.message.with_arguments(json));
        let Some(message) = message.flatten() else {
            return Err(HandlerError::new("the new arguments are not a JSON object"));
        };
        let verdict = match self.call.operation {
            Operation::CallTool(number) => self.registry.check_arguments(number, json),
            Operation::GetPrompt(number) => {
                let prompt = self.registry.prompt_at(number);
                prompt.map_or(Ok(()), |prompt| check_prompt_arguments(prompt, json))
            }
            _ => Err("only tools and prompts have arguments".to_owned()),
        };
        verdict.map_err(|why| HandlerError::typed("VALIDATION_ERROR", why))?;
        self.context = self.context.with_message(message.clone());
        self.call.message = message;
        Ok(())
    }

    /// The context that the handler gets: the caller, progress, cancellation, questions to the client.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The values beside the call. What a layer inserts, the layers further in and the handler find: see
    /// [`Extension`](crate::server::Extension).
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        self.context.extensions_mut()
    }
}

impl fmt::Debug for HandlerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerCall")
            .field("method", &self.method())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// The rest of a call's way: the [layers](crate::server::Builder::layer) further in, and the handler.
#[derive(Clone)]
pub struct Next(pub(super) Service);

impl Next {
    /// Runs the rest. Dropping the future ends the handler at its current `await`.
    ///
    /// # Errors
    /// A protocol error. Failures of tools, for the model to read, are replies.
    pub async fn run(&self, call: HandlerCall) -> Result<Reply, HandlerError> {
        (self.0)(call.call, call.context).await
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}
