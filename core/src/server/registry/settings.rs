//! The settings of a registry.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::Registry;
use super::actions::Health;
use super::capabilities::is_object;
use super::error::RegistryError;
use crate::connection::{Budget, References};
use crate::handler::HandlerError;
use crate::limits::TotalLimits;
#[cfg(feature = "http")]
use crate::mcp::header::HeaderParam;
#[cfg(feature = "client")]
use crate::mcp::header_arguments::HeaderArguments;
use crate::mcp::{Method, Profile, extension};
use crate::policy::Policy;
use crate::server::access::{Access, Guard};
use crate::server::cache_hint::{CacheHint, CacheScope};
#[cfg(feature = "skills")]
use crate::server::skills::Skills;
use crate::server::subscriptions::Subscribers;
use crate::server::tasks::{TaskLimits, Tasks};
use crate::store::SharedStore;

impl Registry {
    /// Announces that the lists may change. Tools, resources and prompts are then declared even if
    /// their lists are empty.
    pub fn announce_changes(&mut self) {
        self.may_change = true;
    }

    /// Lets clients subscribe to resources.
    pub fn offer_subscriptions(&mut self) {
        self.subscribes = true;
    }

    /// Declares the resources capability even while there are none, for tools that embed resources
    /// in their results (R-TOL-13).
    pub fn offer_resources(&mut self) {
        self.offers_resources = true;
    }

    /// Declares the tools capability even while there are none.
    pub fn offer_tools(&mut self) {
        self.offers_tools = true;
    }

    /// Declares completion of arguments: [`Operation::Complete`](crate::connection::Operation).
    pub fn offer_completion(&mut self) {
        self.completes = true;
    }

