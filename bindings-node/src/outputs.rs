//! The output schemas of the tools that a client has listed: what tools give back is held against
//! them (R-STR-02).

use std::cell::OnceCell;
use std::collections::HashMap;

use mcpbolt::server::Schema;
use napi_derive::napi;
use serde_json::value::RawValue;

use crate::error::{Result, error};
use crate::link::Link;

/// By the tools' names; holds no more than the last list.
#[derive(Default)]
pub struct Outputs(HashMap<String, Output>);

/// Compiled when its tool has given something back first.
struct Output {
    json: Box<RawValue>,
    compiled: OnceCell<Option<Schema>>,
}

#[napi]
impl Link {
    /// Takes a list over: names and schemas in pairs, as JSON.
    #[napi]
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

    /// What is wrong with what a tool gave back, its structured content as JSON; nothing when it
    /// fits. A schema that cannot be used allows nothing (R-SCH-07, R-SCH-11).
    #[napi]
    pub fn misfit(&self, tool: String, json: String) -> Option<String> {
        let output = self.outputs.0.get(&tool)?;
        let compile = || Schema::new(output.json.get()).ok();
        match output.compiled.get_or_init(compile) {
            Some(schema) => schema.check(&json).err(),
            None => Some("the schema is not valid".to_owned()),
        }
    }
}
