//! Lists of what a server offers.

#[cfg(feature = "http-client")]
use std::borrow::Cow;

use super::client::Client;
use super::pages::{self, Pages};
use crate::error::RequestError;
use crate::model::{Prompt, Resource, ResourceTemplate, Tool};
#[cfg(feature = "http-client")]
use crate::{json::reader, mcp::Method};

impl Client {
    /// Lists the server's tools, all pages. From then on, results are checked against the output
    /// schemas of this list (R-STR-02).
    ///
    /// # Errors
    /// The server's error, a timeout, the end of the connection, or an answer of another shape.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, RequestError> {
        let tools = self.tool_pages().all().await?;
        self.core.tools.learn(&tools);
        Ok(tools)
    }

    /// Makes results be checked against the output schemas of these tools instead of the last list,
    /// for programs that read lists [as another type](Pages::read_as).
    pub fn learn_tools(&self, tools: &[Tool]) {
        self.core.tools.learn(tools);
    }

    /// Lists the server's tools, page by page.
    pub fn tool_pages(&self) -> Pages<Tool> {
        Pages::new(&self.core, pages::TOOLS)
    }

    /// Lists the server's resources, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<Vec<Resource>, RequestError> {
        self.resource_pages().all().await
    }

    /// Lists the server's resource templates, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, RequestError> {
        self.resource_template_pages().all().await
    }

    /// Lists the server's resources, page by page.
    pub fn resource_pages(&self) -> Pages<Resource> {
        Pages::new(&self.core, pages::RESOURCES)
    }

    /// Lists the server's resource templates, page by page.
    pub fn resource_template_pages(&self) -> Pages<ResourceTemplate> {
        Pages::new(&self.core, pages::RESOURCE_TEMPLATES)
    }

    /// Lists the server's prompts, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, RequestError> {
        self.prompt_pages().all().await
    }

    /// Lists the server's prompts, page by page.
    pub fn prompt_pages(&self) -> Pages<Prompt> {
        Pages::new(&self.core, pages::PROMPTS)
    }

    /// Filters the result of a `tools/list` that was [sent by hand](Self::request): removes tools
    /// that cannot be called over this transport (R-HDR-08), and records the header arguments of
    /// the others.
    #[cfg(feature = "http-client")]
    pub fn usable_tools<'a>(&self, result: &'a str) -> Cow<'a, str> {
        let tools = reader::find(result, "tools").unwrap_or("[]");
        match self.core.usable(Method::ListTools, tools) {
            Cow::Borrowed(_) => result.into(),
            Cow::Owned(usable) => with_tools(result, &usable).into(),
        }
    }

    /// Lists the tools again, bypassing the cache, after a call was refused because of its headers
    /// (R-HDR-09).
    #[cfg(feature = "http-client")]
    pub(crate) async fn list_tools_anew(&self) -> Result<(), RequestError> {
        if let Some(cache) = &self.core.cache {
            cache.forget(Method::ListTools);
        }
        let tools = self.tool_pages().read_as::<serde_json::Value>();
        tools.all().await.map(drop)
    }
}

/// Replaces the tools in the result of a list.
#[cfg(feature = "http-client")]
fn with_tools(result: &str, tools: &str) -> String {
    let members = reader::members(result).map(|(name, value)| {
        let value = if name == "tools" { tools } else { value };
        format!("\"{}\":{value}", name.raw())
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

#[cfg(all(test, feature = "http-client"))]
mod tests {
    use super::with_tools;

    /// R-HDR-08, also for the result of a list sent by hand.
    #[test]
    fn a_result_is_without_the_tools_that_cannot_be_called() {
        let result = r#"{"tools":[{"name":"a"},{"name":"b"}],"ttlMs":7,"nextCursor":"\"tools\""}"#;
        let kept = r#"[{"name":"b"}]"#;
        let expected = r#"{"tools":[{"name":"b"}],"ttlMs":7,"nextCursor":"\"tools\""}"#;
        assert_eq!(with_tools(result, kept), expected);
    }
}
