//! The tool arguments that HTTP repeats in headers, as the server's lists state it (2026-07-28).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::Client;
use crate::error::RequestError;
use crate::json::reader;
use crate::limits::MAX_MIRRORED_TOOLS;
use crate::mcp::header::{self, HeaderParam};
use crate::mcp::{Era, Method, Revision};

/// Shared by the clones of a client whose transport has headers.
#[derive(Debug, Default)]
pub(super) struct Mirrored {
    tools: Mutex<HashMap<String, Arc<[HeaderParam]>>>,
}

impl Mirrored {
    fn tools(&self) -> MutexGuard<'_, HashMap<String, Arc<[HeaderParam]>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the header arguments of a page of tools. Returns the page without tools whose header
    /// declarations are not valid (R-HDR-08).
    fn learn<'a>(&self, page: &'a str) -> Cow<'a, str> {
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

/// Replaces the tools in the result of a list.
fn with_tools(result: &str, tools: &str) -> String {
    let members = reader::members(result).map(|(name, value)| {
        let value = if name == "tools" { tools } else { value };
        format!("\"{}\":{value}", name.raw())
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
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

impl Client {
    /// Filters a page of a list for this transport.
    pub(super) fn seen<'a>(&self, list: Method, page: &'a str) -> Cow<'a, str> {
        let stateless = self.revision().map(Revision::era) == Some(Era::Stateless);
        match &self.mirrored {
            Some(mirrored) if stateless && list == Method::ListTools => mirrored.learn(page),
            _ => page.into(),
        }
    }

    /// Filters the result of a `tools/list` that was [sent by hand](Self::request): removes tools
    /// that cannot be called over this transport (R-HDR-08), and records the header arguments of
    /// the others.
    pub fn seen_tools<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let tools = reader::find(result, "tools").unwrap_or("[]");
        match self.seen(Method::ListTools, tools) {
            Cow::Borrowed(_) => result.into(),
            Cow::Owned(kept) => with_tools(result, &kept).into(),
        }
    }

    /// The arguments of a tool that are also sent as headers; `None` before the tool was listed.
    pub(crate) fn header_arguments(&self, tool: &str) -> Option<Arc<[HeaderParam]>> {
        self.mirrored.as_ref()?.tools().get(tool).cloned()
    }

    /// Lists the tools again, bypassing the cache, after a call was refused because of its headers
    /// (R-HDR-09).
    pub(crate) async fn list_tools_anew(&self) -> Result<(), RequestError> {
        if let Some(cache) = &self.cache {
            cache.forget(Method::ListTools);
        }
        self.tool_pages().read_as::<Value>().all().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_tools_are_mirrored_than_may_be() {
        let mirrored = Mirrored::default();
        let tool = |n: usize| {
            format!(
                r#"{{"name":"{n}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"A"}}}}}}}}"#
            )
        };
        let page: Vec<_> = (0..MAX_MIRRORED_TOOLS + 10).map(tool).collect();
        mirrored.learn(&format!("[{}]", page.join(",")));
        assert_eq!(mirrored.tools().len(), MAX_MIRRORED_TOOLS);
    }

    /// R-HDR-08, also for the result of a list sent by hand.
    #[test]
    fn a_result_is_without_the_tools_that_cannot_be_called() {
        let result = r#"{"tools":[{"name":"a"},{"name":"b"}],"ttlMs":7,"nextCursor":"\"tools\""}"#;
        let kept = r#"[{"name":"b"}]"#;
        let expected = r#"{"tools":[{"name":"b"}],"ttlMs":7,"nextCursor":"\"tools\""}"#;
        assert_eq!(with_tools(result, kept), expected);
    }
}
