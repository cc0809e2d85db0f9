//! The output schemas of the tools that a client has listed, which results are validated against (R-STR-02).

use std::cell::OnceCell;
use std::collections::HashMap;

use mcpbolt::server::Schema;
use napi_derive::napi;
use serde_json::value::RawValue;

use crate::error::{Result, error};
use crate::link::Link;

/// By tool name; contains the last list only.
#[derive(Default)]
pub struct Outputs(HashMap<String, Output>);

/// Compiled when its tool returns its first result.
struct Output {
    json: Box<RawValue>,
    compiled: OnceCell<Option<Schema>>,
}

#[napi]
impl Link {
    /// Replaces the schemas by those of a list: pairs of name and schema, as JSON.
    #[napi(catch_unwind)]
    pub fn learn_outputs(&mut self, json: String) -> Result<()> {
        let pairs: Vec<(String, Box<RawValue>)> =
            serde_json::from_str(&json).map_err(|why| error("ERR_MCP_INTERNAL", why))?;
        let output = |(name, json)| {
            let compiled = OnceCell::new();
            (name, Output { json, compiled })
        };
        self.outputs = Outputs(pairs.into_iter().map(output).collect());
        Ok(())
    }

    /// Why the structured content of a tool, as JSON, does not fit; `None` if it fits. A schema that cannot
    /// be used allows nothing (R-SCH-07, R-SCH-11).
    #[napi(catch_unwind)]
    pub fn misfit(&self, tool: String, json: String) -> Option<String> {
        let output = self.outputs.0.get(&tool)?;
        let compile = || Schema::new(output.json.get()).ok();
        match output.compiled.get_or_init(compile) {
            Some(schema) => schema.check(&json).err(),
            None => Some("the schema is not valid".to_owned()),
        }
    }
}
