//! A server and the settings it is built with.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use super::approval::Marked;
use super::cache::CacheScope;
use super::handlers::Handlers;
use super::live::Live;
use super::registry::{Registry, RegistryError};
use super::seal::Seal;
use super::tasks::TaskLimits;
use crate::connection::{Config, Handle, Trace};
use crate::handler::HandlerError;
use crate::limits::Limits;
use crate::mcp::{Profile, Revisions};
use crate::policy::Policy;

/// A server: what it offers and the handlers of it. Cheap to clone; one server may serve many
/// connections.
#[derive(Clone)]
pub struct Server {
    pub(super) live: Arc<Live<Handlers>>,
    /// Without one, nothing is given to clients to keep.
    pub(super) seal: Option<Seal>,
    config: Arc<Config>,
}

impl Server {
    /// Begins a server of that name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            version: version.into(),
            ..Builder::of(Registry::new(), Handlers::default())
        }
    }

    /// What it offers at the moment.
    pub fn registry(&self) -> Arc<Registry> {
        self.live.offer().registry
    }

    /// What it does against good advice, a sentence each: names that some clients do not take
    /// (R-NAM-01), resources at URIs that are for what clients can fetch themselves (R-RES-11), and
    /// what was noticed while it served. Nothing of it is refused.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    /// let server = Server::builder("shop", "1.0.0")
    ///     .tool(Tool::new("place order"), |_: Arguments, _| async { "ordered" })
    ///     .build()?;
    /// assert!(server.warnings()[0].contains("place order"));
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn warnings(&self) -> Vec<String> {
        self.registry().warnings()
    }

    /// What it brings to a connection.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("registry", &self.registry())
            .finish_non_exhaustive()
    }
}

/// Gathers what a server offers. See [`Server::builder`].
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    name: String,
    version: String,
    instructions: Option<String>,
    limits: Limits,
    revisions: Revisions,
    actions: bool,
    pub(super) registry: Registry,
    pub(super) handlers: Handlers,
    trace: Option<Trace>,
    seal: Option<Seal>,
    single_use: bool,
    failure: Option<RegistryError>,
}

