//! What a Python server offers: the engine's registry, and beside it the functions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpbolt::connection::Config;
use mcpbolt::handler::Operation;
use mcpbolt::io::trace_to;
use mcpbolt::server::{
    Change, Live, Prompt, PromptArgument, Registry, RegistryError, Resource, Seal, Tool,
};
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
    kind: String,
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

/// The functions, by the registry's numbers.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    tools: Vec<Arc<Target>>,
    resources: Vec<Arc<Target>>,
    templates: Vec<Arc<Target>>,
    prompts: Vec<Arc<Target>>,
    completion: Option<Arc<Target>>,
}

impl Targets {
    /// What carries an operation out.
    pub fn get(&self, operation: Operation) -> Option<&Arc<Target>> {
        match operation {
            Operation::CallTool(index) => self.tools.get(index as usize),
            Operation::ReadResource(index) => self.resources.get(index as usize),
            Operation::ReadTemplate(index) => self.templates.get(index as usize),
            Operation::GetPrompt(index) => self.prompts.get(index as usize),
            Operation::Complete => self.completion.as_ref(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Target>> {
        let kinds = [&self.tools, &self.resources, &self.templates, &self.prompts];
        kinds.into_iter().flatten().chain(&self.completion)
    }

    fn add(&mut self, registry: &mut Registry, entry: Definition) -> Result<(), RegistryError> {
        let (number, targets) = match entry.kind.as_str() {
            "tool" => (registry.add_tool(entry.tool())?, &mut self.tools),
            "resource" => {
                let number = registry.add_resource(entry.resource())?;
                (number, &mut self.resources)
            }
            "template" => {
                let number = registry.add_template(entry.resource())?;
                (number, &mut self.templates)
            }
            _ => (registry.add_prompt(entry.prompt())?, &mut self.prompts),
        };
        let target = Arc::new(entry.into_target());
        // A number that was free again is at a place there is.
        match targets.get_mut(number as usize) {
            Some(place) => *place = target,
            None => targets.push(target),
        }
        Ok(())
    }
}

/// How a server is set up, as the face describes it.
#[derive(FromPyObject)]
pub struct ServerSetup {
    name: String,
    version: String,
    instructions: Option<String>,
    trace: Option<PathBuf>,
    list_changes: bool,
    subscriptions: bool,
    completion_entry: Option<Definition>,
}

/// Everything a server offers; any number of connections share it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Catalog {
    pub shared: Arc<Shared>,
}

/// The part of a catalog that engine threads hold.
#[derive(Debug)]
pub struct Shared {
    pub live: Arc<Live<Targets>>,
    pub config: Arc<Config>,
    /// Signs what clients keep for the server between the rounds of a call.
    pub seal: Option<Seal>,
    /// Whether anything runs as a task, now or after a change.
    pub has_tasks: bool,
}

#[pymethods]
impl Catalog {
    #[new]
    fn new(setup: ServerSetup, entries: Vec<Definition>) -> PyResult<Self> {
        let (mut registry, mut targets) = (Registry::new(), Targets::default());
        if setup.list_changes {
            registry.announce_changes();
        }
        if setup.subscriptions {
            registry.offer_subscriptions();
        }
        if let Some(completion) = setup.completion_entry {
            registry.offer_completion();
            targets.completion = Some(Arc::new(completion.into_target()));
        }
        for entry in entries {
            targets.add(&mut registry, entry).map_err(wrong)?;
        }
        let mut config = registry.config(&setup.name, &setup.version);
        config.instructions = setup.instructions.map(Into::into);
        config.trace = setup.trace.as_deref().map(trace_to).transpose()?;
        let has_tasks = setup.list_changes || targets.all().any(|one| one.lane == Lane::Task);
        let shared = Shared {
            live: Arc::new(Live::new(registry, targets)),
            config: Arc::new(config),
            seal: Seal::random(),
            has_tasks,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Offers one thing more, on all connections.
    fn add(&self, entry: Definition) -> PyResult<()> {
        let live = &self.shared.live;
        let added = live.change(|mut registry, mut targets| {
            targets.add(&mut registry, entry)?;
            Ok((registry, targets))
        });
        added.map_err(wrong)
    }

    /// Offers one thing less. Whether there was one.
    fn remove(&self, kind: &str, name: &str) -> PyResult<bool> {
        let mut found = false;
        let removed = self.shared.live.change(|mut registry, targets| {
            found = match kind {
                "tool" => registry.remove_tool(name),
                "resource" => registry.remove_resource(name),
                _ => registry.remove_prompt(name),
            };
            Ok((registry, targets))
        });
        removed.map(|()| found).map_err(wrong)
    }

    /// Tells who subscribed to it that a resource is another now.
    fn resource_updated(&self, uri: &str) {
        let registry = self.shared.live.offer().registry;
        registry.tell(Change::Resource(uri));
    }

    /// Whether an event loop is needed.
    #[getter]
    fn has_tasks(&self) -> bool {
        self.shared.has_tasks
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as it is mapped")]
fn wrong(error: RegistryError) -> PyErr {
    PyValueError::new_err(error.to_string())
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
                title: None,
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
