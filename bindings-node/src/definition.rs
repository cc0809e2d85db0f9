//! Registrations from JavaScript, as JSON.

use std::time::Duration;

use mcpbolt::server::{Prompt, PromptArgument, Resource, TaskSupport, Tool};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
    icons: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
    action: Option<Box<RawValue>>,
    #[serde(default)]
    on_get: bool,
    task_support: Option<String>,
    #[serde(default)]
    atomic: bool,
    /// How long its results are cached, in ms.
    kept_ms: Option<u64>,
}

/// A resource, or a template.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDefinition {
    pub uri: String,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
    annotations: Option<Box<RawValue>>,
    icons: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
    /// Whether values of its variables can be completed.
    #[serde(default)]
    pub completes: bool,
}

/// A prompt.
#[derive(Deserialize)]
pub struct PromptDefinition {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default)]
    arguments: Vec<ArgumentDefinition>,
    icons: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
    /// Whether values of its arguments can be completed.
    #[serde(default)]
    pub completes: bool,
}

#[derive(Deserialize)]
struct ArgumentDefinition {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default)]
    required: bool,
}

fn text(raw: Option<Box<RawValue>>) -> Option<String> {
    raw.map(|raw| raw.get().to_owned())
}

impl ToolDefinition {
    /// Converts the definition; `None` if `task_support` is unknown.
    pub fn read(self) -> Option<Tool> {
        let definition = self;
        let mut tool = Tool::new(definition.name);
        tool.title = definition.title;
        tool.description = definition.description;
        tool.output_schema = text(definition.output_schema);
        tool.annotations = text(definition.annotations);
        tool.icons = text(definition.icons);
        tool.meta = text(definition.meta);
        tool.action = text(definition.action);
        tool.on_get = definition.on_get;
        if let Some(schema) = text(definition.input_schema) {
            tool.input_schema = schema;
        }
        if let Some(name) = definition.task_support {
            tool.task_support = TaskSupport::parse(&name)?;
        }
        if definition.atomic {
            tool = tool.atomic();
        }
        Some(match definition.kept_ms {
            None => tool,
            Some(ms) => tool.kept_for(Duration::from_millis(ms)),
        })
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
        let argument = |argument: ArgumentDefinition| PromptArgument {
            name: argument.name,
            title: argument.title,
            description: argument.description,
            required: argument.required,
        };
        prompt.arguments = definition.arguments.into_iter().map(argument).collect();
        prompt
    }
}
