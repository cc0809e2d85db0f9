//! The setup of a server, as the Python package describes it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::Config;
use mcpbolt::io::trace_to;
use mcpbolt::limits::TotalLimits;
use mcpbolt::policy::Policy;
use mcpbolt::server::{CacheScope, Registry, Skill, StateSigner, TaskLimits};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::audit;
use crate::definition::Definition;

/// A server's settings, without its entries. JSON values are text.
#[derive(FromPyObject)]
pub struct ServerSetup {
    name: String,
    version: String,
    instructions: Option<String>,
    trace: Option<PathBuf>,
    pub list_changes: bool,
    subscriptions: bool,
    page_size: Option<usize>,
    cache_lists: Option<f64>,
    cache_scope: String,
    extensions: Vec<(String, String)>,
    task_limits: Option<Limits>,
    max_bytes: Option<usize>,
    references: Option<References>,
    state_key: Option<Vec<u8>>,
    pub completion_entry: Option<Definition>,
    pub skills: Vec<SkillFolder>,
    /// The names of the tools that have `sanitise` or `approval` hooks.
    pub looked_at: Vec<String>,
    pub kernel: Option<Py<PyAny>>,
    implementation: Option<String>,
    profile: String,
    policy: Option<PolicySetup>,
    experimental: Vec<(String, String)>,
    actions: bool,
    pub on_initialized: Option<Py<PyAny>>,
    pub on_roots_changed: Option<Py<PyAny>>,
}

/// The policy of a server, as JSON, and the audit callback.
#[derive(FromPyObject)]
struct PolicySetup {
    json: String,
    audit: Option<Py<PyAny>>,
}

impl PolicySetup {
    fn read(&self, py: Python<'_>) -> PyResult<Policy> {
        let policy = Policy::from_json(&self.json).map_err(wrong)?;
        match &self.audit {
            None => Ok(policy),
            Some(audit) => audit::told(policy, audit.clone_ref(py)),
        }
    }
}

/// The limits of tasks. Times are in seconds.
#[derive(FromPyObject)]
struct Limits {
    tasks: Option<usize>,
    per_owner: Option<usize>,
    bytes: Option<usize>,
    ttl: Option<f64>,
    poll_interval: Option<f64>,
}

/// The size in bytes above which data is sent as a reference, and the seconds that it is kept.
#[derive(FromPyObject)]
struct References {
    over_bytes: usize,
    ttl: f64,
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
    pub fn read(&self) -> PyResult<Skill> {
        let skill = Skill::new(&self.manifest).map_err(wrong)?;
        let skill = match self.within.is_empty() {
            true => skill,
            false => skill.within(&self.within),
        };
        let add = |skill: Skill, (path, mime_type, bytes): &(String, String, Vec<u8>)| {
            skill.file(path, mime_type, bytes.as_slice())
        };
        Ok(self.files.iter().fold(skill, add))
    }
}

impl ServerSetup {
    /// Makes a registry with these settings and no entries.
    pub fn registry(&self, py: Python<'_>) -> PyResult<Registry> {
        let mut registry = Registry::new();
        registry.set_profile(self.profile.parse().map_err(wrong)?);
        if let Some(policy) = &self.policy {
            registry.set_policy(Arc::new(policy.read(py)?));
        }
        for (name, settings) in &self.experimental {
            registry.add_experimental(name, settings).map_err(wrong)?;
        }
        if self.list_changes {
            registry.announce_changes();
        }
        if self.subscriptions {
            registry.offer_subscriptions();
        }
        if let Some(size) = self.page_size {
            let size = NonZeroUsize::new(size);
            let none = || PyValueError::new_err("a page has at least one item");
            registry.set_page_size(size.ok_or_else(none)?);
        }
        if let Some(ttl) = self.cache_lists {
            registry.set_list_cache(seconds(ttl)?, scope(&self.cache_scope)?);
        }
        if let Some(limits) = &self.task_limits {
            let own = TaskLimits::default();
            let time = |given: Option<f64>, own| given.map_or(Ok(own), seconds);
            registry.set_task_limits(TaskLimits {
                tasks: limits.tasks.unwrap_or(own.tasks),
                per_owner: limits.per_owner.unwrap_or(own.per_owner),
                bytes: limits.bytes.unwrap_or(own.bytes),
                ttl: time(limits.ttl, own.ttl)?,
                poll_interval: time(limits.poll_interval, own.poll_interval)?,
            });
        }
        if let Some(max_bytes) = self.max_bytes {
            if max_bytes == 0 {
                return Err(PyValueError::new_err("max_bytes is at least 1"));
            }
            let own = TotalLimits::default();
            registry.set_total_limits(TotalLimits { max_bytes, ..own });
        }
        if let Some(references) = &self.references {
            registry.set_references(references.over_bytes, seconds(references.ttl)?);
        }
        for (id, settings) in &self.extensions {
            registry.add_extension(id, settings).map_err(wrong)?;
        }
        Ok(registry)
    }

    /// Makes the configuration of the server's connections.
    pub fn config(&self, registry: &Registry) -> PyResult<Config> {
        let mut config = registry.config(&self.name, &self.version);
        if let Some(implementation) = &self.implementation {
            config.implementation = implementation.as_str().into();
        }
        config.instructions = self.instructions.as_deref().map(Into::into);
        config.trace = self.trace.as_deref().map(trace_to).transpose()?;
        config.actions = self.actions;
        Ok(config)
    }

    /// The signer of the state that clients hold between the rounds of a call.
    pub fn seal(&self) -> PyResult<Option<StateSigner>> {
        let Some(key) = &self.state_key else {
            return Ok(StateSigner::random());
        };
        let key = key.as_slice().try_into();
        let short = |_| PyValueError::new_err("the key of the state has 32 bytes");
        Ok(Some(StateSigner::new(key.map_err(short)?)))
    }
}

/// Parses the scope of a cache.
pub fn scope(name: &str) -> PyResult<CacheScope> {
    match name {
        "public" => Ok(CacheScope::Public),
        "private" => Ok(CacheScope::Private),
        _ => Err(PyValueError::new_err(
            "a scope is \"public\" or \"private\"",
        )),
    }
}

/// A `ValueError` with the error's text.
pub fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a time is a positive number of seconds"))
}
