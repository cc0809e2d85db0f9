//! The output schemas of the tools that a client has listed, which results are validated against (R-STR-02).

use std::cell::OnceCell;
use std::collections::HashMap;

use mcpbolt::server::Schema;
use serde_json::value::RawValue;

/// By tool name; contains the last list only.
#[derive(Default)]
pub struct Outputs(HashMap<String, Output>);

/// Compiled when its tool returns its first result.
struct Output {
    json: Box<RawValue>,
    compiled: OnceCell<Option<Schema>>,
}

impl Outputs {
    pub fn new(schemas: Vec<(String, Box<RawValue>)>) -> Self {
        let output = |(name, json)| {
            let compiled = OnceCell::new();
            (name, Output { json, compiled })
        };
        Self(schemas.into_iter().map(output).collect())
    }

    /// Why the structured content of a tool, as JSON, does not fit; `None` if it fits. A schema that cannot
    /// be used allows nothing (R-SCH-07, R-SCH-11).
    pub fn misfit(&self, tool: &str, json: &str) -> Option<String> {
        let output = self.0.get(tool)?;
        let compile = || Schema::new(output.json.get()).ok();
        match output.compiled.get_or_init(compile) {
            Some(schema) => schema.check(json).err(),
            None => Some("the schema is not valid".to_owned()),
        }
    }
}
