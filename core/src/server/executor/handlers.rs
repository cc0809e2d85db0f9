//! The program's handlers, keyed by the registry's number of each tool, resource and so on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::layers::Layer;
use super::reply::{Reply, Service};
use crate::connection::{Handle, Operation};
use crate::handler::HandlerError;
use crate::json::reader;
use crate::message::MessageRef;
use crate::model::ToolResult;
use crate::server::extract::States;
use crate::server::registry::Registry;
use crate::server::slots::Slots;

pub(in crate::server) type Hook = Arc<dyn Fn(&Handle) + Send + Sync>;
pub(in crate::server) type Notice = Arc<dyn Fn(&str, &Handle) + Send + Sync>;
pub(in crate::server) type InlineTool =
    Arc<dyn Fn(&str) -> Result<ToolResult, HandlerError> + Send + Sync>;

/// The handler of a tool.
#[derive(Clone)]
pub(in crate::server) enum ToolHandler {
    /// Runs on the spawner.
    Spawned(Service),
    /// Runs on the spawner, and blocks its thread.
    Blocking(Service),
    /// Runs on the driver's thread; as a service where a layer runs around it.
    Inline(InlineTool, Service),
}

impl ToolHandler {
    pub fn inline(handler: InlineTool) -> Self {
        let own = handler.clone();
        let service: Service = Arc::new(move |call, _| {
            let result = own(call.message.as_ref().arguments().unwrap_or("{}"));
            Box::pin(std::future::ready(result.map(Reply::Tool)))
        });
        Self::Inline(handler, service)
    }
}

/// Completes one argument of a prompt or a resource template.
#[derive(Clone)]
pub(in crate::server) struct Completing {
    /// The name of the prompt, or the URI template.
    pub target: Arc<str>,
    pub argument: &'static str,
    pub service: Service,
}

impl Completing {
    /// Returns whether the params of `completion/complete` name this argument.
    fn completes(&self, params: &str) -> bool {
        let names = |path: &[&str], name: &str| {
            let raw = reader::find_path(params, path);
            raw.and_then(reader::as_str)
                .is_some_and(|text| text == name)
        };
        let is_target = ["name", "uri"]
            .iter()
            .any(|key| names(&["ref", key], &self.target));
        is_target && names(&["argument", "name"], self.argument)
    }
}

#[derive(Clone, Default)]
pub(in crate::server) struct Handlers {
    pub initialized: Option<Hook>,
    pub roots_changed: Option<Hook>,
    pub closed: Option<Hook>,
    /// The layers around handlers, the outermost first.
    pub layers: Vec<Layer>,
    pub tools: Slots<ToolHandler>,
    /// The numbers of the tools that block their thread.
    pub blocking: Vec<u32>,
    pub resources: Slots<Service>,
    pub templates: Slots<Service>,
    pub prompts: Slots<Service>,
    /// Completes the arguments that have no handler of their own.
    pub completion: Option<Service>,
    /// Handlers that complete one argument each.
    pub completions: Vec<Completing>,
    /// The values that handlers share, if there are any.
    pub states: Option<Arc<States>>,
    /// Whether one of the handlers needs a value of the session.
    pub session_values: bool,
    /// Whether one of the handlers takes the heads of HTTP requests.
    pub wants_heads: Arc<AtomicBool>,
    /// Methods of extensions.
    pub methods: Slots<Service>,
    pub notices: BTreeMap<String, Notice>,
}

impl Handlers {
    /// Returns the handler of an operation, if it still exists.
    pub fn service(&self, operation: Operation, message: &MessageRef<'_>) -> Option<&Service> {
        match operation {
            Operation::CallTool(number) => match self.tools.get(number)? {
                ToolHandler::Spawned(service)
                | ToolHandler::Blocking(service)
                | ToolHandler::Inline(_, service) => Some(service),
            },
            Operation::ReadResource(number) => self.resources.get(number),
            Operation::ReadTemplate(number) => self.templates.get(number),
            Operation::GetPrompt(number) => self.prompts.get(number),
            Operation::Complete => {
                let mut own = self.completions.iter();
                let own = own.find(|own| own.completes(message.params().unwrap_or("{}")));
                own.map(|own| &own.service).or(self.completion.as_ref())
            }
            Operation::Extension(number) => self.methods.get(number),
            // The host keeps these to itself.
            Operation::Listen
            | Operation::AwaitTask
            | Operation::ServeBatch
            | Operation::AwaitAdmission
            | Operation::Own(_) => None,
        }
    }

    /// The layers around the handler of this request, the outermost first.
    pub fn layers_of<'a>(
        &'a self,
        operation: Operation,
        message: &'a MessageRef<'a>,
    ) -> impl DoubleEndedIterator<Item = &'a Layer> {
        let covers = move |layer: &&Layer| layer.coverage.covers(operation, message);
        self.layers.iter().filter(covers)
    }

    /// Sets the handler of a tool.
    pub fn insert_tool(&mut self, number: u32, handler: ToolHandler) {
        if matches!(handler, ToolHandler::Blocking(_)) {
            self.blocking.push(number);
        }
        self.tools.insert(number, handler);
    }

    /// Drops the handlers of everything that `registry` no longer offers.
    pub fn retain(&mut self, registry: &Registry) {
        self.tools.retain(|n| registry.has(Operation::CallTool(n)));
        self.blocking
            .retain(|n| registry.has(Operation::CallTool(*n)));
        self.resources
            .retain(|n| registry.has(Operation::ReadResource(n)));
        self.templates
            .retain(|n| registry.has(Operation::ReadTemplate(n)));
        self.prompts
            .retain(|n| registry.has(Operation::GetPrompt(n)));
    }
}
