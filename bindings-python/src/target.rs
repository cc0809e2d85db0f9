//! The functions of a server, and how each is called.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpbolt::handler::Operation;
use mcpbolt::server::{Registry, RegistryError, Template};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::definition::Definition;
use crate::straight::Straight;

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

impl Lane {
    /// As the face names it.
    pub fn parse(name: &str) -> Self {
        match name {
            "inline" => Self::Inline,
            "task" => Self::Task,
            _ => Self::Worker,
        }
    }
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
    /// That of a resource of one: its variables are the arguments.
    pub template: Option<Template>,
    /// The parameters that arguments go to.
    pub parameters: Vec<Py<PyString>>,
    /// The parameter that takes the context.
    pub context: Option<Py<PyString>>,
    /// Makes of the arguments what the function's parameters want; `None` when they are plain.
    pub prepare: Option<Py<PyAny>>,
    /// The parameters that are integers.
    pub integers: Vec<Py<PyString>>,
    /// Makes of what the function gives back what goes on the wire.
    pub lower: Py<PyAny>,
    /// Whether it is a tool's, and takes a `Pending` instead of its arguments.
    pub is_looked_at: bool,
    /// Whether it takes arguments and gives a result in JSON: see `Catalog.offer`.
    pub is_native: bool,
    /// What carries such calls out that need no validator.
    pub straight: Option<Straight>,
    /// Whether the last call took long: answers do not wait for such a call.
    pub slow: AtomicBool,
}

impl Target {
    /// One that takes arguments and gives a result in JSON.
    pub fn native(
        py: Python<'_>,
        function: Py<PyAny>,
        lane: Lane,
        straight: Option<Straight>,
    ) -> Self {
        Self {
            function,
            lane,
            takes_tasks: false,
            is_checked: false,
            template: None,
            parameters: Vec::new(),
            context: None,
            prepare: None,
            integers: Vec::new(),
            lower: py.None(),
            is_looked_at: false,
            is_native: true,
            straight,
            slow: AtomicBool::new(true),
        }
    }
}

/// The functions, each under the number of its operation. Those of removed entries are kept until
/// [`retain`](Self::retain).
#[derive(Clone, Debug, Default)]
pub struct Targets(BTreeMap<u32, Arc<Target>>);

impl Targets {
    /// What carries out the operation that has this number.
    pub fn get(&self, number: u32) -> Option<&Arc<Target>> {
        self.0.get(&number)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.0.values()
    }

    /// Adds an entry, here and to the registry, under the same number.
    pub fn add(&mut self, registry: &mut Registry, entry: Definition) -> Result<(), RegistryError> {
        let operation = match entry.kind.as_str() {
            "tool" => Operation::CallTool(registry.add_tool(entry.tool())?),
            "resource" => Operation::ReadResource(registry.add_resource(entry.resource())?),
            "template" => Operation::ReadTemplate(registry.add_template(entry.resource())?),
            "prompt" => Operation::GetPrompt(registry.add_prompt(entry.prompt())?),
            _ => {
                registry.offer_completion();
                Operation::Complete
            }
        };
        let target = Arc::new(entry.into_target());
        self.0.insert(operation.to_target(), target);
        Ok(())
    }

    /// Forgets what the registry has no longer.
    pub fn retain(&mut self, registry: &Registry) {
        self.0
            .retain(|number, _| registry.has(Operation::from_target(*number)));
    }
}
