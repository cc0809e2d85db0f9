//! What a Python server offers: the engine's registry, and beside it the functions.

use std::sync::Arc;

use mcpbolt::connection::Config;
use mcpbolt::server::{Change, Live, Seal};
use pyo3::prelude::*;

use crate::definition::Definition;
use crate::setup::{ServerSetup, SkillFolder, wrong};
use crate::target::{Lane, Targets};

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
    /// Whether anything runs on an event loop, now or after a change.
    pub needs_loop: bool,
    /// Whom clients that are ready, or have other roots, are told to.
    pub on_initialized: Option<Py<PyAny>>,
    pub on_roots_changed: Option<Py<PyAny>>,
}

#[pymethods]
impl Catalog {
    #[new]
    fn new(mut setup: ServerSetup, entries: Vec<Definition>) -> PyResult<Self> {
        let (mut registry, mut targets) = (setup.registry()?, Targets::default());
        for entry in entries.into_iter().chain(setup.completion_entry.take()) {
            targets.add(&mut registry, entry).map_err(wrong)?;
        }
        let seal = setup.seal()?;
        for folder in setup.skills.iter() {
            registry.add_skill(folder.read()?).map_err(wrong)?;
        }
        let config = Arc::new(setup.config(&registry)?);
        let needs_loop = setup.list_changes || targets.all().any(|one| one.lane == Lane::Task);
        let shared = Shared {
            live: Arc::new(Live::new(registry, targets)),
            config,
            seal,
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
