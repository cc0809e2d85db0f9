//! The client builder: identity, capabilities and handlers for server requests.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, RwLock};

use super::client::Client;
use super::context::ClientContext;
use super::core::ClientCore;
use super::handlers::{Handlers, boxed};
use super::host::{ClientHost, Hooks, MakeRelay};
use super::notice::Notice;
#[cfg(feature = "server")]
use crate::connection::Callers;
use crate::connection::{Config, Handle, Observer, OpeningMode, Trace};
use crate::error::RequestError;
use crate::handler::{HandlerError, Spawner};
use crate::limits::Limits;
use crate::mcp::{Profile, Revision, Revisions, Side, extension};
use crate::model::{Elicitation, Elicited, Root, Sampled, Sampling};

/// Builds a client. See [`Client::builder`].
#[must_use = "a builder does nothing until it is connected"]
pub struct ClientBuilder {
    config: Config,
    handlers: Handlers,
    checks: bool,
    hooks: Hooks,
    relay: Option<MakeRelay>,
    #[cfg_attr(
        not(feature = "stdio"),
        expect(dead_code, reason = "only transports read it")
    )]
    spawner: Option<Arc<dyn Spawner>>,
    #[cfg(feature = "server")]
    #[cfg_attr(
        not(feature = "stdio"),
        expect(dead_code, reason = "only transports read it")
    )]
    callers: Option<Arc<dyn Callers>>,
}

impl ClientBuilder {
    fn new(name: &str, version: &str) -> Self {
        Self {
            config: Client::config(name, version),
            handlers: Handlers::default(),
            checks: false,
            hooks: Hooks::default(),
            relay: None,
            spawner: None,
            #[cfg(feature = "server")]
            callers: None,
        }
    }

    /// Creates the builder of a client with this configuration, whose requests and notifications from the server go to
    /// what `relay` makes, instead of to handlers. What the connection needs runs on `spawner`. A server in this process
    /// learns from `callers` who sends the requests.
    #[cfg(feature = "server")]
    pub(crate) fn relay(
        config: Config,
        relay: MakeRelay,
        spawner: Arc<dyn Spawner>,
        callers: Arc<dyn Callers>,
    ) -> Self {
        Self {
            config,
            handlers: Handlers::default(),
            checks: false,
            hooks: Hooks::default(),
            relay: Some(relay),
            spawner: Some(spawner),
            callers: Some(callers),
        }
    }

    /// Who sends the requests, if another party does.
    #[cfg(all(feature = "server", feature = "stdio"))]
    pub(crate) fn callers(&self) -> Option<Arc<dyn Callers>> {
        self.callers.clone()
    }

    /// The spawner that was chosen for the connection.
    #[cfg(feature = "net")]
    pub(crate) fn spawner(&self) -> Option<Arc<dyn Spawner>> {
        self.spawner.clone()
    }