impl Builder {
    /// One that goes on from what is registered already.
    pub(super) fn of(registry: Registry, handlers: Handlers) -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            instructions: None,
            limits: Limits::STDIO,
            revisions: Revisions::ALL,
            actions: true,
            registry,
            handlers,
            trace: None,
            seal: None,
            single_use: false,
            failure: None,
        }
    }

    /// What was registered.
    pub(super) fn into_parts(mut self) -> Result<(Registry, Handlers), RegistryError> {
        match self.failure {
            Some(error) => Err(error),
            None => {
                self.handlers.follow(&self.registry);
                Ok((self.registry, self.handlers))
            }
        }
    }

    /// The key that signs what clients keep for the server between the rounds of a call
    /// (2026-07-28, R-MRT-08); random by default. Give the same to servers in several processes
    /// that a client may reach in turn, and keep it secret.
    pub fn state_key(mut self, key: [u8; 32]) -> Self {
        self.seal = Some(Seal::new(key));
        self
    }

    /// Takes each of those back only once (R-MRT-09): for calls that must not be made twice with
    /// one answer of the user's. A client whose call was lost on the way has to ask anew then.
    /// What was taken back is remembered in this process.
    pub fn single_use_states(mut self) -> Self {
        self.single_use = true;
        self
    }

    /// Announces that the lists may change while clients are connected: see
    /// [`Server::change`]. Tools, resources and prompts are offered then even if there are none
    /// yet.
    pub fn list_changes(mut self) -> Self {
        self.registry.announce_changes();
        self
    }

    /// Lets clients subscribe to resources: they are told by [`Server::resource_updated`].
    pub fn subscriptions(mut self) -> Self {
        self.registry.offer_subscriptions();
        self
    }

    /// Takes a tool away: for [`Server::change`]. Nothing happens when there is none.
    pub fn remove_tool(mut self, name: &str) -> Self {
        self.registry.remove_tool(name);
        self
    }

    /// Takes a resource away: for [`Server::change`]. Nothing happens when there is none.
    pub fn remove_resource(mut self, uri: &str) -> Self {
        self.registry.remove_resource(uri);
        self
    }

    /// Takes a prompt away: for [`Server::change`]. Nothing happens when there is none.
    pub fn remove_prompt(mut self, name: &str) -> Self {
        self.registry.remove_prompt(name);
        self
    }

    /// Takes resource templates away: for [`Server::change`]. Nothing happens when there is none.
    pub fn remove_resource_template(mut self, template: &str) -> Self {
        self.registry.remove_template(template);
        self
    }

    /// What the server tells the model about itself.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// The bounds of each connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The revisions to speak; all of them by default.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Shows every frame, with secrets masked.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Calls `hook` when a connection is open for operation: a client of the handshake era has
    /// said that it is initialized. On the driver's thread; must not block.
    pub fn on_initialized(mut self, hook: impl Fn(&Handle) + Send + Sync + 'static) -> Self {
        self.handlers.initialized = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a client of the handshake era says that it has other roots now (R-ROO-02).
    /// On the driver's thread; must not block.
    pub fn on_roots_changed(mut self, hook: impl Fn(&Handle) + Send + Sync + 'static) -> Self {
        self.handlers.roots_changed = Some(Arc::new(hook));
        self
    }

    /// Offers an extension with these settings, a JSON object, from 2026-07-28 on.
    /// [`Context::extension`](super::Context::extension) says whether a client declared it, too.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Context, Server, Tool};
    ///
    /// let server = Server::builder("search", "1.0.0")
    ///     .extension("com.example/ranking", "{}")
    ///     .tool(Tool::new("search"), |_: Arguments, context: Context| async move {
    ///         match context.extension("com.example/ranking") {
    ///             Some(settings) => format!("ranked by {settings}"),
    ///             None => "found".to_owned(),
    ///         }
    ///     })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn extension(mut self, id: &str, settings: &str) -> Self {
        if let Err(error) = self.registry.add_extension(id, settings) {
            self.fail(error);
        }
        self
    }

    /// Adds a skill (2026-07-28, the extension [`SKILLS`](crate::mcp::extension::SKILLS)): see
    /// [`Skill`](super::Skill). In every revision its files can be read as resources.
    #[cfg(feature = "skills")]
    pub fn skill(mut self, skill: super::Skill) -> Self {
        if let Err(error) = self.registry.add_skill(skill) {
            self.fail(error);
        }
        self
    }

    /// Speaks as that profile has it, up to 2025-11-25: see [`Profile`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.registry.set_profile(profile);
        self
    }

    /// Holds what clients ask, and what they are answered, against these rules: permissions, rates,
    /// timeouts, what is masked and what is written down. See [`policy`](crate::policy).
    pub fn policy(mut self, policy: Policy) -> Self {
        self.registry.set_policy(Arc::new(policy));
        self
    }

    /// Declares something as `experimental`, with these settings, a JSON object.
    pub fn experimental(mut self, name: &str, settings: &str) -> Self {
        if let Err(error) = self.registry.add_experimental(name, settings) {
            self.fail(error);
        }
        self
    }

    /// Whether requests of the [action dialect](crate::action) are answered, too, on the same
    /// carriers: each tool is an action (R-ACT-41). They are by default.
    pub fn actions(mut self, taken: bool) -> Self {
        self.actions = taken;
        self
    }

    /// Has `mcp.health_check` of the action dialect ask `health`: its error is told as
    /// `DEPENDENCY_ERROR`. On the driver's thread; must not block. Without it a server that
    /// answers is well.
    pub fn health(
        mut self,
        health: impl Fn() -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.registry.set_health(health);
        self
    }

    /// Has answers of actions refer to data of more than so many bytes, instead of holding them
    /// (R-ACT-29): a client has them in parts, by `mcp.get_data`, for so long. That of this package does
    /// so by itself. At most [`MAX_REFERRED_BYTES`](crate::limits::MAX_REFERRED_BYTES) are kept in all,
    /// the oldest give way; what is longer still, and results of inline tools and of batches, are
    /// answered whole.
    ///
    /// ```
    /// use std::time::Duration;
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// let server = Server::builder("archive", "1.0.0")
    ///     .references(1 << 20, Duration::from_secs(60))
    ///     .tool(Tool::new("pages.read"), |_: Arguments, _| async { "x".repeat(5 << 20) })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn references(mut self, max_bytes: usize, ttl: Duration) -> Self {
        self.registry.set_references(max_bytes, ttl);
        self
    }

    /// Bounds what is kept of tasks.
    pub fn task_limits(mut self, limits: TaskLimits) -> Self {
        self.registry.set_task_limits(limits);
        self
    }

    /// Calls `hook` when a connection has ended. On the driver's thread; must not block.
    pub fn on_closed(mut self, hook: impl Fn(&Handle) + Send + Sync + 'static) -> Self {
        self.handlers.closed = Some(Arc::new(hook));
        self
    }

    /// Lets clients keep the lists for so long before they ask again (2026-07-28); not at all by
    /// default. What is [`Public`](CacheScope::Public) may be shown to other users. A change that
    /// is told ends it earlier.
    pub fn cache_lists(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.registry.set_list_cache(ttl, scope);
        self
    }

    /// Gives lists out in pages of so many items. Without it every list is one page.
    pub fn page_size(mut self, items: NonZeroUsize) -> Self {
        self.registry.set_page_size(items);
        self
    }

    pub(super) fn fail(&mut self, error: RegistryError) {
        self.failure.get_or_insert(error);
    }

    /// The server.
    ///
    /// # Errors
    /// The first thing that could not be registered.
    pub fn build(mut self) -> Result<Server, RegistryError> {
        let mut config = self.registry.config(&self.name, &self.version);
        config.instructions = self.instructions.take().map(Into::into);
        config.limits = self.limits.clone();
        config.trace = self.trace.take();
        config.revisions = self.revisions;
        config.actions = self.actions;
        let seal = self.seal.take().or_else(Seal::random);
        let once = self.single_use;
        let seal = seal.map(|seal| if once { seal.single_use() } else { seal });
        let (registry, handlers) = self.into_parts()?;
        registry.knows_tools(handlers.marked().flat_map(Marked::names))?;
        Ok(Server {
            seal,
            live: Arc::new(Live::new(registry, handlers)),
            config: Arc::new(config),
        })
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
