//! The functions of a server, and how each is called.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpbolt::handler::Operation;
use mcpbolt::server::{Registry, RegistryError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::definition::Definition;

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
    /// Whether its calls may go on as tasks of the protocol.
    pub takes_tasks: bool,
    /// Whether what it gives back is held against a schema.
    pub is_checked: bool,
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

/// The functions, by the registry's numbers.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    tools: Vec<Arc<Target>>,
    resources: Vec<Arc<Target>>,
    templates: Vec<Arc<Target>>,
    prompts: Vec<Arc<Target>>,
    pub completion: Option<Arc<Target>>,
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
            Operation::Extension(_) => None,
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Target>> {
        let kinds = [&self.tools, &self.resources, &self.templates, &self.prompts];
        kinds.into_iter().flatten().chain(&self.completion)
    }

    /// Adds an entry, here and to the registry, under the same number.
    pub fn add(&mut self, registry: &mut Registry, entry: Definition) -> Result<(), RegistryError> {
        let targets = match entry.kind.as_str() {
            "tool" => {
                registry.add_tool(entry.tool())?;
                &mut self.tools
            }
            "resource" => {
                registry.add_resource(entry.resource())?;
                &mut self.resources
            }
            "template" => {
                registry.add_template(entry.resource())?;
                &mut self.templates
            }
            _ => {
                registry.add_prompt(entry.prompt())?;
                &mut self.prompts
            }
        };
        // Numbers go up by one and are not given again.
        targets.push(Arc::new(entry.into_target()));
        Ok(())
    }
}
