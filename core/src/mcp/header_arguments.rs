//! The tool arguments that HTTP repeats in headers, as the server's lists state it (2026-07-28).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::header::{self, HeaderParam};
use crate::json::reader;
use crate::limits::MAX_MIRRORED_TOOLS;

/// Shared by the clones of a client whose transport has headers, and by the connections of a front that passes lists on.
#[derive(Debug, Default)]
pub(crate) struct HeaderArguments {
    tools: Mutex<HashMap<String, Arc<[HeaderParam]>>>,
}

impl HeaderArguments {
    fn tools(&self) -> MutexGuard<'_, HashMap<String, Arc<[HeaderParam]>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The header arguments of a tool; `None` before it was listed.
    #[cfg(any(feature = "http", feature = "http-client"))]
    pub fn of(&self, tool: &str) -> Option<Arc<[HeaderParam]>> {
        self.tools().get(tool).cloned()
    }

    /// Records the header arguments of a page of tools. Returns the page without tools whose header
    /// declarations are not valid (R-HDR-08).
    pub fn learn<'a>(&self, page: &'a str) -> Cow<'a, str> {
        let mut tools = self.tools();
        let (mut kept, mut all) = (Vec::new(), true);
        for tool in reader::elements(page) {
            let name = reader::find(tool, "name").and_then(reader::as_str);
            let name = name.unwrap_or_default();
            match params(tool) {
                Ok(params) if params.is_empty() => drop(tools.remove(&*name)),
                Ok(params) if tools.len() < MAX_MIRRORED_TOOLS || tools.contains_key(&*name) => {
                    tools.insert(name.into(), params.into());
                }
                Ok(_) => {}
                Err(_) => {
                    all = false;
                    continue;
                }
            }
            kept.push(tool);
        }
        match all {
            true => page.into(),
            false => format!("[{}]", kept.join(",")).into(),
        }
    }
}

/// The header arguments that a tool declares.
fn params(tool: &str) -> Result<Vec<HeaderParam>, &'static str> {
    let schema = reader::find(tool, "inputSchema").unwrap_or("{}");
    // Most schemas have none; skip parsing them.
    if !schema.contains(header::KEYWORD) {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema).map_err(|_| "the schema is not valid")?;
    header::params(&schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_tools_are_mirrored_than_may_be() {
        let known = HeaderArguments::default();
        let tool = |n: usize| {
            format!(
                r#"{{"name":"{n}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"A"}}}}}}}}"#
            )
        };
        let page: Vec<_> = (0..MAX_MIRRORED_TOOLS + 10).map(tool).collect();
        known.learn(&format!("[{}]", page.join(",")));
        assert_eq!(known.tools().len(), MAX_MIRRORED_TOOLS);
    }
}
