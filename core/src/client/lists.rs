//! Lists of what a server offers.

use super::pages::List;
use super::{Client, Pages, PromptInfo, ResourceInfo, ResourceTemplateInfo, ToolInfo};
use crate::error::RequestError;
use crate::mcp::Method;

impl Client {
    /// Lists the server's tools, all pages. From then on, results are checked against the output
    /// schemas of this list (R-STR-02).
    ///
    /// # Errors
    /// The server's error, a timeout, the end of the connection, or an answer of another shape.
    pub async fn list_tools(&self) -> Result<Vec<ToolInfo>, RequestError> {
        let tools = self.tool_pages().all().await?;
        self.known.learn(&tools);
        Ok(tools)
    }

    /// Makes results be checked against the output schemas of these tools instead of the last list,
    /// for programs that read lists [as another type](Pages::read_as).
    pub fn learn_tools(&self, tools: &[ToolInfo]) {
        self.known.learn(tools);
    }

    /// Lists the server's tools, page by page.
    pub fn tool_pages(&self) -> Pages<ToolInfo> {
        let list = List {
            method: Method::ListTools,
            key: "tools",
            capability: "tools",
        };
        Pages::new(self, list)
    }

    /// Lists the server's resources, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<Vec<ResourceInfo>, RequestError> {
        self.resource_pages().all().await
    }

    /// Lists the server's resource templates, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplateInfo>, RequestError> {
        self.resource_template_pages().all().await
    }

    /// Lists the server's resources, page by page.
    pub fn resource_pages(&self) -> Pages<ResourceInfo> {
        let list = List {
            method: Method::ListResources,
            key: "resources",
            capability: "resources",
        };
        Pages::new(self, list)
    }

    /// Lists the server's resource templates, page by page.
    pub fn resource_template_pages(&self) -> Pages<ResourceTemplateInfo> {
        let list = List {
            method: Method::ListResourceTemplates,
            key: "resourceTemplates",
            capability: "resources",
        };
        Pages::new(self, list)
    }

    /// Lists the server's prompts, all pages.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<Vec<PromptInfo>, RequestError> {
        self.prompt_pages().all().await
    }

    /// Lists the server's prompts, page by page.
    pub fn prompt_pages(&self) -> Pages<PromptInfo> {
        let list = List {
            method: Method::ListPrompts,
            key: "prompts",
            capability: "prompts",
        };
        Pages::new(self, list)
    }
}
