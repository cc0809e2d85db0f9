//! Which arguments of tools HTTP repeats in headers, as the server's lists have it (2026-07-28).

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

/// Shared by the clones of a client whose wire has headers.
#[derive(Debug, Default)]
pub(super) struct Mirrored {
    tools: Mutex<HashMap<String, Arc<[HeaderParam]>>>,
}

impl Mirrored {
    fn tools(&self) -> MutexGuard<'_, HashMap<String, Arc<[HeaderParam]>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns from a page of tools, and leaves out those that ask for headers which cannot be
    /// (R-HDR-08).
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

/// The result of a list with other tools.
fn with_tools(result: &str, tools: &str) -> String {
    let members = reader::members(result).map(|(name, value)| {
        let value = if name == "tools" { tools } else { value };
        format!("\"{}\":{value}", name.raw())
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The headers that a tool asks for.
fn params(tool: &str) -> Result<Vec<HeaderParam>, &'static str> {
    let schema = reader::find(tool, "inputSchema").unwrap_or("{}");
    // Most have none, and are not looked at any closer.
    if !schema.contains(header::KEYWORD) {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema).map_err(|_| "the schema is not valid")?;
    header::params(&schema)
}

impl Client {
    /// A page of a list as those may see it who are on this wire.
    pub(super) fn seen<'a>(&self, list: Method, page: &'a str) -> Cow<'a, str> {
        let stateless = self.revision().map(Revision::era) == Some(Era::Stateless);
        match &self.mirrored {
            Some(mirrored) if stateless && list == Method::ListTools => mirrored.learn(page),
            _ => page.into(),
        }
    }

    /// The result of a `tools/list` that was [asked by hand](Self::request), without the tools that
    /// cannot be called on this wire (R-HDR-08); what the others say in headers is known from now on.
    pub fn seen_tools<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let tools = reader::find(result, "tools").unwrap_or("[]");
        match self.seen(Method::ListTools, tools) {
            Cow::Borrowed(_) => result.into(),
            Cow::Owned(kept) => with_tools(result, &kept).into(),
        }
    }

    /// The arguments of a tool that travel in headers, too; none before it was listed.
    pub(crate) fn mirrored_arguments(&self, tool: &str) -> Option<Arc<[HeaderParam]>> {
        self.mirrored.as_ref()?.tools().get(tool).cloned()
    }

    /// Lists the tools anew, whatever is kept of them: a call was refused because of its headers
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

    /// R-HDR-08: of a result, too, as it is asked by hand.
    #[test]
    fn a_result_is_without_the_tools_that_cannot_be_called() {
        let result = r#"{"tools":[{"name":"a"},{"name":"b"}],"ttlMs":7,"nextCursor":"\"tools\""}"#;
        let kept = r#"[{"name":"b"}]"#;
        let expected = r#"{"tools":[{"name":"b"}],"ttlMs":7,"nextCursor":"\"tools\""}"#;
        assert_eq!(with_tools(result, kept), expected);
    }
}
