//! How a server is set up, as the face describes it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::Config;
use mcpbolt::io::trace_to;
use mcpbolt::policy::Policy;
use mcpbolt::server::{CacheScope, Registry, Seal, Skill, TaskLimits};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::audit;
use crate::definition::Definition;

/// All but the entries. What is JSON is text.
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
    references: Option<References>,
    state_key: Option<Vec<u8>>,
    pub completion_entry: Option<Definition>,
    pub skills: Vec<SkillFolder>,
    /// The tools whose calls the program looks at.
    pub looked_at: Vec<String>,
    pub kernel: Option<Py<PyAny>>,
    implementation: Option<String>,
    profile: String,
    policy: Option<PolicySetup>,
    experimental: Vec<(String, String)>,
    pub on_initialized: Option<Py<PyAny>>,
    pub on_roots_changed: Option<Py<PyAny>>,
}

/// The rules of a server: JSON, and who is told of what is done.
#[derive(FromPyObject)]
struct PolicySetup {
    json: String,
    audit: Option<Py<PyAny>>,
}

impl PolicySetup {
    fn read(&self, py: Python<'_>) -> PyResult<Policy> {
        let policy = Policy::from_json(&self.json).map_err(wrong)?;
        Ok(match &self.audit {
            None => policy,
            Some(audit) => policy.audit(audit::teller(audit.clone_ref(py))?),
        })
    }
}

/// What is kept of tasks. Times are in seconds.
#[derive(FromPyObject)]
struct Limits {
    tasks: Option<usize>,
    bytes: Option<usize>,
    ttl: Option<f64>,
    poll_interval: Option<f64>,
}

/// From how many bytes on data are referred to, and for how many seconds they are kept.
#[derive(FromPyObject)]
struct References {
    over_bytes: usize,
    ttl: f64,
}

/// A skill: its manifest, the folder it is within, and its other files: path, MIME type, bytes.
#[derive(FromPyObject)]
pub struct SkillFolder {
    manifest: String,
    within: String,
    files: Vec<(String, String, Vec<u8>)>,
}

impl SkillFolder {
    /// # Errors
    /// When it is no skill.
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
    /// A registry that offers nothing yet.
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
                bytes: limits.bytes.unwrap_or(own.bytes),
                ttl: time(limits.ttl, own.ttl)?,
                poll_interval: time(limits.poll_interval, own.poll_interval)?,
            });
        }
        if let Some(references) = &self.references {
            registry.set_references(references.over_bytes, seconds(references.ttl)?);
        }
        for (id, settings) in &self.extensions {
            registry.add_extension(id, settings).map_err(wrong)?;
        }
        Ok(registry)
    }

    /// What its connections begin with.
    pub fn config(&self, registry: &Registry) -> PyResult<Config> {
        let mut config = registry.config(&self.name, &self.version);
        if let Some(implementation) = &self.implementation {
            config.implementation = implementation.as_str().into();
        }
        config.instructions = self.instructions.as_deref().map(Into::into);
        config.trace = self.trace.as_deref().map(trace_to).transpose()?;
        Ok(config)
    }

    /// What signs what clients keep for the server between the rounds of a call.
    pub fn seal(&self) -> PyResult<Option<Seal>> {
        let Some(key) = &self.state_key else {
            return Ok(Seal::random());
        };
        let key = key.as_slice().try_into();
        let short = |_| PyValueError::new_err("the key of the state has 32 bytes");
        Ok(Some(Seal::new(key.map_err(short)?)))
    }
}

/// Whom what is kept may be shown to.
pub fn scope(name: &str) -> PyResult<CacheScope> {
    match name {
        "public" => Ok(CacheScope::Public),
        "private" => Ok(CacheScope::Private),
        _ => Err(PyValueError::new_err(
            "a scope is \"public\" or \"private\"",
        )),
    }
}

/// What cannot be registered.
pub fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a time is a positive number of seconds"))
}
