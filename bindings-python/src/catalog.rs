//! What a Python server offers: the engine's registry, and beside it the functions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpbolt::connection::Config;
use mcpbolt::handler::Operation;
use mcpbolt::io::trace_to;
use mcpbolt::server::{Prompt, PromptArgument, Registry, RegistryError, Resource, Tool};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Where a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// On a worker thread.
    Worker,
    /// At once, on the thread of the event loop.
    Inline,
    /// As a task of the event loop.
    Task,
}

/// A function and how it is called.
#[derive(Debug)]
pub struct Target {
    pub function: Py<PyAny>,
    pub lane: Lane,
    /// The parameter that takes the context.
    pub context: Option<Py<PyString>>,
    /// Makes of the arguments what the function's parameters want; `None` when they are plain.
    pub prepare: Option<Py<PyAny>>,
    /// The parameters that are integers.
    pub integers: Vec<Py<PyString>>,
    /// Makes of what the function gives back what goes on the wire.
    pub lower: Py<PyAny>,
    /// Whether the last call took long: answers do not wait for such a call.
    pub slow: AtomicBool,
}

/// One entry, as the face describes it.
#[derive(FromPyObject)]
pub struct Definition {
    name: String,
    uri: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    input_schema: String,
    output_schema: Option<String>,
    annotations: Option<String>,
    arguments: Vec<(String, Option<String>, bool)>,
    function: Py<PyAny>,
    lane: String,
    context: Option<Py<PyString>>,
    prepare: Option<Py<PyAny>>,
    integers: Vec<Py<PyString>>,
    lower: Py<PyAny>,
}

/// Everything a server offers; frozen, so that any number of connections share it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Catalog {
    pub shared: Arc<Shared>,
}

/// The part of a catalog that engine threads hold.
#[derive(Debug)]
pub struct Shared {
    pub registry: Arc<Registry>,
    pub config: Arc<Config>,
    /// Whether anything runs as a task.
    pub has_tasks: bool,
    tools: Vec<Target>,
    resources: Vec<Target>,
    templates: Vec<Target>,
    prompts: Vec<Target>,
}

impl Shared {
    /// What carries an operation out.
    pub fn target(&self, operation: Operation) -> Option<&Target> {
        match operation {
            Operation::CallTool(index) => self.tools.get(index as usize),
            Operation::ReadResource(index) => self.resources.get(index as usize),
            Operation::ReadTemplate(index) => self.templates.get(index as usize),
            Operation::GetPrompt(index) => self.prompts.get(index as usize),
            // Not offered.
            Operation::Complete => None,
        }
    }
}

#[pymethods]
impl Catalog {
    #[new]
    #[expect(
        clippy::too_many_arguments,
        reason = "called from one place in the face"
    )]
    fn new(
        name: &str,
        version: &str,
        instructions: Option<String>,
        trace: Option<PathBuf>,
        tools: Vec<Definition>,
        resources: Vec<Definition>,
        templates: Vec<Definition>,
        prompts: Vec<Definition>,
    ) -> PyResult<Self> {
        let mut registry = Registry::new();
        let wrong = |error: RegistryError| PyValueError::new_err(error.to_string());
        let add =
            |entries: Vec<Definition>,
             add: &mut dyn FnMut(&Definition) -> Result<(), RegistryError>| {
                let each = |entry: Definition| {
                    add(&entry).map_err(wrong)?;
                    Ok(entry.into_target())
                };
                entries.into_iter().map(each).collect::<PyResult<Vec<_>>>()
            };
        let tools = add(tools, &mut |entry| {
            registry.add_tool(entry.tool()).map(drop)
        })?;
        let resources = add(resources, &mut |entry| {
            registry.add_resource(entry.resource()).map(drop)
        })?;
        let templates = add(templates, &mut |entry| {
            registry.add_template(entry.resource()).map(drop)
        })?;
        let prompts = add(prompts, &mut |entry| {
            registry.add_prompt(entry.prompt()).map(drop)
        })?;
        let mut config = registry.config(name, version);
        config.instructions = instructions.map(Into::into);
        config.trace = trace.as_deref().map(trace_to).transpose()?;
        let all = [&tools, &resources, &templates, &prompts];
        let has_tasks = all
            .into_iter()
            .flatten()
            .any(|target| target.lane == Lane::Task);
        let shared = Shared {
            registry: Arc::new(registry),
            config: Arc::new(config),
            has_tasks,
            tools,
            resources,
            templates,
            prompts,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Whether an event loop is needed.
    #[getter]
    fn has_tasks(&self) -> bool {
        self.shared.has_tasks
    }
}

impl Definition {
    fn tool(&self) -> Tool {
        let mut tool = Tool::new(&self.name);
        tool.title = self.title.clone();
        tool.description = self.description.clone();
        tool.input_schema = self.input_schema.clone();
        tool.output_schema = self.output_schema.clone();
        tool.annotations = self.annotations.clone();
        tool
    }

    fn resource(&self) -> Resource {
        let mut resource = Resource::new(&self.uri, &self.name);
        resource.title = self.title.clone();
        resource.description = self.description.clone();
        resource.mime_type = self.mime_type.clone();
        resource
    }

    fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::new(&self.name);
        prompt.title = self.title.clone();
        prompt.description = self.description.clone();
        let argument =
            |(name, description, required): &(String, Option<String>, bool)| PromptArgument {
                name: name.clone(),
                description: description.clone(),
                required: *required,
            };
        prompt.arguments = self.arguments.iter().map(argument).collect();
        prompt
    }

    fn into_target(self) -> Target {
        Target {
            function: self.function,
            lane: match self.lane.as_str() {
                "inline" => Lane::Inline,
                "task" => Lane::Task,
                _ => Lane::Worker,
            },
            context: self.context,
            prepare: self.prepare,
            integers: self.integers,
            lower: self.lower,
            slow: AtomicBool::new(true),
        }
    }
}
