//! One tool, resource, template or prompt, as the Python package describes it.

use std::sync::atomic::AtomicBool;

use mcpbolt::mcp::TaskSupport;
use mcpbolt::server::{Prompt, PromptArgument, Resource, Template, Tool};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::kept::Results;
use crate::target::{Lane, Target};

/// The Python `Entry`. JSON values are text.
#[derive(FromPyObject)]
pub struct Definition {
    pub kind: String,
    name: String,
    uri: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
    input_schema: String,
    output_schema: Option<String>,
    annotations: Option<String>,
    icons: Option<String>,
    meta: Option<String>,
    action: Option<String>,
    on_get: bool,
    task: String,
    arguments: Vec<Argument>,
    function: Py<PyAny>,
    lane: String,
    parameters: Vec<Py<PyString>>,
    context: Option<Py<PyString>>,
    prepare: Option<Py<PyAny>>,
    integers: Vec<Py<PyString>>,
    lower: Py<PyAny>,
    is_looked_at: bool,
    is_atomic: bool,
    kept: Option<Py<Results>>,
}

/// An argument of a prompt: its name, title and description, and whether it is required.
type Argument = (String, Option<String>, Option<String>, bool);

impl Definition {
    fn task_support(&self) -> TaskSupport {
        TaskSupport::parse(&self.task).unwrap_or_default()
    }

    pub fn tool(&self) -> Tool {
        let mut tool = Tool::new(&self.name);
        tool.title = self.title.clone();
        tool.description = self.description.clone();
        tool.input_schema = self.input_schema.clone();
        tool.output_schema = self.output_schema.clone();
        tool.annotations = self.annotations.clone();
        tool.icons = self.icons.clone();
        tool.meta = self.meta.clone();
        tool.action = self.action.clone();
        tool.on_get = self.on_get;
        tool.task_support = self.task_support();
        if self.is_atomic {
            tool = tool.atomic();
        }
        match &self.kept {
            None => tool,
            Some(results) => tool.kept_for(results.get().ttl),
        }
    }

    pub fn resource(&self) -> Resource {
        let mut resource = Resource::new(&self.uri, &self.name);
        resource.title = self.title.clone();
        resource.description = self.description.clone();
        resource.mime_type = self.mime_type.clone();
        resource.size = self.size;
        resource.annotations = self.annotations.clone();
        resource.icons = self.icons.clone();
        resource.meta = self.meta.clone();
        resource
    }

    pub fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::new(&self.name);
        prompt.title = self.title.clone();
        prompt.description = self.description.clone();
        prompt.icons = self.icons.clone();
        prompt.meta = self.meta.clone();
        let argument = |(name, title, description, required): &Argument| PromptArgument {
            name: name.clone(),
            title: title.clone(),
            description: description.clone(),
            required: *required,
        };
        prompt.arguments = self.arguments.iter().map(argument).collect();
        prompt
    }

    pub fn into_target(self) -> Target {
        Target {
            takes_tasks: self.task_support() != TaskSupport::Forbidden,
            is_checked: self.output_schema.is_some(),
            template: match self.kind.as_str() {
                "template" => Template::parse(&self.uri).ok(),
                _ => None,
            },
            function: self.function,
            lane: Lane::parse(&self.lane),
            parameters: self.parameters,
            context: self.context,
            prepare: self.prepare,
            integers: self.integers,
            lower: self.lower,
            is_looked_at: self.is_looked_at,
            is_native: false,
            straight: None,
            slow: AtomicBool::new(true),
        }
    }
}
