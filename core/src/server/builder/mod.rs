//! The server and its builder.

mod entries;
mod extensions;
mod layers;
mod offer;
#[cfg(feature = "tower")]
mod tower;

pub use self::layers::ProposedCall;
pub use self::offer::{Offer, OfferMethods};
#[cfg(feature = "tower")]
pub use self::tower::HandlerService;

use std::any::TypeId;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cache_hint::CacheScope;
use super::call::{StateSigner, StateUses};
use super::executor::{HandlerExecutor, Handlers};
use super::host::{Hosting, ServerHost};
use super::registry::{Registry, RegistryError};
use super::snapshot::SharedRegistry;
use super::subscriptions::Change;
#[cfg(all(feature = "http", feature = "sealing"))]
use super::subscriptions::ChangeFeed;
use super::tasks::TaskLimits;
use crate::connection::{Config, Handle, Observer, Trace};
use crate::handler::{HandlerError, Spawner};
use crate::limits::{Limits, TotalLimits};
use crate::mcp::{Method, Profile, Revisions};
use crate::policy::Policy;
use crate::store::SharedStore;

/// A server: its tools, resources and prompts with their handlers. Cheap to clone; one server can
/// serve many connections.
#[derive(Clone)]
pub struct Server {
    shared: Arc<SharedRegistry<Handlers>>,
    /// Signs the request state. If `None`, clients are not asked in rounds.
    signer: Option<StateSigner>,
    config: Arc<Config>,
    /// Whether a handler takes the heads of HTTP requests.
    wants_heads: Arc<AtomicBool>,
}

impl Server {
    /// Starts a builder for a server with this name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            version: version.into(),
            ..Builder::of(Registry::new(), Handlers::default())
        }
    }

    /// Returns the registry as it is now. A later [`change`](Self::change) does not affect it.
    pub fn registry(&self) -> Arc<Registry> {
        self.shared.snapshot().registry
    }

    /// Lists departures from recommended practice, one sentence each: names that some clients do
    /// not accept (R-NAM-01), resources under `https:` URIs, which are meant for content that
    /// clients can fetch themselves (R-RES-11), and problems noticed while serving. None of these
    /// is refused.
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

    /// Returns the configuration of this server's connections.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Has `observer` told of the requests and sessions of connections that begin from now on, by this value and its clones.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        Arc::make_mut(&mut self.config).observer = Some(observer);
        self
    }

    /// Changes the registry on all connections at once and notifies clients of the lists that changed
    /// (R-TOL-07, R-RES-09, R-PRM-07). Running calls are finished.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// let server = Server::builder("shop", "1.0.0").list_changes().build()?;
    /// // Later, from any thread, a handler included:
    /// server.change(|offer| {
    ///     offer.tool(Tool::new("order"), |_: Arguments, _| async { "ordered" })
    /// })?;
    /// server.change(|offer| offer.remove_tool("order"))?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// The first registration error, which leaves everything as it was; and [`RegistryError::Fixed`]
    /// when the server was built without [`Builder::list_changes`], so that clients expect no
    /// changes.
    pub fn change(&self, change: impl FnOnce(Builder) -> Builder) -> Result<(), RegistryError> {
        self.shared
            .change(|registry, handlers| change(Builder::of(registry, handlers)).into_parts())
    }

    /// Notifies the clients that subscribed to the resource at `uri` that it has changed
    /// (R-RES-06). See [`Builder::subscriptions`].
    pub fn resource_updated(&self, uri: &str) {
        self.registry().tell(Change::Resource(uri));
    }

    /// Creates the server's side of the connection of `handle`, with its handlers running on
    /// `spawner`. Handlers sleep by the timers of `timers`, if the connection may end before them.
    pub fn host(
        &self,
        handle: Handle,
        timers: Option<&Handle>,
        spawner: Arc<dyn Spawner>,
    ) -> ServerHost {
        let (signer, timers) = (self.signer.clone(), timers.cloned());
        let executor = HandlerExecutor::new(&self.shared, signer, handle.clone(), timers, spawner);
        ServerHost::shared(self.shared.clone(), handle, Box::new(executor))
    }

    /// Returns this server with its handlers running on `spawner`.
    pub fn hosting(&self, spawner: Arc<dyn Spawner>) -> Arc<dyn Hosting> {
        let server = self.clone();
        Arc::new(Hosted { server, spawner })
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("registry", &self.registry())
            .finish_non_exhaustive()
    }
}

