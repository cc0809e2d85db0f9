//! Conversion of a handler's return value into a tool result.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::handler::{HandlerError, IntoHandlerError};
use crate::model::object_writer::ObjectWriter;
use crate::model::{Content, Tool, ToolResult};
use crate::schema::Schema;

/// A value that converts to the result of a tool: text, a number, content, structured content, or a
/// [`Result`] of one of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "does not implement `IntoToolResult`",
    note = "a tool returns text, a number, `bool`, `()`, `Content`, `ToolResult`, `Json<T>`, or a `Result` of one of these",
    note = "for `Json<T>`, the type `T` derives `Serialize` and `JsonSchema`: put `#[mcpbolt::data]` on it"
)]
pub trait IntoToolResult {
    /// Converts into a tool result. Failures for the model to read are results, too.
    ///
    /// # Errors
    /// A protocol error to send instead of a result: see [`HandlerError::protocol`].
    fn into_tool_result(self) -> Result<ToolResult, HandlerError>;

    /// The JSON Schema of the structured content, if there is any and its form is known. A tool without an
    /// output schema gets this one.
    fn output_schema() -> Option<String> {
        None
    }
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

/// Structured content, whose type gives the tool its output schema. As the argument of a handler: all
/// parameters in one type.
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

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        let unwritable = |_| ToolResult::error("the tool's result cannot be written as JSON");
        Ok(ToolResult::structured(&self.0).unwrap_or_else(unwritable))
    }

    fn output_schema() -> Option<String> {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let settings = settings.with(|settings| settings.meta_schema = None);
        let schema = settings.into_generator().into_root_schema_for::<T>();
        // Any JSON.
        let is_known = schema.as_object().is_some_and(|members| {
            members
                .keys()
                .any(|keyword| keyword != "title" && keyword != "description")
        });
        is_known.then(|| schema.to_value().to_string())
    }
}

macro_rules! written_as_text {
    ($($type:ty)+) => {$(
        impl IntoToolResult for $type {
            fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
                Ok(ToolResult::text(self.to_string()))
            }
        }
    )+};
}

written_as_text!(bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

/// The error may be a [`HandlerError`], any [`Error`](std::error::Error), a text, or an error of a crate such as anyhow.
impl<T: IntoToolResult, E: IntoHandlerError> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<String> {
        T::output_schema()
    }

    fn into_tool_result(self) -> Result<ToolResult, HandlerError> {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => match error.into_handler_error() {
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
