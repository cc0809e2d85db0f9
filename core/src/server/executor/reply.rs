//! The reply of a handler, and the form that all handlers have: a call in, a reply out.

use std::sync::Arc;

use crate::connection::{Call, ResultWriter};
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::model::{Completions, PromptResult, ResourceContents, ToolResult, write_contents};
use crate::server::call::Context;

/// The reply of a handler, by kind of handler.
pub(in crate::server) enum Reply {
    Tool(ToolResult),
    Contents(Vec<ResourceContents>),
    Prompt(PromptResult),
    Completions(Completions),
    /// The result of an extension's method, a JSON object.
    Object(String),
}

impl Reply {
    /// Writes the members of the result.
    pub fn write(&self, result: &mut ResultWriter<'_>) {
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
