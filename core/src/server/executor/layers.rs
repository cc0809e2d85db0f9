//! Layers around the handlers of tools: each sees a call before its handler and the result after it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::reply::{Replied, Reply, Service};
use crate::connection::Call;
use crate::handler::HandlerError;
use crate::json;
use crate::limits::Limits;
use crate::message::MessageRef;
use crate::model::ToolResult;
use crate::server::call::Context;
use crate::server::registry::Registry;

/// A set of tool names; `*` stands for all tools.
#[derive(Clone)]
pub(in crate::server) struct ToolSet(Arc<[String]>);

impl ToolSet {
    pub fn new(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(tools.into_iter().map(Into::into).collect())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether the request names one of these tools.
    pub fn covers(&self, message: &MessageRef<'_>) -> bool {
        let is_one = |name: &str| self.names().any(|own| own == name || own == "*");
        message.name().is_some_and(|name| is_one(&name))
    }
}

/// A call of a tool on its way to the handler, as a [layer](crate::server::Builder::layer) sees it. Cheap to
/// clone: a layer may run the handler more than once.
#[derive(Clone)]
pub struct ToolCall {
    registry: Arc<Registry>,
    /// The tool's number.
    number: u32,
    call: Call,
    context: Context,
    /// The rest of the way, while the call is in a stack of `tower` services.
    #[cfg(feature = "tower")]
    pub(in crate::server) rest: Option<Next>,
}

impl ToolCall {
    /// The name of the tool.
    pub fn tool(&self) -> &str {
        let tool = self.registry.tool_at(self.number);
        tool.map_or("", |tool| &tool.name)
    }

    /// The method of the request: `tools/call`, or the name of the action in the
    /// [action dialect](crate::action).
    pub fn method(&self) -> Cow<'_, str> {
        self.call.message.as_ref().method().unwrap_or_default()
    }

    /// The arguments: a JSON object that fits the tool's schema.
    pub fn arguments(&self) -> &str {
        self.call.message.as_ref().arguments().unwrap_or("{}")
    }

    /// Parses the arguments, for example into a [`serde_json::Value`].
    ///
    /// # Errors
    /// When the arguments do not fit the type.
    pub fn parse_arguments<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        let parsed = serde_json::from_str(self.arguments());
        parsed.map_err(|why| HandlerError::invalid(format!("invalid arguments: {why}")))
    }

    /// Replaces the arguments with a value that serializes to a JSON object.
    ///
    /// # Errors
    /// When the value is no JSON object or does not fit the tool's schema. The arguments then stay as they
    /// were.
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
        let verdict = self.registry.check_arguments(self.number, json);
        verdict.map_err(|why| HandlerError::typed("VALIDATION_ERROR", why))?;
        self.context = self.context.with_message(message.clone());
        self.call.message = message;
        Ok(())
    }

    /// The context that the handler gets: the caller, progress, cancellation, questions to the client.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("tool", &self.tool())
            .finish_non_exhaustive()
    }
}

/// The rest of a call's way: the [layers](crate::server::Builder::layer) further in, and the handler.
#[derive(Clone)]
pub struct Next(Service);

impl Next {
    /// Runs the rest. Dropping the future ends the handler at its current `await`.
    ///
    /// # Errors
    /// A protocol error. Failures for the model to read are results.
    pub async fn run(&self, call: ToolCall) -> Result<ToolResult, HandlerError> {
        match (self.0)(call.call, call.context).await? {
            Reply::Tool(result) => Ok(result),
            _ => Err(HandlerError::new("the tool gave no tool result")),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").finish_non_exhaustive()
    }
}

/// The place of a layer. The outermost comes first; layers in one place run in the order of registration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::server) enum Place {
    /// Sanitises arguments before anything else sees them.
    Sanitiser,
    /// Any other layer.
    Around,
    /// Asks for approval: what is approved is what runs.
    Approval,
}

/// Runs around the handlers of some tools.
#[derive(Clone)]
pub(in crate::server) struct Layer {
    pub place: Place,
    pub tools: ToolSet,
    pub run: Arc<dyn Fn(ToolCall, Next) -> Replied + Send + Sync>,
}

impl Layer {
    /// Puts this layer around a service.
    pub fn around(&self, next: Service, registry: &Arc<Registry>, number: u32) -> Service {
        let (run, registry, next) = (self.run.clone(), registry.clone(), Next(next));
        Arc::new(move |call, context| {
            let call = ToolCall {
                registry: registry.clone(),
                number,
                call,
                context,
                #[cfg(feature = "tower")]
                rest: None,
            };
            run(call, next.clone())
        })
    }
}
