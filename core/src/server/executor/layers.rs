//! Layers around the handlers of tools: each sees a call before its handler and the reply after it.

use std::sync::Arc;

use super::reply::{Replied, Service};
use crate::connection::Call;
use crate::message::MessageRef;
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

/// A call of a tool on its way to the handler.
pub(in crate::server) struct ToolCall {
    pub registry: Arc<Registry>,
    /// The tool's number.
    pub number: u32,
    pub call: Call,
    pub context: Context,
}

/// Runs around the handlers of some tools.
#[derive(Clone)]
pub(in crate::server) struct Layer {
    pub tools: ToolSet,
    /// Takes a call and the service that is next: a further layer or the handler.
    pub run: Arc<dyn Fn(ToolCall, Service) -> Replied + Send + Sync>,
}

impl Layer {
    /// Puts this layer around a service.
    pub fn around(&self, next: Service, registry: &Arc<Registry>, number: u32) -> Service {
        let (run, registry) = (self.run.clone(), registry.clone());
        Arc::new(move |call, context| {
            let call = ToolCall {
                registry: registry.clone(),
                number,
                call,
                context,
            };
            run(call, next.clone())
        })
    }
}
