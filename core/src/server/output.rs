//! What a tool may give back.

use std::fmt;

use serde::Serialize;

use super::content::{Content, ToolResult};
use crate::mcp::ErrorKind;

/// Anything that is the result of a tool: text, content, structured content, or a [`Result`] of
/// one of them.
pub trait IntoToolResult {
    /// As a tool's result.
    fn into_tool_result(self) -> ToolResult;
}

/// A failure that a handler reports; its text goes to the client. Any other failure (a panic) is
/// told without its text.
///
/// Every [`std::error::Error`] is one, so that `?` works in handlers that return
/// `Result<_, HandlerError>`. That of a tool is a result for the model to read; that of a
/// resource, a prompt or a completion is an error of the protocol, which has kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    pub(super) kind: ErrorKind,
    text: String,
}

impl HandlerError {
    /// A failure of that text.
    pub fn new(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::Internal, text)
    }

    /// What was asked for does not exist, for example a resource that matches a template.
    pub fn not_found(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::ResourceNotFound, text)
    }

    /// The arguments are wrong.
    pub fn invalid(text: impl fmt::Display) -> Self {
        Self::of(ErrorKind::InvalidParams, text)
    }

    fn of(kind: ErrorKind, text: impl fmt::Display) -> Self {
        let text = text.to_string();
        Self { kind, text }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// Structured content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Json<T>(pub T);

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> ToolResult {
        self
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::default()
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::text(self)
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::text(self)
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> ToolResult {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> ToolResult {
        ToolResult {
            content: self,
            ..ToolResult::default()
        }
    }
}

impl<T: Serialize> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> ToolResult {
        ToolResult::structured(&self.0)
            .unwrap_or_else(|_| ToolResult::error("the tool's result cannot be written as JSON"))
    }
}

impl<T: IntoToolResult, E: Into<HandlerError>> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> ToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => ToolResult::error(error.into().text),
        }
    }
}
