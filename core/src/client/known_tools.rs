//! Output schemas, to check results against (R-STR-02), and task support of the tools that were
//! listed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::TaskSupport;
use crate::message::Message;
use crate::model::Tool;
use crate::schema::Schema;

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
    json: String,
    compiled: OnceLock<Option<Schema>>,
}

impl KnownTools {
    /// Replaces everything with a new list.
    pub fn learn(&self, tools: &[Tool]) {
        let known = |tool: &Tool| {
            let schema = tool.output_schema.as_ref().map(|json| {
                let (json, compiled) = (json.to_string(), OnceLock::new());
                Arc::new(OutputSchema { json, compiled })
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
        let compiled = self.compiled.get_or_init(|| Schema::new(&self.json).ok());
        // R-SCH-07, R-SCH-11: an invalid schema accepts nothing.
        compiled.as_ref().ok_or(RequestError::BadAnswer(
            "the tool's output schema is not valid",
        ))
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
        let structured =
            reader::find(result, "structuredContent").ok_or(RequestError::BadAnswer(
                "there is no structured content although the tool has an output schema",
            ))?;
        let fits = self.schema()?.check(structured);
        fits.map_err(|_| {
            RequestError::BadAnswer("the structured content does not fit the tool's output schema")
        })
    }
}
