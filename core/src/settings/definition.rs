//! Definitions of tools, resources, templates and prompts, as the lists of MCP show them.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::mcp::TaskSupport;
use crate::model::{Prompt, PromptArgument, RawJson, Resource, Tool};

/// A tool: the members are those of `tools/list`, and those of [`Tool`] besides.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the tool")]
pub struct ToolDefinition<T> {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Option<Box<RawValue>>,
    pub output_schema: Option<Box<RawValue>>,
    pub annotations: Option<Box<RawValue>>,
    pub icons: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    pub meta: Option<Box<RawValue>>,
    pub action: Option<Box<RawValue>>,
    #[serde(default)]
    pub on_get: bool,
    #[serde(default, deserialize_with = "task_support")]
    pub task_support: TaskSupport,
    #[serde(default)]
    pub atomic: bool,
    /// How long results are cached: see [`Tool::kept_for`].
    pub cache_ttl: Option<T>,
}

/// A resource, or a resource template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the resource")]
pub struct ResourceDefinition {
    pub uri: String,
    /// The URI by default.
    pub name: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
    pub annotations: Option<Box<RawValue>>,
    pub icons: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    pub meta: Option<Box<RawValue>>,
}

/// A prompt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the prompt")]
pub struct PromptDefinition {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    #[serde(default)]
    pub arguments: Vec<PromptArgumentDefinition>,
    pub icons: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    pub meta: Option<Box<RawValue>>,
}

/// An argument of a prompt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the argument")]
pub struct PromptArgumentDefinition {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

impl<T: Into<Duration>> From<ToolDefinition<T>> for Tool {
    fn from(definition: ToolDefinition<T>) -> Self {
        let mut tool = Self::new(definition.name);
        tool.title = definition.title;
        tool.description = definition.description;
        if let Some(schema) = definition.input_schema {
            tool.input_schema = schema.into();
        }
        tool.output_schema = text(definition.output_schema);
        tool.annotations = text(definition.annotations);
        tool.icons = text(definition.icons);
        tool.meta = text(definition.meta);
        tool.action = text(definition.action);
        tool.on_get = definition.on_get;
        tool.task_support = definition.task_support;
        if definition.atomic {
            tool = tool.atomic();
        }
        match definition.cache_ttl {
            None => tool,
            Some(ttl) => tool.kept_for(ttl.into()),
        }
    }
}

impl From<ResourceDefinition> for Resource {
    fn from(definition: ResourceDefinition) -> Self {
        let name = definition.name.unwrap_or_else(|| definition.uri.clone());
        let mut resource = Self::new(definition.uri, name);
        resource.title = definition.title;
        resource.description = definition.description;
        resource.mime_type = definition.mime_type;
        resource.size = definition.size;
        resource.annotations = text(definition.annotations);
        resource.icons = text(definition.icons);
        resource.meta = text(definition.meta);
        resource
    }
}

impl From<PromptDefinition> for Prompt {
    fn from(definition: PromptDefinition) -> Self {
        let mut prompt = Self::new(definition.name);
        prompt.title = definition.title;
        prompt.description = definition.description;
        prompt.icons = text(definition.icons);
        prompt.meta = text(definition.meta);
        let argument = |argument: PromptArgumentDefinition| PromptArgument {
            name: argument.name,
            title: argument.title,
            description: argument.description,
            required: argument.required,
            ..PromptArgument::default()
        };
        prompt.arguments = definition.arguments.into_iter().map(argument).collect();
        prompt
    }
}

fn text(json: Option<Box<RawValue>>) -> Option<RawJson> {
    json.map(Into::into)
}

fn task_support<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TaskSupport, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = &["forbidden", "optional", "required"];
    let unknown = || serde::de::Error::unknown_variant(&name, known);
    TaskSupport::parse(&name).ok_or_else(unknown)
}