struct Hosted {
    server: Server,
    spawner: Arc<dyn Spawner>,
}

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        self.server.config()
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.server.registry().policy().cloned()
    }

    fn wants_heads(&self) -> bool {
        self.server.wants_heads.load(Ordering::Relaxed)
    }

    #[cfg(all(feature = "http", feature = "sealing"))]
    fn change_feed(&self) -> Option<ChangeFeed> {
        Some(self.server.registry().change_feed())
    }

    fn share_states(&self, key: [u8; 32]) {
        if let Some(signer) = &self.server.signer {
            signer.share(key);
        }
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        self.server.host(handle, timers, self.spawner.clone())
    }
}

/// Builds a [`Server`]. See [`Server::builder`].
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    name: String,
    version: String,
    instructions: Option<String>,
    limits: Limits,
    revisions: Revisions,
    actions: bool,
    registry: Registry,
    handlers: Handlers,
    trace: Option<Trace>,
    observer: Option<Arc<dyn Observer>>,
    signer: Option<StateSigner>,
    state_uses: StateUses,
    /// The states that handlers take, each with the handler's name.
    needs: Vec<(String, (TypeId, &'static str))>,
    failure: Option<RegistryError>,
}

impl Builder {
    /// Continues from an existing registry and its handlers.
    fn of(registry: Registry, handlers: Handlers) -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            instructions: None,
            limits: Limits::STDIO,
            revisions: Revisions::ALL,
            actions: false,
            registry,
            handlers,
            trace: None,
            observer: None,
            signer: None,
            state_uses: StateUses::Any,
            needs: Vec::new(),
            failure: None,
        }
    }

    /// Returns the registry and its handlers, or the first registration error.
    fn into_parts(mut self) -> Result<(Registry, Handlers), RegistryError> {
        let states = self.handlers.states.clone().unwrap_or_default();
        let mut needs = self.needs.drain(..);
        if let Some((handler, (_, state))) = needs.find(|(_, (state, _))| !states.has(*state)) {
            let error = RegistryError::NoState(handler, state);
            self.failure.get_or_insert(error);
        }
        drop(needs);
        match self.failure {
            Some(error) => Err(error),
            None => {
                self.handlers.retain(&self.registry);
                Ok((self.registry, self.handlers))
            }
        }
    }

    /// Sets the key that signs `requestState`, which clients hold between the rounds of a call
    /// (2026-07-28, R-MRT-08). Random by default. Workers, and processes with one store, have the same key by
    /// themselves; give it to other processes that one client may reach. Keep it secret.
    pub fn state_key(mut self, key: [u8; 32]) -> Self {
        self.signer = Some(StateSigner::new(key));
        self
    }

    /// Accepts each `requestState` only once (R-MRT-09), for calls that must not run twice on one
    /// answer of the user. A client whose call was lost in transit must then start over. Used
    /// states are remembered by this process only, or by [a store](Self::single_use_states_on): without
    /// one, such a call goes on at its own process alone, unless processes have the same [key](Self::state_key).
    pub fn single_use_states(mut self) -> Self {
        self.state_uses = StateUses::Once(Arc::default());
        self
    }

    /// Accepts each `requestState` only once, whichever process of the server it comes to; all have the same store,
    /// and the same [key](Self::state_key). Each round of a call costs a round trip to the store. While that is away, no state is accepted:
    /// the call fails as by an overloaded server (fails closed).
    pub fn single_use_states_on(mut self, store: Arc<dyn SharedStore>) -> Self {
        self.state_uses = StateUses::OnceAnywhere(store);
        self
    }

    /// Announces that the lists may change while clients are connected: see [`Server::change`]. The
    /// server then declares tools, resources and prompts even while it has none.
    pub fn list_changes(mut self) -> Self {
        self.registry.announce_changes();
        self
    }

    /// Lets clients subscribe to resources; [`Server::resource_updated`] notifies them.
    pub fn subscriptions(mut self) -> Self {
        self.registry.offer_subscriptions();
        self
    }

    /// Removes a tool, for [`Server::change`]. Does nothing if there is none.
    pub fn remove_tool(mut self, name: &str) -> Self {
        self.registry.remove_tool(name);
        self
    }

    /// Removes a resource, for [`Server::change`]. Does nothing if there is none.
    pub fn remove_resource(mut self, uri: &str) -> Self {
        self.registry.remove_resource(uri);
        self
    }

    /// Removes a prompt, for [`Server::change`]. Does nothing if there is none.
    pub fn remove_prompt(mut self, name: &str) -> Self {
        self.registry.remove_prompt(name);
        self
    }

    /// Removes every resource template with exactly this URI template, for [`Server::change`]. Does
    /// nothing if there is none.
    pub fn remove_resource_template(mut self, template: &str) -> Self {
        self.registry.remove_template(template);
        self
    }

    /// Sets the instructions with which the server describes itself to the model.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Sets the limits of each connection. Default: [`Limits::STDIO`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits of all connections together, over all addresses of the server. Default:
    /// [`TotalLimits::default`], 256 MiB; while the server is reached only through a pipe,
    /// [`TotalLimits::PIPE`], 1 GiB.
    ///
    /// ```
    /// use mcpbolt::limits::TotalLimits;
    /// use mcpbolt::server::Server;
    ///
    /// let limits = TotalLimits { max_bytes: 64 << 20, ..TotalLimits::default() };
    /// let server = Server::builder("small", "1.0.0").total_limits(limits).build()?;
    /// assert_eq!(server.config().budget.max_bytes(), 64 << 20);
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn total_limits(mut self, limits: TotalLimits) -> Self {
        self.registry.set_total_limits(limits);
        self
    }

    /// Sets the protocol revisions to speak. Default: all of them.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Has `observer` told of the requests and sessions of all connections, for metrics and traces.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Passes every frame to `trace`, with secrets masked.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Calls `hook` when a client of a handshake revision has sent `notifications/initialized` and
    /// the connection is open for operation. Runs on the driver's thread; must not block.
    pub fn on_initialized(mut self, hook: impl Fn(&Handle) + Send + Sync + 'static) -> Self {
        self.handlers.initialized = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` when a client of a handshake revision announces that its roots changed
    /// (R-ROO-02). Runs on the driver's thread; must not block.
    pub fn on_roots_changed(mut self, hook: impl Fn(&Handle) + Send + Sync + 'static) -> Self {
        self.handlers.roots_changed = Some(Arc::new(hook));
        self
    }

    /// Declares an extension with these settings, a JSON object, from 2026-07-28 on.
    /// [`Context::extension`](super::Context::extension) tells whether the client declared it, too.
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
    /// [`Skill`](super::Skill). Clients of every revision can read its files as resources.
    #[cfg(feature = "skills")]
    pub fn skill(mut self, skill: super::Skill) -> Self {
        if let Err(error) = self.registry.add_skill(skill) {
            self.fail(error);
        }
        self
    }

    /// Speaks this profile of the protocol, up to revision 2025-11-25: see [`Profile`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.registry.set_profile(profile);
        self
    }

    /// Applies a policy to requests and answers: permissions, rate limits, timeouts, masking and
    /// the audit log. See [`policy`](crate::policy).
    pub fn policy(mut self, policy: Policy) -> Self {
        self.registry.set_policy(Arc::new(policy));
        self
    }

    /// Declares an `experimental` capability with these settings, a JSON object.
    pub fn experimental(mut self, name: &str, settings: &str) -> Self {
        if let Err(error) = self.registry.add_experimental(name, settings) {
            self.fail(error);
        }
        self
    }

    /// Sets whether the server also answers requests of the [action dialect](crate::action), on the
    /// same transports; each tool is then an action (R-ACT-41). Default: off, and such a request
    /// counts as an unknown message.
    pub fn actions(mut self, taken: bool) -> Self {
        self.actions = taken;
        self
    }

    /// Sets the check that `mcp.health_check` of the action dialect runs; its error is reported as
    /// `DEPENDENCY_ERROR`. Runs on the driver's thread; must not block. Without a check the server
    /// always reports itself healthy.
    pub fn health(
        mut self,
        health: impl Fn() -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.registry.set_health(health);
        self
    }

    /// Answers an action whose data exceeds `max_bytes` with a reference instead of the data
    /// (R-ACT-29). For `ttl` the client can fetch the data in parts by `mcp.get_data`; this crate's
    /// client does so automatically. The server stores at most
    /// [`MAX_REFERRED_BYTES`](crate::limits::MAX_REFERRED_BYTES) in all and drops the oldest data
    /// first. Data longer than that, and results of inline tools and of batches, are answered
    /// whole.
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

    /// Sets the limits of stored tasks.
    pub fn task_limits(mut self, limits: TaskLimits) -> Self {
        self.registry.set_task_limits(limits);
        self
    }

    /// Has tasks that begin over HTTP known to all processes with this store: requests about a task may come to any. A task has
    /// one terminal state. When the process that runs it has been silent for 6 s, it has failed.
    ///
    /// If the [annotations](crate::model::Tool::annotations) of its tool say `"idempotentHint": true`, it is run once more instead, by a process
    /// at which a client asks for it, with the arguments, which the store keeps until the task ends. It is run three times at most, and not
    /// at all if its request is longer than 4 MiB, or if its client was asked before it was a task. The earlier run may be going on
    /// unnoticed, if its process is cut off from the store; its result is dropped.
    ///
    /// Tasks of 2025-11-25 are shared if sessions are (`SharedSessions`). A task then belongs to its principal, in each of the principal's sessions, or to
    /// its session if nobody is verified; the client ends the latter with its session. `tasks/list` has the last 10,000 tasks of an owner.
    ///
    /// Clients hear of changes at every process: in the standing stream of a session, and in streams of `subscriptions/listen`, which
    /// cost the store as much as a request that waits, for each task of another process.
    ///
    /// A task fails whose result is too long for the store: as JSON, in which each quotation mark and backslash counts twice, it may
    /// have almost 4 MiB ([`MAX_VALUE_BYTES`](crate::store::MAX_VALUE_BYTES)). A process without room for a task
    /// ([`task_limits`](Self::task_limits)) leaves it to another one.
    ///
    /// A task costs the store its state with each change, and a renewal every 2 s while it runs; so does a request for `tasks/result` that
    /// waits at another process. While the store is away, a task that begins is known to its own process alone (fails open), the
    /// others answer as an overloaded server does, and the state of those that run is
    /// written when it is back. What clients send and get is readable in the store, unless it is a
    /// `SealedStore`.
    pub fn share_tasks(self, store: Arc<dyn SharedStore>) -> Self {
        self.registry.share_tasks(store);
        self
    }

    /// Gives [`Context::head`](super::Context::head) and [`Context::extensions`](super::Context::extensions) what
    /// came with each HTTP request. Each costs a copy of its headers and extensions. Handlers of attributes that
    /// take an `Option<Arc<Head>>` or an [`Extension`](super::Extension) imply it; layers and closures that read
    /// the context need it.
    pub fn request_heads(self) -> Self {
        self.handlers.wants_heads.store(true, Ordering::Relaxed);
        self
    }

    /// Calls `hook` when a connection has ended. Runs on the driver's thread; must not block.
    pub fn on_closed(mut self, hook: impl Fn(&Handle) + Send + Sync + 'static) -> Self {
        self.handlers.closed = Some(Arc::new(hook));
        self
    }

    /// Lets clients cache the lists for `ttl` (2026-07-28). Default: no caching. With
    /// [`Public`](CacheScope::Public) scope, cached lists may be shown to other users. A change
    /// notification ends caching earlier.
    pub fn cache_lists(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.registry.set_list_cache(ttl, scope);
        self
    }

    /// Splits lists into pages of `items` entries. Default: one page per list.
    pub fn page_size(mut self, items: NonZeroUsize) -> Self {
        self.registry.set_page_size(items);
        self
    }

    /// Sets the `_meta` of the list that `method` reads, a JSON object: of each page of
    /// [`Method::ListTools`], [`Method::ListPrompts`], [`Method::ListResources`] or
    /// [`Method::ListResourceTemplates`].
    ///
    /// ```
    /// use mcpbolt::mcp::Method;
    /// use mcpbolt::server::Server;
    ///
    /// let meta = serde_json::json!({"example.com/shelf": "left"});
    /// let server = Server::builder("shop", "1.0.0").list_meta(Method::ListTools, meta).build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    pub fn list_meta(mut self, method: Method, json: impl ToString) -> Self {
        if let Err(error) = self.registry.set_list_meta(method, json.to_string()) {
            self.fail(error);
        }
        self
    }

    fn fail(&mut self, error: RegistryError) {
        self.failure.get_or_insert(error);
    }

    /// Builds the server.
    ///
    /// # Errors
    /// The first registration error.
    pub fn build(mut self) -> Result<Server, RegistryError> {
        let mut config = self.registry.config(&self.name, &self.version);
        config.instructions = self.instructions.take().map(Into::into);
        config.limits = self.limits.clone();
        config.trace = self.trace.take();
        config.observer = self.observer.take();
        config.revisions = self.revisions;
        config.actions = self.actions;
        let signer = self.signer.take().or_else(StateSigner::random);
        let signer = signer.map(|signer| signer.accepting(self.state_uses.clone()));
        let (registry, handlers) = self.into_parts()?;
        let layers = handlers.layers.iter();
        registry.knows_tools(layers.flat_map(|layer| layer.coverage.names()))?;
        Ok(Server {
            signer,
            wants_heads: handlers.wants_heads.clone(),
            shared: Arc::new(SharedRegistry::new(registry, handlers)),
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
