//! The program's handlers, keyed by the registry's number of each tool, resource and so on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::approval::{Approval, Marked};
use super::completion::Completions;
use super::content::{PromptResult, ResourceContents, ToolResult};
use super::context::Context;
use super::numbered::Numbered;
use super::registry::Registry;
use super::sanitise::Sanitiser;
use crate::connection::{Call, Handle, Operation};
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::message::MessageRef;

pub(super) type Hook = Arc<dyn Fn(&Handle) + Send + Sync>;
pub(super) type Notice = Arc<dyn Fn(&str, &Handle) + Send + Sync>;
pub(super) type Handler<T> = Arc<dyn Fn(Call, Context) -> Made<T> + Send + Sync>;
pub(super) type InlineTool = Arc<dyn Fn(&str) -> ToolResult + Send + Sync>;

#[derive(Clone)]
pub(super) enum ToolHandler {
    Spawned(Handler<ToolResult>),
    Inline(InlineTool),
}

impl ToolHandler {
    pub fn call(&self, call: Call, context: Context) -> Made<ToolResult> {
        match self {
            Self::Spawned(handler) => handler(call, context),
            Self::Inline(handler) => {
                let result = handler(call.message.as_ref().arguments().unwrap_or("{}"));
                Box::pin(std::future::ready(result))
            }
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Handlers {
    pub initialized: Option<Hook>,
    pub roots_changed: Option<Hook>,
    pub closed: Option<Hook>,
    pub approval: Option<Approval>,
    pub sanitiser: Option<Sanitiser>,
    pub tools: Numbered<ToolHandler>,
    pub resources: Numbered<Handler<Result<Vec<ResourceContents>, HandlerError>>>,
    pub templates: Numbered<Handler<Result<Vec<ResourceContents>, HandlerError>>>,
    pub prompts: Numbered<Handler<Result<PromptResult, HandlerError>>>,
    pub completion: Option<Handler<Result<Completions, HandlerError>>>,
    /// Handlers of extension methods; each returns a JSON object.
    pub methods: Numbered<Handler<Result<String, HandlerError>>>,
    pub notices: BTreeMap<String, Notice>,
}

impl Handlers {
    /// Returns whether an approval or sanitiser runs before the handler of this call.
    pub(super) fn looks_at(&self, message: &MessageRef<'_>) -> bool {
        self.marked().any(|tools| tools.covers(message))
    }

    /// The tool names that the approval and the sanitiser apply to.
    pub(super) fn marked(&self) -> impl Iterator<Item = &Marked> {
        let approval = self.approval.as_ref().map(|approval| &approval.tools);
        let sanitiser = self.sanitiser.as_ref().map(|sanitiser| &sanitiser.tools);
        approval.into_iter().chain(sanitiser)
    }

    /// Drops the handlers of everything that `registry` no longer offers.
    pub(super) fn follow(&mut self, registry: &Registry) {
        self.tools.retain(|n| registry.has(Operation::CallTool(n)));
        self.resources
            .retain(|n| registry.has(Operation::ReadResource(n)));
        self.templates
            .retain(|n| registry.has(Operation::ReadTemplate(n)));
        self.prompts
            .retain(|n| registry.has(Operation::GetPrompt(n)));
    }
}
