//! What a Python server offers: the engine's registry, and beside it the functions.

use std::sync::Arc;

use mcpbolt::connection::Config;
use mcpbolt::mcp::{Method, Revision};
use mcpbolt::server::{Change, Live, Seal};
use pyo3::prelude::*;

use crate::definition::Definition;
use crate::kernel::Kernel;
use crate::setup::{ServerSetup, SkillFolder, wrong};
use crate::straight::Straight;
use crate::target::{Lane, Target, Targets};

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
    /// What answers that the registry does not have.
    pub kernel: Option<Kernel>,
    /// Whether anything runs on an event loop, now or after a change.
    pub needs_loop: bool,
    /// Whom clients that are ready, or have other roots, are told to.
    pub on_initialized: Option<Py<PyAny>>,
    pub on_roots_changed: Option<Py<PyAny>>,
}

impl Catalog {
    fn native(&self, method: &str) -> PyResult<(&Kernel, Method)> {
        let kernel = self.shared.kernel.as_ref();
        let kernel = kernel.ok_or_else(|| wrong("there is no kernel"))?;
        let method = Method::parse(method).ok_or_else(|| wrong("no such method"))?;
        Ok((kernel, method))
    }
}

#[pymethods]
impl Catalog {
    #[new]
    fn new(py: Python<'_>, mut setup: ServerSetup, entries: Vec<Definition>) -> PyResult<Self> {
        let (mut registry, mut targets) = (setup.registry(py)?, Targets::default());
        for entry in entries.into_iter().chain(setup.completion_entry.take()) {
            targets.add(&mut registry, entry).map_err(wrong)?;
        }
        let looked_at = setup.looked_at.iter().map(String::as_str);
        registry.knows_tools(looked_at).map_err(wrong)?;
        let seal = setup.seal()?;
        for folder in setup.skills.iter() {
            registry.add_skill(folder.read()?).map_err(wrong)?;
        }
        let config = Arc::new(setup.config(&registry)?);
        let kernel = setup.kernel.map(|face| Kernel::new(py, face)).transpose()?;
        let needs_loop = kernel.is_some()
            || setup.list_changes
            || targets.all().any(|one| one.lane == Lane::Task);
        let shared = Shared {
            live: Arc::new(Live::new(registry, targets)),
            config,
            seal,
            kernel,
            needs_loop,
            on_initialized: setup.on_initialized,
            on_roots_changed: setup.on_roots_changed,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Offers one thing more, on all connections.
    fn add(&self, entry: Definition) -> PyResult<()> {
        let added = self.shared.live.change(|mut registry, mut targets| {
            targets.add(&mut registry, entry)?;
            Ok((registry, targets))
        });
        added.map_err(wrong)
    }

    /// Offers one skill more, on all connections.
    fn add_skill(&self, skill: SkillFolder) -> PyResult<()> {
        let skill = skill.read()?;
        let added = self.shared.live.change(|mut registry, targets| {
            registry.add_skill(skill)?;
            Ok((registry, targets))
        });
        added.map_err(wrong)
    }

    /// Offers one thing less. Whether there was one.
    fn remove(&self, kind: &str, name: &str) -> PyResult<bool> {
        let mut found = false;
        let removed = self.shared.live.change(|mut registry, mut targets| {
            found = match kind {
                "tool" => registry.remove_tool(name),
                "resource" => registry.remove_resource(name),
                "template" => registry.remove_template(name),
                _ => registry.remove_prompt(name),
            };
            targets.retain(&registry);
            Ok((registry, targets))
        });
        removed.map(|()| found).map_err(wrong)
    }

    /// Has a function answer requests of that method for that name instead of the kernel: it takes
    /// the arguments, a JSON object, or the URI, and the revision, and gives the result, an object, too.
    /// `straight` carries out what needs no validator. Without a function the kernel answers them
    /// again.
    #[pyo3(signature = (method, name, function, lane = "worker", straight = None))]
    fn offer(
        &self,
        py: Python<'_>,
        method: &str,
        name: &str,
        function: Option<Py<PyAny>>,
        lane: &str,
        straight: Option<Straight>,
    ) -> PyResult<()> {
        let (kernel, method) = self.native(method)?;
        match function {
            Some(function) => {
                let target = Target::native(py, function, Lane::parse(lane), straight);
                kernel.natives.offer(method, name, target);
            }
            None => kernel.natives.withdraw(method, name),
        }
        Ok(())
    }

    /// Has the engine answer requests of that method for a whole list with that result, a JSON
    /// object; without one the kernel answers them.
    fn show(&self, method: &str, revision: &str, result: Option<&str>) -> PyResult<()> {
        let (kernel, method) = self.native(method)?;
        let revision = Revision::parse(revision).ok_or_else(|| wrong("no such revision"))?;
        kernel.natives.show(method, revision, result);
        Ok(())
    }

    /// Tells who subscribed to it that a resource is another now.
    fn resource_updated(&self, uri: &str) {
        let registry = self.shared.live.offer().registry;
        registry.tell(Change::Resource(uri));
    }

    /// Whether a connection has it.
    #[getter]
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Whether an event loop is needed.
    #[getter]
    fn needs_loop(&self) -> bool {
        self.shared.needs_loop
    }
}
