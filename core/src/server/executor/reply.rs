//! The reply of a handler, and the form that all handlers have: a call in, a reply out.

use std::sync::Arc;

use crate::connection::{Call, ResultWriter};
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::model::{Completions, PromptResult, ResourceContents, ToolResult, write_contents};
use crate::server::call::Context;

/// The reply of a handler, by the kind of handler. A [layer](crate::server::Builder::layer) may change it
/// before it is encoded, or reply itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The result of a tool, failures for the model to read included.
    Tool(ToolResult),
    /// The contents of a resource.
    Contents(Vec<ResourceContents>),
    /// A rendered prompt.
    Prompt(PromptResult),
    /// The values that an argument may take.
    Completions(Completions),
    /// The result of an extension's method, a raw JSON object.
    Object(String),
}

impl From<ToolResult> for Reply {
    fn from(result: ToolResult) -> Self {
        Self::Tool(result)
    }
}

impl From<Vec<ResourceContents>> for Reply {
    fn from(contents: Vec<ResourceContents>) -> Self {
        Self::Contents(contents)
    }
}

impl From<PromptResult> for Reply {
    fn from(prompt: PromptResult) -> Self {
        Self::Prompt(prompt)
    }
}

impl From<Completions> for Reply {
    fn from(completions: Completions) -> Self {
        Self::Completions(completions)
    }
}

impl Reply {
    /// Whether a tool failed.
    pub fn is_tool_error(&self) -> bool {
        matches!(self, Self::Tool(result) if result.is_error)
    }

    /// Writes the members of the result.
    pub(super) fn write(&self, result: &mut ResultWriter<'_>) {
        match self {
            Self::Tool(tool) => tool.write(result),
            Self::Contents(contents) => write_contents(contents, result),
            Self::Prompt(prompt) => prompt.write(result),
            Self::Completions(completions) => completions.write(result),
            Self::Object(object) => result.object(object),
        }
    }
}

/// The future of a reply. An error is a protocol error.
pub(in crate::server) type Replied = Made<Result<Reply, HandlerError>>;

/// A handler.
pub(in crate::server) type Service = Arc<dyn Fn(Call, Context) -> Replied + Send + Sync>;

/// The result of a panicked handler, without the panic's text.
pub(super) fn panicked() -> ToolResult {
    ToolResult::error("the tool failed unexpectedly")
}