    /// Speaks this profile of the protocol, up to revision 2025-11-25.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
    }

    /// Applies `policy` to requests and answers: see
    /// [`Builder::policy`](crate::server::Builder::policy).
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = Some(policy);
        self.changed();
    }

    /// Sets the guard to call before every tool call, read, prompt, completion and subscription:
    /// see [`Builder::guard`](crate::server::Builder::guard).
    pub fn set_guard(
        &mut self,
        guard: impl Fn(&Access<'_>) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) {
        self.guard = Some(Guard::new(guard));
    }

    /// Sets the check that `mcp.health_check` runs.
    pub fn set_health(
        &mut self,
        health: impl Fn() -> Result<(), HandlerError> + Send + Sync + 'static,
    ) {
        self.health = Some(Health::new(health));
    }

    /// Answers actions with a reference to data longer than `max_bytes`, which is stored for `ttl`:
    /// see [`Builder::references`](crate::server::Builder::references).
    pub fn set_references(&mut self, max_bytes: usize, ttl: Duration) {
        self.references = Some(Arc::new(References::new(max_bytes, ttl)));
    }

    /// Splits lists into pages of `items` entries. Default: one page per list.
    pub fn set_page_size(&mut self, items: NonZeroUsize) {
        self.page_size = Some(items);
        self.changed();
    }

    /// Lets clients cache all pages of all lists for `ttl` (2026-07-28, R-CCH-06).
    pub fn set_list_cache(&mut self, ttl: Duration, scope: CacheScope) {
        self.cache = CacheHint { ttl, scope };
        self.changed();
    }

    /// Has tasks known to all processes with this store, beginning with the next: see
    /// [`Builder::share_tasks`](crate::server::Builder::share_tasks). Only the first store counts.
    pub fn share_tasks(&self, store: Arc<dyn SharedStore>) {
        self.tasks.share(store);
    }

    /// Sets the limits of stored tasks from now on. Drops all tasks stored so far.
    pub fn set_task_limits(&mut self, limits: TaskLimits) {
        self.tasks = Arc::new(Tasks::new(limits, self.tasks.shared().cloned()));
    }

    /// Sets the limits of all connections together. Call it before [`config`](Self::config).
    pub fn set_total_limits(&mut self, limits: TotalLimits) {
        self.budget = Arc::new(Budget::new(limits));
    }

    /// Declares an extension with these settings, a JSON object, from 2026-07-28 on (R-EXT-02).
    ///
    /// # Errors
    /// When the name has no prefix or the settings are not a JSON object (R-CAP-06).
    pub fn add_extension(&mut self, id: &str, settings: &str) -> Result<(), RegistryError> {
        if !extension::is_id(id) || !is_object(settings) {
            return Err(RegistryError::Extension(id.to_owned()));
        }
        self.extensions.insert(id.to_owned(), settings.to_owned());
        Ok(())
    }

    /// Sets the `_meta` of each page of the list that `method` reads, a JSON object.
    ///
    /// # Errors
    /// When the method reads no list, or the text is not a JSON object.
    pub fn set_list_meta(&mut self, method: Method, meta: String) -> Result<(), RegistryError> {
        let lists = [
            Method::ListTools,
            Method::ListResources,
            Method::ListResourceTemplates,
            Method::ListPrompts,
        ];
        if !lists.contains(&method) || !is_object(&meta) {
            return Err(RegistryError::Json(method.name().to_owned(), "_meta"));
        }
        self.list_meta.retain(|(own, _)| *own != method);
        self.list_meta.push((method, meta.into()));
        Ok(())
    }

    /// The `_meta` of the list that `method` reads, if it has any.
    pub(in crate::server) fn list_meta(&self, method: Method) -> Option<&str> {
        let mut all = self.list_meta.iter();
        let own = all.find(|(own, _)| *own == method);
        own.map(|(_, meta)| &**meta)
    }

    /// Declares an `experimental` capability with these settings, a JSON object.
    ///
    /// # Errors
    /// When the settings are not a JSON object.
    pub fn add_experimental(&mut self, name: &str, settings: &str) -> Result<(), RegistryError> {
        if !is_object(settings) {
            return Err(RegistryError::Json(name.to_owned(), "settings"));
        }
        self.experimental
            .insert(name.to_owned(), settings.to_owned());
        Ok(())
    }

    /// Returns whether the lists are announced to change.
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    pub(in crate::server) fn subscribes(&self) -> bool {
        self.subscribes
    }

    pub(in crate::server) fn completes(&self) -> bool {
        self.completes
    }

    /// Returns the policy, for a custom [`Hosting`](crate::server::Hosting).
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref()
    }

    /// Sets the tools that are not this registry's own, but whose arguments are repeated in headers.
    #[cfg(feature = "client")]
    pub(crate) fn set_mirrored(&mut self, mirrored: Arc<HeaderArguments>) {
        self.mirrored = Some(mirrored);
    }

    /// Returns the header arguments of a tool that is not this registry's own.
    #[cfg(feature = "http")]
    pub(crate) fn mirrored(&self, tool: &str) -> Option<Arc<[HeaderParam]>> {
        self.mirrored.as_ref()?.of(tool)
    }

    /// Returns whether the policy has a verifier of credentials.
    pub(in crate::server) fn verifies(&self) -> bool {
        let policy = self.policy.as_ref();
        policy.is_some_and(|policy| policy.has_verifier())
    }

    pub(in crate::server) fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }

    pub(in crate::server) fn health(&self) -> Option<&Health> {
        self.health.as_ref()
    }

    pub(in crate::server) fn references(&self) -> Option<&Arc<References>> {
        self.references.as_ref()
    }

    pub(in crate::server) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Returns the settings of the `experimental` capability with this name.
    pub(in crate::server) fn experimental(&self, name: &str) -> Option<&str> {
        self.experimental.get(name).map(String::as_str)
    }

    #[cfg(feature = "skills")]
    pub(in crate::server) fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Returns whether calls of any tool may continue as tasks.
    pub(in crate::server) fn has_tasks(&self) -> bool {
        self.has_tasks
    }

    pub(in crate::server) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(in crate::server) fn subscribers(&self) -> &Arc<Subscribers> {
        &self.subscribers
    }
}
