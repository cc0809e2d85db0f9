//! A registered tool with its compiled schemas, which check arguments and results.

use super::error::RegistryError;
use crate::mcp::header::HeaderParam;
use crate::model::{Tool, ToolResult};
use crate::schema::{Misfit, Schema};

/// A tool and its compiled schemas.
#[derive(Debug)]
pub(in crate::server) struct ToolEntry {
    pub tool: Tool,
    input: Schema,
    output: Option<Schema>,
    /// The arguments that are also sent as HTTP headers.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only HTTP has headers")
    )]
    pub headers: Vec<HeaderParam>,
}

impl ToolEntry {
    /// # Errors
    /// When a schema is not valid (R-SCH-11), a JSON member is malformed, or a GET may run the tool
    /// but it is not read-only.
    pub fn new(tool: Tool) -> Result<Self, RegistryError> {
        let invalid = |error| RegistryError::Schema(tool.name.clone(), error);
        let input = Schema::input(&tool.input_schema).map_err(invalid)?;
        if let Some(member) = tool.fault() {
            return Err(RegistryError::Json(tool.name, member));
        }
        if tool.on_get && !tool.is_read_only() {
            return Err(RegistryError::NotReadOnly(tool.name));
        }
        let headers = match tool.header_params() {
            Ok(headers) => headers,
            Err(fault) => return Err(RegistryError::Header(tool.name, fault)),
        };
        let output = tool.output_schema.as_deref().map(Schema::new);
        let output = output.transpose().map_err(invalid)?;
        Ok(Self {
            tool,
            input,
            output,
            headers,
        })
    }

    /// Checks the arguments of a call, a validated JSON text (R-TOL-03).
    ///
    /// # Errors
    /// A sentence for the caller that says what is wrong.
    pub fn check_arguments(&self, arguments: &str) -> Result<(), String> {
        self.input.check(arguments).map_err(|why| {
            let name = quoted(&self.tool.name);
            format!("invalid arguments for tool {name}: {why}")
        })
    }

    /// Checks arguments like [`check_arguments`](Self::check_arguments) but returns the parts of the
    /// finding; `None` if the arguments fit (R-ACT-07).
    pub fn misfit(&self, arguments: &str) -> Option<Misfit> {
        self.input.misfit(arguments)
    }

    /// Checks a result against the output schema, if there is one. Results that are errors are not
    /// checked (R-STR-01, R-STR-07).
    ///
    /// # Errors
    /// A sentence for the tool's author that says what is wrong.
    pub fn check_result(&self, result: &ToolResult) -> Result<(), String> {
        let Some(schema) = self.output.as_ref().filter(|_| !result.is_error) else {
            return Ok(());
        };
        let verdict = match &result.structured {
            Some(json) => schema.check(json),
            None => Err("there is no structured content".to_owned()),
        };
        verdict.map_err(|why| {
            let name = quoted(&self.tool.name);
            format!("the result of tool {name} does not fit its output schema: {why}")
        })
    }
}

/// Quotes a name sent by the peer for use in a message, cut to 100 characters.
pub(in crate::server) fn quoted(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((end, _)) => format!("\"{}…\"", &name[..end]),
        None => format!("\"{name}\""),
    }
}
