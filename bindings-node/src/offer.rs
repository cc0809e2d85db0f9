//! What a server offers, put together by JavaScript before it is served.

use std::mem;
use std::sync::Arc;

use mcpbolt::connection::Config;
use mcpbolt::server::{Prompt, PromptArgument, Registry, RegistryError, Resource, Tool};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{self, Result, error};

/// A server's registry: open until it is first served.
#[napi]
pub struct Offer {
    name: String,
    version: String,
    instructions: Option<String>,
    registry: Registry,
    served: Option<Served>,
}

/// A registry in use, and what its connections begin with.
#[derive(Clone)]
pub struct Served {
    pub registry: Arc<Registry>,
    pub config: Arc<Config>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolDefinition {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
    output_schema: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
    icons: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDefinition {
    uri: String,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
}

#[derive(Deserialize)]
struct PromptDefinition {
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default)]
    arguments: Vec<ArgumentDefinition>,
}

#[derive(Deserialize)]
struct ArgumentDefinition {
    name: String,
    description: Option<String>,
    #[serde(default)]
    required: bool,
}

impl From<ToolDefinition> for Tool {
    fn from(definition: ToolDefinition) -> Self {
        let text = |raw: Option<Box<RawValue>>| raw.map(|raw| raw.get().to_owned());
        let mut tool = Self::new(definition.name);
        tool.title = definition.title;
        tool.description = definition.description;
        tool.output_schema = text(definition.output_schema);
        tool.annotations = text(definition.annotations);
        tool.icons = text(definition.icons);
        if let Some(schema) = text(definition.input_schema) {
            tool.input_schema = schema;
        }
        tool
    }
}

impl From<ResourceDefinition> for Resource {
    fn from(definition: ResourceDefinition) -> Self {
        let name = definition.name.unwrap_or_else(|| definition.uri.clone());
        let mut resource = Self::new(definition.uri, name);
        resource.title = definition.title;
        resource.description = definition.description;
        resource.mime_type = definition.mime_type;
        resource
    }
}

impl From<PromptDefinition> for Prompt {
    fn from(definition: PromptDefinition) -> Self {
        let mut prompt = Self::new(definition.name);
        prompt.title = definition.title;
        prompt.description = definition.description;
        let argument = |argument: ArgumentDefinition| PromptArgument {
            name: argument.name,
            description: argument.description,
            required: argument.required,
        };
        prompt.arguments = definition.arguments.into_iter().map(argument).collect();
        prompt
    }
}

#[napi]
impl Offer {
    /// An empty one.
    #[napi(constructor)]
    pub fn new(name: String, version: String, instructions: Option<String>) -> Self {
        Self {
            name,
            version,
            instructions,
            registry: Registry::new(),
            served: None,
        }
    }

    /// Adds a tool, defined in JSON; gives its number, as the others do.
    #[napi]
    pub fn tool(&mut self, json: String) -> Result<u32> {
        self.add::<ToolDefinition>(&json, |registry, tool| registry.add_tool(tool.into()))
    }

    /// Adds a resource.
    #[napi]
    pub fn resource(&mut self, json: String) -> Result<u32> {
        self.add::<ResourceDefinition>(&json, |registry, resource| {
            registry.add_resource(resource.into())
        })
    }

    /// Adds resources by template.
    #[napi]
    pub fn template(&mut self, json: String) -> Result<u32> {
        self.add::<ResourceDefinition>(&json, |registry, resource| {
            registry.add_template(resource.into())
        })
    }

    /// Adds a prompt.
    #[napi]
    pub fn prompt(&mut self, json: String) -> Result<u32> {
        self.add::<PromptDefinition>(&json, |registry, prompt| registry.add_prompt(prompt.into()))
    }

    fn add<'a, T: Deserialize<'a>>(
        &mut self,
        json: &'a str,
        add: impl FnOnce(&mut Registry, T) -> std::result::Result<u32, RegistryError>,
    ) -> Result<u32> {
        if self.served.is_some() {
            let text = "the server runs already: register before it does";
            return Err(error("ERR_MCP_MISUSE", text));
        }
        let definition = serde_json::from_str(json).map_err(|why| error("ERR_MCP_MISUSE", why))?;
        add(&mut self.registry, definition).map_err(|why| error::registry(&why))
    }

    /// Closes the registry for good.
    pub fn serve(&mut self) -> Served {
        let Self { name, version, .. } = self;
        let served = self.served.get_or_insert_with(|| {
            let registry = mem::take(&mut self.registry);
            let mut config = registry.config(name, version);
            config.instructions = self.instructions.as_deref().map(Into::into);
            Served {
                registry: Arc::new(registry),
                config: Arc::new(config),
            }
        });
        served.clone()
    }
}