    /// Sets the limits of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets the protocol revisions to speak. Default: all of them.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.config.revisions = revisions;
        self
    }

    /// Speaks this profile of the protocol, up to revision 2025-11-25: opens with the handshake of
    /// its revision.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.config.profile = profile;
        if profile != Profile::Official {
            self.config.opening = OpeningMode::Handshake;
        }
        self
    }

    /// Sets how the connection opens. By default the client first asks the server what it speaks.
    pub fn opening(mut self, opening: OpeningMode) -> Self {
        self.config.opening = opening;
        self
    }

    /// Has `observer` told of the requests and the session of the connection, for metrics and traces.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.config.observer = Some(observer);
        self
    }

    /// Passes every frame to `trace`, with secrets masked.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.config.trace = Some(trace);
        self
    }

    /// Lets servers use the client's model. The handler decides what the model sees and which part
    /// of its answer the server gets; it should ask the user (R-SMP-09).
    pub fn on_sampling<F>(
        mut self,
        handler: impl Fn(Sampling, ClientContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Sampled, HandlerError>> + Send + 'static,
    {
        self.handlers.sampling = Some(boxed(handler));
        self.handlers.sampling_tools = false;
        self
    }

    /// Lets servers use the client's model, which may also call the server's tools (from 2025-11-25
    /// on).
    pub fn on_sampling_with_tools<F>(
        self,
        handler: impl Fn(Sampling, ClientContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Sampled, HandlerError>> + Send + 'static,
    {
        let mut builder = self.on_sampling(handler);
        builder.handlers.sampling_tools = true;
        builder
    }

    /// Lets servers show the user a form (from 2025-06-18 on). Accepted content is checked against
    /// the form before it is sent (R-ELI-06).
    pub fn on_form<F>(
        mut self,
        handler: impl Fn(Elicitation, ClientContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Elicited, HandlerError>> + Send + 'static,
    {
        self.handlers.forms = Some(boxed(handler));
        self
    }

    /// Lets servers send the user to a web page (from 2025-11-25 on). The handler must show the
    /// whole URL, ask for consent and open the page outside this program's reach (R-ELI-09).
    pub fn on_page<F>(
        mut self,
        handler: impl Fn(Elicitation, ClientContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Elicited, HandlerError>> + Send + 'static,
    {
        self.handlers.pages = Some(boxed(handler));
        self
    }

    /// Offers servers these roots; [`Client::set_roots`] replaces them later.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.handlers.roots = Some(RwLock::new(roots.into_iter().collect()));
        self
    }

    /// Declares an extension with these settings, a JSON object (2026-07-28). The server uses the
    /// extension only if it declares it, too, as [`Client::capabilities`] shows (R-EXT-03).
    pub fn extension(mut self, id: &str, settings: &str) -> Self {
        self.handlers
            .extensions
            .insert(id.to_owned(), settings.to_owned());
        self
    }

    /// Lets servers turn calls into tasks (2026-07-28). Awaiting such a call waits for the task's
    /// result; [`CallTool::start`](super::CallTool::start) returns the task.
    ///
    /// ```
    /// # #[cfg(all(feature = "server", feature = "stdio"))] {
    /// # use mcpbolt::server::Server;
    /// # let server = Server::builder("test", "1").build()?;
    /// use mcpbolt::client::{Client, block_on};
    /// let client = block_on(Client::builder("me", "1").tasks().connect(&server))?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tasks(self) -> Self {
        self.extension(extension::TASKS, "{}")
    }

    /// Refuses results of tool calls, lists, reads, prompts and completions that do not have the
    /// shape that the specification defines (R-S14-05). Default: not checked, so a result may lack
    /// members as long as its Rust type can be read.
    ///
    /// ```text
    /// the peer's answer is not valid: the result of tools/list: tools[0].name: it is missing
    /// ```
    pub fn check_results(mut self) -> Self {
        self.checks = true;
        self
    }

    /// Calls `report` with each notification from the server: changed lists, updated resources, log
    /// messages. Runs on the driver's thread; must not block.
    pub fn on_notice(self, mut report: impl FnMut(Notice<'_>) + Send + 'static) -> Self {
        self.on_raw_notice(move |method, params| report(Notice::parse(method, params)))
    }

    /// Calls `report` with each notification from the server: the method, and the params as raw
    /// JSON. Runs on the driver's thread; must not block.
    pub fn on_raw_notice(
        mut self,
        report: impl FnMut(&str, Option<&str>) + Send + 'static,
    ) -> Self {
        self.hooks.notice = Some(Box::new(report));
        self
    }

    /// Calls `hook` when the connection is open. Runs on the driver's thread; must not block.
    pub fn on_opened(mut self, hook: impl FnMut(&Client) + Send + 'static) -> Self {
        self.hooks.opened = Some(Box::new(hook));
        self
    }

    /// Calls `hook` when the connection has ended, even if it was never open;
    /// [`Handle::close_reason`] tells why. Runs on the driver's thread; must not block.
    pub fn on_closed(mut self, hook: impl FnMut(&Client) + Send + 'static) -> Self {
        self.hooks.closed = Some(Box::new(hook));
        self
    }

    /// Returns the configuration of the connection, and the part that becomes the client on it.
    ///
    /// # Errors
    /// When a root is not a `file://` URI or contains `..` (R-ROO-01), or an extension's name has
    /// no prefix or its settings are no JSON object (R-CAP-06).
    pub fn prepare(mut self) -> Result<(Config, Prepared), RequestError> {
        self.handlers.check()?;
        if self.relay.is_none() {
            self.config.capabilities =
                Revision::ALL.map(|revision| self.handlers.capabilities(revision).into());
        }
        let prepared = Prepared {
            handlers: Arc::new(self.handlers),
            checks: self.checks,
            hooks: self.hooks,
            relay: self.relay,
            #[cfg(feature = "stdio")]
            spawner: self.spawner,
            #[cfg(feature = "http-client")]
            has_headers: false,
        };
        Ok((self.config, prepared))
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("config", &self.config)
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("handlers", &self.handlers)
            .finish_non_exhaustive()
    }
}

/// A client without its connection. See [`ClientBuilder::prepare`].
pub struct Prepared {
    handlers: Arc<Handlers>,
    checks: bool,
    hooks: Hooks,
    relay: Option<MakeRelay>,
    #[cfg(feature = "stdio")]
    spawner: Option<Arc<dyn Spawner>>,
    #[cfg(feature = "http-client")]
    has_headers: bool,
}

impl Prepared {
    /// Enables argument headers, for a transport that has headers.
    #[cfg(feature = "http-client")]
    pub(crate) fn with_header_arguments(self) -> Self {
        let has_headers = true;
        Self {
            has_headers,
            ..self
        }
    }

    /// The spawner that was chosen for the connection.
    #[cfg(feature = "stdio")]
    pub(crate) fn spawner(&self) -> Option<Arc<dyn Spawner>> {
        self.spawner.clone()
    }

    /// Returns the client on the connection of `handle`, and the host that serves server requests;
    /// its handlers run on `spawner`.
    pub fn connect(self, handle: Handle, spawner: Arc<dyn Spawner>) -> (Client, ClientHost) {
        let core = ClientCore {
            checks: self.checks,
            streams: Some(Arc::default()),
            cache: Some(Arc::default()),
            #[cfg(feature = "http-client")]
            header_arguments: self.has_headers.then(Arc::default),
            ..ClientCore::new(handle, self.handlers)
        };
        let client = Client { core };
        let host = ClientHost::serving(client.clone(), spawner, self.hooks);
        let relay = self.relay.map(|make| make(client.handle().clone()));
        (client, host.relayed(relay))
    }
}

impl Client {
    /// Creates a client on an open connection. Wait for [`Handle::opened`] first, or use
    /// [`open`](Self::open).
    pub fn new(handle: Handle) -> Self {
        let core = ClientCore::new(handle, Arc::<Handlers>::default());
        Self { core }
    }

    /// Starts a builder for a client with this name and version, and with handlers for server
    /// requests.
    ///
    /// ```
    /// # #[cfg(all(feature = "server", feature = "stdio"))] {
    /// use mcpbolt::client::{Client, block_on};
    /// use mcpbolt::model::Sampled;
    /// # use mcpbolt::server::Server;
    /// # let server = Server::builder("test", "1").build()?;
    ///
    /// let client = Client::builder("chat", "1.0.0")
    ///     .on_sampling(|sampling, _| async move {
    ///         let asked = sampling.messages.len();
    ///         Ok(Sampled::text("a-model", format!("an answer to {asked} messages")))
    ///     })
    ///     .connect(&server); // or `.spawn(ChildCommand::new("path/to/server"))`
    /// let client = block_on(client)?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: &str, version: &str) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// The default configuration of a client: name, version, every revision, no capabilities.
    pub fn config(name: &str, version: &str) -> Config {
        Config::new(Side::Client, name, version)
    }

    /// Waits until the connection is open and creates a client on it.
    ///
    /// # Errors
    /// Why the connection could not be opened.
    pub async fn open(handle: Handle) -> Result<Self, RequestError> {
        handle.opened().await?;
        Ok(Self::new(handle))
    }
}
