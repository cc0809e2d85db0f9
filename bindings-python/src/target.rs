//! The functions of a server, and how each is called.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpbolt::connection::Operation;
use mcpbolt::server::{Registry, Template};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::plain::{Parameters, Returns};
use crate::straight::Straight;

/// The operation of all lists, if they pass through middleware.
pub const LISTS: Operation = Operation::Own(1);

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
    /// Parses the name that the Python package uses.
    pub fn parse(name: &str) -> Self {
        match name {
            "inline" => Self::Inline,
            "task" => Self::Task,
            _ => Self::Worker,
        }
    }
}

/// A function, and how to call it.
#[derive(Debug)]
pub struct Target {
    pub function: Py<PyAny>,
    pub lane: Lane,
    /// Whether its calls may run as MCP tasks.
    pub takes_tasks: bool,
    /// Whether its results are validated against an output schema.
    pub is_checked: bool,
    /// The URI template of a resource template: its variables are the arguments.
    pub template: Option<Template>,
    /// The parameters for arguments.
    pub parameters: Vec<Py<PyString>>,
    /// The parameter that takes the context.
    pub context: Option<Py<PyString>>,
    /// Validates arguments and converts them to the types of the parameters; `None` if the engine checks
    /// them against the tool's schema, and none needs conversion.
    pub prepare: Option<Py<PyAny>>,
    /// The types of the parameters, if all are plain: arguments of these types need no `prepare`.
    pub plain: Option<Parameters>,
    /// The type of the return value, if it is plain: values of this type need no `lower`.
    pub returns: Option<Returns>,
    /// Converts the function's return value to a result.
    pub lower: Py<PyAny>,
    /// Whether the function has layers around it, so that it takes a `Pending` instead of its arguments.
    pub is_layered: bool,
    /// Identifies the mounted server that has the entry; `None` for the server itself.
    pub owner: Option<usize>,
    /// Called with the unexpected failures of the function: see [`Served::failed`](crate::served::Served::failed).
    pub failed: Option<Py<PyAny>>,
    /// Whether it takes arguments and returns a result in JSON: see `Catalog.offer`.
    pub is_native: bool,
    /// For a native function, the way to carry out calls that need no validator.
    pub straight: Option<Straight>,
    /// Whether the last call was slow: answers of other calls do not wait for such a call.
    pub slow: AtomicBool,
}

impl Target {
    /// Shows the garbage collector the Python objects held here, unless a running call also holds this
    /// target.
    pub fn visit(this: &Arc<Self>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if Arc::strong_count(this) > 1 {
            return Ok(());
        }
        visit.call(&this.function)?;
        visit.call(&this.prepare)?;
        visit.call(&this.lower)?;
        visit.call(&this.failed)?;
        let straight = this.straight.as_ref();
        straight.map_or(Ok(()), |straight| straight.visit(visit))
    }

    /// Makes a target that takes arguments and returns a result in JSON.
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
            plain: None,
            returns: None,
            lower: py.None(),
            is_layered: false,
            owner: None,
            failed: None,
            is_native: true,
            straight,
            slow: AtomicBool::new(true),
        }
    }
}

/// The functions of a server by their operations. Functions of removed entries are kept
/// until [`retain`](Self::retain).
#[derive(Clone, Debug, Default)]
pub struct Targets(BTreeMap<Operation, Arc<Target>>);

impl Targets {
    pub fn get(&self, operation: Operation) -> Option<&Arc<Target>> {
        self.0.get(&operation)
    }

    /// Adds the function for an operation.
    pub fn insert(&mut self, operation: Operation, target: Target) {
        self.0.insert(operation, Arc::new(target));
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.0.values()
    }

    /// Removes the functions whose entries the registry no longer has.
    pub fn retain(&mut self, registry: &Registry) {
        self.0
            .retain(|operation, _| *operation == LISTS || registry.has(*operation));
    }
}
