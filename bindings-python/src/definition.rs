//! Tools, resources, templates, prompts and completions, as the Python package describes them.

use std::sync::atomic::AtomicBool;

use mcpbolt::connection::Operation;
use mcpbolt::mcp::TaskSupport;
use mcpbolt::server::{Prompt, Registry, RegistryError, Resource, Skill, Template, Tool};
use mcpbolt::settings::{PromptDefinition, ResourceDefinition, Seconds, ToolDefinition};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::plain::{Parameters, Returns};
use crate::settings::{read, wrong};
use crate::target::{self, Lane, Target};

/// The Python `Entry`.
#[derive(FromPyObject)]
pub struct Entry {
    kind: String,
    /// The definition as JSON, but for completions.
    json: String,
    function: Py<PyAny>,
    lane: String,
    parameters: Vec<Py<PyString>>,
    context: Option<Py<PyString>>,
    prepare: Option<Py<PyAny>>,
    /// Whether all parameters have plain types.
    is_plain: bool,
    /// For a plain type of the return value: whether structured content has it as its member `result`.
    wraps: Option<bool>,
    lower: Py<PyAny>,
    is_layered: bool,
    /// Identifies the mounted server that has the entry; `None` for the server itself.
    owner: Option<usize>,
    failed: Option<Py<PyAny>>,
}

/// The definition of one entry, as clients see it.
pub enum Listed {
    Tool(Tool),
    Resource(Resource),
    Template(Resource),
    Prompt(Prompt),
    Completion,
    /// All lists of the server, which pass through middleware.
    Lists,
}

impl Entry {
    /// Splits an entry into its definition and its function.
    ///
    /// # Errors
    /// The definition is not valid.
    pub fn read(self, py: Python<'_>) -> PyResult<(Listed, Target)> {
        let (mut takes_tasks, mut is_checked, mut template) = (false, false, None);
        let (mut plain, mut returns) = (None, None);
        let listed = match self.kind.as_str() {
            "tool" => {
                let tool = read::<ToolDefinition<Seconds>>(&self.json)?;
                takes_tasks = tool.task_support != TaskSupport::Forbidden;
                is_checked = tool.output_schema.is_some();
                if let Some(schema) = tool.input_schema.as_ref().filter(|_| self.is_plain) {
                    plain = Parameters::of(py, schema.get(), &self.parameters)?;
                }
                if let (Some(schema), Some(wraps)) = (&tool.output_schema, self.wraps) {
                    returns = Returns::of(schema.get(), wraps);
                }
                Listed::Tool(tool.into())
            }
            "resource" => Listed::Resource(read::<ResourceDefinition>(&self.json)?.into()),
            "template" => {
                let resource = read::<ResourceDefinition>(&self.json)?;
                template = Template::parse(&resource.uri).ok();
                Listed::Template(resource.into())
            }
            "prompt" => Listed::Prompt(read::<PromptDefinition>(&self.json)?.into()),
            "lists" => Listed::Lists,
            _ => Listed::Completion,
        };
        let target = Target {
            function: self.function,
            lane: Lane::parse(&self.lane),
            takes_tasks,
            is_checked,
            template,
            parameters: self.parameters,
            context: self.context,
            prepare: self.prepare,
            plain,
            returns,
            lower: self.lower,
            is_layered: self.is_layered,
            owner: self.owner,
            failed: self.failed,
            is_native: false,
            straight: None,
            slow: AtomicBool::new(true),
        };
        Ok((listed, target))
    }
}

impl Listed {
    /// Adds the entry to a registry; returns the operation that calls its function.
    pub fn register(self, registry: &mut Registry) -> Result<Operation, RegistryError> {
        Ok(match self {
            Self::Tool(tool) => Operation::CallTool(registry.add_tool(tool)?),
            Self::Resource(resource) => Operation::ReadResource(registry.add_resource(resource)?),
            Self::Template(resource) => Operation::ReadTemplate(registry.add_template(resource)?),
            Self::Prompt(prompt) => Operation::GetPrompt(registry.add_prompt(prompt)?),
            Self::Completion => {
                registry.offer_completion();
                Operation::Complete
            }
            Self::Lists => target::LISTS,
        })
    }
}

/// A skill: its manifest, the path that it is within, and its other files (path, MIME type, bytes).
#[derive(FromPyObject)]
pub struct SkillFolder {
    manifest: String,
    within: String,
    files: Vec<(String, String, Vec<u8>)>,
}

impl SkillFolder {
    /// # Errors
    /// The manifest is not valid.
    pub fn read(self) -> PyResult<Skill> {
        let skill = Skill::new(&self.manifest).map_err(wrong)?;
        let skill = match self.within.is_empty() {
            true => skill,
            false => skill.within(&self.within),
        };
        let add = |skill: Skill, (path, mime_type, bytes)| skill.file(path, mime_type, bytes);
        Ok(self.files.into_iter().fold(skill, add))
    }
}
