//! A server's name, capabilities and limits, without its tools, resources and prompts.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{SettingsError, parsed, set};
use crate::connection::Config;
use crate::io::trace_to;
use crate::limits::TotalLimits;
use crate::mcp::Profile;
use crate::policy::Policy;
use crate::server::{CacheScope, Registry, StateSigner, TaskLimits};

/// How long data that answers refer to are kept by default.
const REFERENCE_TTL: Duration = Duration::from_secs(60);

/// A server's name, capabilities and limits. The tools, resources and prompts are added to its
/// [`registry`](Self::registry).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerSettings<T> {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Whether lists may change while clients are connected.
    #[serde(default)]
    pub list_changes: bool,
    /// Whether clients may subscribe to resources.
    #[serde(default)]
    pub subscriptions: bool,
    /// Items on a page of a list; one page by default.
    pub page_size: Option<NonZeroUsize>,
    /// How long clients may cache lists; not at all by default.
    pub cache_lists: Option<T>,
    /// The clients that may cache lists.
    #[serde(default)]
    pub cache_scope: ListScope,
    /// The settings of each extension.
    #[serde(default)]
    pub extensions: BTreeMap<String, Box<RawValue>>,
    /// The settings of each experimental capability.
    #[serde(default)]
    pub experimental: BTreeMap<String, Box<RawValue>>,
    /// Limits of the tasks that the server stores.
    pub task_limits: Option<TaskSettings<T>>,
    /// Memory that all connections may take together: see [`TotalLimits::max_bytes`].
    pub max_bytes: Option<NonZeroUsize>,
    /// When the action dialect answers with references instead of data.
    pub references: Option<ReferenceSettings<T>>,
    /// The 32 bytes that sign the state that clients hold between the rounds of a call; random by default.
    pub state_key: Option<[u8; 32]>,
    /// The variant of the protocol to speak.
    #[serde(default, deserialize_with = "parsed")]
    pub profile: Option<Profile>,
    /// The policy: see [`Policy::from_json`].
    pub policy: Option<Box<RawValue>>,
    /// Whether requests of the action dialect are answered.
    #[serde(default)]
    pub actions: bool,
    /// Replaces name and version in what clients are told: an `Implementation`.
    pub implementation: Option<Box<RawValue>>,
    /// The file that all messages are traced to; `-` for stderr.
    pub trace: Option<PathBuf>,
}

/// The clients that may cache a list or a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ListScope {
    /// Anybody: lists are the same for all users.
    Public,
    /// Only the client that asked.
    #[default]
    Private,
}

impl From<ListScope> for CacheScope {
    fn from(scope: ListScope) -> Self {
        match scope {
            ListScope::Public => Self::Public,
            ListScope::Private => Self::Private,
        }
    }
}

/// Limits of the tasks that a server stores: see [`TaskLimits`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the limits they set")]
pub struct TaskSettings<T> {
    pub tasks: Option<usize>,
    pub per_owner: Option<usize>,
    pub bytes: Option<usize>,
    pub ttl: Option<T>,
    pub poll_interval: Option<T>,
}

/// The data that the action dialect sends as a reference.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReferenceSettings<T> {
    /// Data of more bytes than this are sent as a reference.
    pub over_bytes: usize,
    /// How long the data are kept; 60 s by default.
    pub ttl: Option<T>,
}

impl<T: Copy + Into<Duration>> ServerSettings<T> {
    /// A registry with these settings, without entries and without the policy.
    ///
    /// # Errors
    /// When the settings of an extension or of an experimental capability are not an object, or an
    /// extension's name has no prefix.
    pub fn registry(&self) -> Result<Registry, SettingsError> {
        let mut registry = Registry::new();
        if let Some(profile) = self.profile {
            registry.set_profile(profile);
        }
        for (name, settings) in &self.experimental {
            let added = registry.add_experimental(name, settings.get());
            added.map_err(|error| SettingsError::at("experimental", error))?;
        }
        for (id, settings) in &self.extensions {
            let added = registry.add_extension(id, settings.get());
            added.map_err(|error| SettingsError::at("extensions", error))?;
        }
        if self.list_changes {
            registry.announce_changes();
        }
        if self.subscriptions {
            registry.offer_subscriptions();
        }
        if let Some(size) = self.page_size {
            registry.set_page_size(size);
        }
        if let Some(ttl) = self.cache_lists {
            registry.set_list_cache(ttl.into(), self.cache_scope.into());
        }
        if let Some(given) = &self.task_limits {
            let mut limits = TaskLimits::default();
            set(&mut limits.tasks, given.tasks);
            set(&mut limits.per_owner, given.per_owner);
            set(&mut limits.bytes, given.bytes);
            set(&mut limits.ttl, given.ttl);
            set(&mut limits.poll_interval, given.poll_interval);
            registry.set_task_limits(limits);
        }
        if let Some(max_bytes) = self.max_bytes {
            registry.set_total_limits(TotalLimits {
                max_bytes: max_bytes.get(),
                ..TotalLimits::default()
            });
        }
        if let Some(references) = &self.references {
            let ttl = references.ttl.map_or(REFERENCE_TTL, Into::into);
            registry.set_references(references.over_bytes, ttl);
        }
        Ok(registry)
    }

    /// The policy. It has no function for audit events yet.
    ///
    /// # Errors
    /// As [`Policy::from_json`].
    pub fn policy(&self) -> Result<Option<Policy>, SettingsError> {
        let policy = self
            .policy
            .as_ref()
            .map(|json| Policy::from_json(json.get()));
        policy
            .transpose()
            .map_err(|error| SettingsError::at("policy", error))
    }

    /// The configuration of the server's connections. Call it after all entries are in the registry.
    ///
    /// # Errors
    /// When the trace file cannot be opened.
    pub fn config(&self, registry: &Registry) -> io::Result<Config> {
        let mut config = registry.config(&self.name, &self.version);
        if let Some(implementation) = &self.implementation {
            config.implementation = implementation.get().into();
        }
        config.instructions = self.instructions.as_deref().map(Into::into);
        config.trace = self.trace.as_deref().map(trace_to).transpose()?;
        config.actions = self.actions;
        Ok(config)
    }

    /// The signer of the state that clients hold between the rounds of a call; `None` if no key was given
    /// and the system has no random numbers.
    pub fn state_signer(&self) -> Option<StateSigner> {
        match self.state_key {
            None => StateSigner::random(),
            Some(key) => Some(StateSigner::new(key)),
        }
    }
}
