//! The catalog of a Python server: the engine's registry, and the functions for its entries.

use std::sync::Arc;

use mcpbolt::mcp::{Method, Revision};
use mcpbolt::server::{Change, SharedRegistry};
use mcpbolt::settings::{Seconds, ServerSettings};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::audit;
use crate::definition::{Entry, SkillFolder};
use crate::kernel::Kernel;
use crate::served::Served;
use crate::settings::{read, unusable, wrong};
use crate::straight::Straight;
use crate::target::{Lane, Target, Targets};
use crate::telemetry::Telemetry;
use crate::verifier::{Verifier, Verifying};

/// Everything that a server offers, shared by all its connections.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Catalog {
    pub shared: Arc<Served>,
}

/// The Python `Settings`.
#[derive(FromPyObject)]
struct Settings {
    /// The [`ServerSettings`], as JSON.
    json: String,
    skills: Vec<SkillFolder>,
    /// The names of the tools that have `sanitise` or `approval` hooks.
    hooked: Vec<String>,
    kernel: Option<Py<PyAny>>,
    audit: Option<Py<PyAny>>,
    verifier: Option<Verifying>,
    telemetry: Option<Py<Telemetry>>,
    /// Whether a front before this server enforces the policy.
    is_behind_front: bool,
    on_initialized: Option<Py<PyAny>>,
    on_roots_changed: Option<Py<PyAny>>,
    failed: Py<PyAny>,
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
    fn new(py: Python<'_>, settings: Settings, entries: Vec<Entry>) -> PyResult<Self> {
        let given = settings;
        let settings: ServerSettings<Seconds> = read(&given.json)?;
        let (mut registry, mut targets) =
            (settings.registry().map_err(unusable)?, Targets::default());
        let failed = given.failed.clone_ref(py);
        let verifier = given.verifier.map(|it| Verifier::new(it, failed));
        let mut enforced = None;
        if let Some(policy) = settings.policy().map_err(unusable)? {
            let policy = match given.audit {
                None => policy,
                Some(report) => audit::reported(policy, report, given.failed.clone_ref(py))?,
            };
            let policy = match &verifier {
                None => policy,
                Some(verifier) => verifier.of(policy),
            };
            let policy = Arc::new(policy);
            if !given.is_behind_front {
                registry.set_policy(policy.clone());
            }
            enforced = Some(policy);
        }
        for entry in entries {
            let (listed, target) = entry.read(py)?;
            targets.insert(listed.register(&mut registry).map_err(wrong)?, target);
        }
        let hooked = given.hooked.iter().map(String::as_str);
        registry.knows_tools(hooked).map_err(wrong)?;
        for folder in given.skills {
            registry.add_skill(folder.read()?).map_err(wrong)?;
        }
        let mut config = settings.config(&registry)?;
        if let Some(telemetry) = &given.telemetry {
            config.observer = Some(Arc::new(telemetry.get().observer.clone()));
        }
        let kernel = given.kernel.map(|face| Kernel::new(py, face)).transpose()?;
        let needs_loop = kernel.is_some()
            || settings.list_changes
            || verifier.as_ref().is_some_and(|it| it.is_async)
            || targets.all().any(|one| one.lane == Lane::Task);
        let shared = Served {
            live: Arc::new(SharedRegistry::new(registry, targets)),
            config: Arc::new(config),
            state_signer: settings.state_signer(),
            kernel,
            needs_loop,
            policy: enforced,
            telemetry: given.telemetry,
            verifier,
            on_initialized: given.on_initialized,
            on_roots_changed: given.on_roots_changed,
            failed: given.failed,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Replaces the keys that signed tokens are verified with: a JSON object by `kid`.
    fn replace_jwt_keys(&self, keys: &str) -> PyResult<()> {
        let policy = self
            .shared
            .policy
            .as_ref()
            .ok_or_else(|| wrong("this server has no policy whose keys could be replaced"))?;
        policy.replace_jwt_keys(keys).map_err(wrong)
    }

    /// Adds an entry, on all connections.
    fn add(&self, py: Python<'_>, entry: Entry) -> PyResult<()> {
        let (listed, target) = entry.read(py)?;
        let added = self.shared.live.change(|mut registry, mut targets| {
            targets.insert(listed.register(&mut registry)?, target);
            Ok((registry, targets))
        });
        added.map_err(wrong)
    }

    /// Adds a skill, on all connections.
    fn add_skill(&self, skill: SkillFolder) -> PyResult<()> {
        let skill = skill.read()?;
        let added = self.shared.live.change(|mut registry, targets| {
            registry.add_skill(skill)?;
            Ok((registry, targets))
        });
        added.map_err(wrong)
    }

    /// Removes an entry, on all connections; returns whether it existed.
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

    /// Has a function answer requests of that method for that name instead of the kernel. The function
    /// takes the arguments (a JSON object) or the URI, and the revision; it returns the result, a JSON
    /// object. `straight` handles calls that need no validator. Without a function the kernel answers
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

    /// Has the engine answer requests of that method for a whole list with that result, a JSON object;
    /// without a result the kernel answers again.
    fn show(&self, method: &str, revision: &str, result: Option<&str>) -> PyResult<()> {
        let (kernel, method) = self.native(method)?;
        let revision = Revision::parse(revision).ok_or_else(|| wrong("no such revision"))?;
        kernel.natives.show(method, revision, result);
        Ok(())
    }

    /// Notifies the clients that subscribed to a resource that it has changed.
    fn resource_updated(&self, uri: &str) {
        let registry = self.shared.live.snapshot().registry;
        registry.tell(Change::Resource(uri));
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        Served::visit(&self.shared, &visit)
    }

    /// Whether a connection uses this catalog.
    #[getter]
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }

    /// Whether anything runs on an event loop, now or after a change.
    #[getter]
    fn needs_loop(&self) -> bool {
        self.shared.needs_loop
    }
}
