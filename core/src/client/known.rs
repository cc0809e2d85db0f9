//! What is known of the tools that were listed: their output schemas, so that what they give back
//! can be held against them (R-STR-02), and what they say of tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::results::ToolInfo;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::TaskSupport;
use crate::schema::Schema;

/// Shared by the clones of a client. Holds no more than the last list.
#[derive(Debug, Default)]
pub(super) struct Known {
    tools: Mutex<HashMap<String, Tool>>,
}

#[derive(Debug)]
struct Tool {
    schema: Option<Arc<OutputSchema>>,
    support: TaskSupport,
}

/// Compiled when its tool is called first.
#[derive(Debug)]
pub(super) struct OutputSchema {
    json: String,
    compiled: OnceLock<Option<Schema>>,
}

impl Known {
    /// Takes over a whole list.
    pub fn learn(&self, tools: &[ToolInfo]) {
        let known = |tool: &ToolInfo| {
            let schema = tool.output_schema.as_ref().map(|json| {
                let (json, compiled) = (json.to_string(), OnceLock::new());
                Arc::new(OutputSchema { json, compiled })
            });
            let support = tool
                .other
                .get("execution")
                .and_then(|it| it.get("taskSupport"));
            let support = support.and_then(|name| TaskSupport::parse(name.as_str()?));
            let support = support.unwrap_or_default();
            (tool.name.clone(), Tool { schema, support })
        };
        let tools = tools.iter().map(known).collect();
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }

    pub fn output_schema(&self, tool: &str) -> Option<Arc<OutputSchema>> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.get(tool)?.schema.clone()
    }

    /// What a tool says of tasks; `None` when it was not listed.
    pub fn task_support(&self, tool: &str) -> Option<TaskSupport> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        Some(tools.get(tool)?.support)
    }
}

impl OutputSchema {
    fn schema(&self) -> Result<&Schema, RequestError> {
        let compiled = self.compiled.get_or_init(|| Schema::new(&self.json).ok());
        // R-SCH-07, R-SCH-11: a schema that cannot be used allows nothing.
        compiled.as_ref().ok_or(RequestError::BadAnswer(
            "the tool's output schema is not valid",
        ))
    }

    /// Whether results can be checked at all.
    ///
    /// # Errors
    /// When the schema is not valid.
    pub fn is_usable(&self) -> Result<(), RequestError> {
        self.schema().map(drop)
    }

    /// Checks a result, as it came.
    ///
    /// # Errors
    /// When it does not fit. One that is an error need not (R-STR-07).
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
