//! Checks of tool arguments and results against their schemas.

use super::Registry;
use crate::mcp::header::HeaderParam;
use crate::schema::{Misfit, Schema};
use crate::server::content::ToolResult;

/// The compiled schemas of a tool.
#[derive(Debug)]
pub(super) struct Schemas {
    pub input: Schema,
    pub output: Option<Schema>,
    /// The arguments that are also sent as HTTP headers.
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only HTTP has headers")
    )]
    pub headers: Vec<HeaderParam>,
}

impl Registry {
    /// The arguments of a tool that are also sent as HTTP headers (2026-07-28).
    #[cfg(feature = "http")]
    pub(crate) fn header_params(&self, number: u32) -> &[HeaderParam] {
        let tool = self.tools.get(number);
        tool.map_or(&[], |(_, schemas)| &schemas.headers)
    }

    /// Checks the arguments of a call, a validated JSON text, against the tool's input schema
    /// (R-TOL-03).
    ///
    /// # Errors
    /// A sentence for the caller that says what is wrong.
    pub fn check_arguments(&self, number: u32, arguments: &str) -> Result<(), String> {
        let Some((tool, schemas)) = self.tools.get(number) else {
            return Ok(());
        };
        schemas.input.check(arguments).map_err(|why| {
            let name = quoted(&tool.name);
            format!("invalid arguments for tool {name}: {why}")
        })
    }

    /// Checks like [`check_arguments`](Self::check_arguments) but returns the parts of the finding;
    /// `None` if the arguments fit (R-ACT-07).
    pub(in crate::server) fn misfit(&self, number: u32, arguments: &str) -> Option<Misfit> {
        let (_, schemas) = self.tools.get(number)?;
        schemas.input.misfit(arguments)
    }

    /// Checks a tool's result against its output schema, if it has one. Results that are errors are
    /// not checked (R-STR-01, R-STR-07).
    ///
    /// # Errors
    /// A sentence for the tool's author that says what is wrong.
    pub fn check_result(&self, number: u32, result: &ToolResult) -> Result<(), String> {
        let Some((tool, schemas)) = self.tools.get(number) else {
            return Ok(());
        };
        let Some(schema) = &schemas.output else {
            return Ok(());
        };
        let verdict = match &result.structured {
            _ if result.is_error || result.refusal.is_some() => Ok(()),
            Some(json) => schema.check(json),
            None => Err("there is no structured content".to_owned()),
        };
        verdict.map_err(|why| {
            let name = quoted(&tool.name);
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
