//! Conversion of a handler's return value into a tool result.

use std::sync::Arc;

use serde::Serialize;

use crate::handler::HandlerError;
use crate::model::object_writer::ObjectWriter;
use crate::model::{Content, Tool, ToolResult};
use crate::schema::Schema;

/// A value that converts to the result of a tool: text, content, structured content, or a
/// [`Result`] of one of them.
pub trait IntoToolResult {
    /// Converts into a tool result. Failures for the model to read are results, too.
    ///
    /// # Errors
    /// A protocol error to send instead of a result: see [`HandlerError::protocol`].
    fn into_tool_result(self) -> Result<ToolResult, HandlerError>;
}

/// The output schema of a tool, if it has one.
#[derive(Clone)]
pub(super) struct Output(Option<Arc<Schema>>);

impl Output {
    /// The output schema of `tool`. An invalid schema is ignored: the registry refuses the tool for
    /// it.
    pub fn of(tool: &Tool) -> Self {
        let schema = tool.output_schema.as_deref();
        Self(schema.and_then(|schema| Schema::new(schema).ok().map(Arc::new)))
    }

    /// Returns whether the result is no failure and fits the output schema.
    pub fn is_good(&self, result: &Result<ToolResult, HandlerError>) -> bool {
        let Some(result) = result.as_ref().ok().filter(|result| !result.is_error) else {
            return false;
        };
        let fits = |schema: &Arc<Schema>| {
            let json = result.structured.as_deref();
            json.is_some_and(|json| schema.check(json).is_ok())
        };
        self.0.as_ref().is_none_or(fits)
    }
}

/// Structured content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Json<T>(pub T);

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        Ok(self)
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        Ok(ToolResult::default())
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        Ok(ToolResult {
            content: self,
            ..ToolResult::default()
        })
    }
}

impl<T: Serialize> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        let unwritable = |_| ToolResult::error("the tool's result cannot be written as JSON");
        Ok(ToolResult::structured(&self.0).unwrap_or_else(unwritable))
    }
}

impl<T: IntoToolResult, E: Into<HandlerError>> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => match error.into() {
                error if error.is_of_protocol() => Err(error),
                error => Ok(ToolResult {
                    structured: typed(&error),
                    ..ToolResult::error(error.to_string())
                }),
            },
        }
    }
}

/// The JSON form of an action dialect error, for clients that read more than its text.
fn typed(error: &HandlerError) -> Option<String> {
    let mut out = b"{\"error\":".to_vec();
    let mut object = ObjectWriter::begin(&mut out);
    object.string("type", error.action_type()?);
    object.string("message", &error.to_string());
    object.raw("details", error.data());
    let code = error.action_code().map(|code| code.to_string());
    object.raw("code", code.as_deref());
    object.optional("help_url", error.help_url());
    object.end();
    out.push(b'}');
    String::from_utf8(out).ok()
}
