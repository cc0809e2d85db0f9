//! Output schemas, to check results against (R-STR-02), and task support of the tools that were
//! listed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::TaskSupport;
use crate::message::Message;
use crate::model::Tool;
use crate::schema::{InvalidSchema, Schema};

/// Shared by the clones of a client. Holds the last list only.
#[derive(Debug, Default)]
pub(super) struct KnownTools {
    tools: Mutex<HashMap<String, KnownTool>>,
}

#[derive(Debug)]
struct KnownTool {
    schema: Option<Arc<OutputSchema>>,
    support: TaskSupport,
}

/// An output schema, compiled on the first call of its tool.
#[derive(Debug)]
pub(super) struct OutputSchema {
    tool: String,
    json: String,
    compiled: OnceLock<Result<Schema, InvalidSchema>>,
}

impl KnownTools {
    /// Replaces everything with a new list.
    pub fn learn(&self, tools: &[Tool]) {
        let known = |tool: &Tool| {
            let schema = tool.output_schema.as_ref().map(|json| {
                Arc::new(OutputSchema {
                    tool: tool.name.clone(),
                    json: json.to_string(),
                    compiled: OnceLock::new(),
                })
            });
            let support = tool.task_support;
            (tool.name.clone(), KnownTool { schema, support })
        };
        let tools = tools.iter().map(known).collect();
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    /// A tool's output schema and its task support, if the tool was listed.
    pub fn of(&self, tool: &str) -> (Option<Arc<OutputSchema>>, Option<TaskSupport>) {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = tools.get(tool);
        let schema = tool.and_then(|tool| tool.schema.clone());
        (schema, tool.map(|tool| tool.support))
    }
}

/// Checks the answer to a call against the tool's output schema.
///
/// # Errors
/// As [`OutputSchema::check`].
pub(super) fn check_answer(
    answer: &Message,
    schema: Option<&OutputSchema>,
) -> Result<(), RequestError> {
    let result = answer.as_ref().result().unwrap_or("{}");
    schema.map_or(Ok(()), |schema| schema.check(result))
}

impl OutputSchema {
    fn schema(&self) -> Result<&Schema, RequestError> {
        let compiled = self.compiled.get_or_init(|| Schema::new(&self.json));
        // R-SCH-07, R-SCH-11: an invalid schema accepts nothing.
        compiled.as_ref().map_err(|why| {
            wrong(format_args!(
                "the output schema of tool {:?} is not valid: {why}",
                self.tool
            ))
        })
    }

    /// Checks that results can be checked at all.
    ///
    /// # Errors
    /// When the schema is not valid.
    pub fn is_usable(&self) -> Result<(), RequestError> {
        self.schema().map(drop)
    }

    /// Checks a raw result.
    ///
    /// # Errors
    /// When the result does not fit. Results that are errors are not checked (R-STR-07).
    pub fn check(&self, result: &str) -> Result<(), RequestError> {
        if reader::find(result, "isError") == Some("true") {
            return Ok(());
        }
        let structured = reader::find(result, "structuredContent").ok_or_else(|| {
            wrong(format_args!(
                "tool {:?} sent no structured content, but has an output schema",
                self.tool
            ))
        })?;
        let fits = self.schema()?.check(structured);
        fits.map_err(|why| {
            wrong(format_args!(
                "the structured content of tool {:?} does not fit its output schema: {why}",
                self.tool
            ))
        })
    }
}

fn wrong(why: std::fmt::Arguments<'_>) -> RequestError {
    RequestError::BadResult(why.to_string().into())
}
