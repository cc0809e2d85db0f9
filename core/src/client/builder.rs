//! Building a client: what it is called, and what it does for servers.

use std::future::Future;
use std::sync::Arc;

use super::Client;
use super::context::Context;
use super::handlers::Handlers;
use super::host::ClientHost;
use super::notice::Notice;
use crate::connection::{Config, Handle, Opening, Trace};
use crate::error::RequestError;
use crate::handler::{HandlerError, Spawner};
use crate::limits::Limits;
use crate::mcp::{
    Elicitation, Elicited, Profile, Revision, Revisions, Root, Sampled, Sampling, extension,
};

/// Gathers what a client brings to a connection. See [`Client::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it is connected"]
pub struct ClientBuilder {
    config: Config,
    handlers: Handlers,
    checks: bool,
    hooks: Hooks,
}

/// Who is told what.
#[derive(Default)]
pub(super) struct Hooks {
    /// The method and the params of each notification of the server.
    pub notice: Option<Report>,
    pub opened: Option<Hook>,
    pub closed: Option<Hook>,
}

type Report = Box<dyn FnMut(&str, Option<&str>) + Send>;
type Hook = Box<dyn FnMut(&Client) + Send>;

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("notice", &self.notice.is_some())
            .field("opened", &self.opened.is_some())
            .field("closed", &self.closed.is_some())
            .finish()
    }
}

impl ClientBuilder {
    pub(super) fn new(name: &str, version: &str) -> Self {
        Self {
            config: Client::config(name, version),
            handlers: Handlers::default(),
            checks: false,
            hooks: Hooks::default(),
        }
    }

    /// The bounds of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// The revisions to speak; all of them by default.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.config.revisions = revisions;
        self
    }

    /// Speaks as that profile has it: opens with the handshake of its revision, up to 2025-11-25.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.config.profile = profile;
        if profile != Profile::Official {
            self.config.opening = Opening::Handshake;
        }
        self
    }

    /// How to open; by default the server is asked what it speaks.
    pub fn opening(mut self, opening: Opening) -> Self {
        self.config.opening = opening;
        self
    }

    /// Shows every frame, with secrets masked.
    pub fn trace(mut self, trace: Trace) -> Self {
        self.config.trace = Some(trace);
        self
    }

    /// Lets servers ask the model. The handler decides what the model sees and what of its
    /// answer the server gets; it should ask the user (R-SMP-09).
    pub fn on_sampling<F>(
        mut self,
        handler: impl Fn(Sampling, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Sampled, HandlerError>> + Send + 'static,
    {
        self.handlers.set_sampling(false, handler);
        self
    }

    /// The same for a model that may be given the server's tools (from 2025-11-25).
    pub fn on_sampling_with_tools<F>(
        mut self,
        handler: impl Fn(Sampling, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Sampled, HandlerError>> + Send + 'static,
    {
        self.handlers.set_sampling(true, handler);
        self
    }

    /// Lets servers show the user a form (from 2025-06-18). What is accepted is held against the
    /// form before it is sent (R-ELI-06).
    pub fn on_form<F>(
        mut self,
        handler: impl Fn(Elicitation, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Elicited, HandlerError>> + Send + 'static,
    {
        self.handlers.set_forms(handler);
        self
    }

    /// Lets servers send the user to a page (from 2025-11-25). The handler shows the whole URL,
    /// asks for consent and opens it outside this program's reach (R-ELI-09).
    pub fn on_page<F>(
        mut self,
        handler: impl Fn(Elicitation, Context) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Elicited, HandlerError>> + Send + 'static,
    {
        self.handlers.set_pages(handler);
        self
    }

    /// Shows servers these roots; [`Client::set_roots`] replaces them later.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.handlers.set_roots(roots.into_iter().collect());
        self
    }

    /// Declares an extension with these settings, a JSON object (2026-07-28). A server uses it only
    /// if it declares it, too: [`Client::capabilities`] says so (R-EXT-03).
    pub fn extension(mut self, id: &str, settings: &str) -> Self {
        self.handlers.add_extension(id, settings);
        self
    }

    /// Lets servers make tasks of calls (2026-07-28): who awaits such a call waits for what comes of
    /// it, and [`CallTool::start`](super::CallTool::start) gives the task.
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

    /// Refuses results that are not what the revisions say of them (R-S14-05): of calls of tools, of
    /// lists, of what was read, rendered or completed. Otherwise who reads one decides, and what a
    /// result lacks may be forgiven.
    ///
    /// ```text
    /// the peer's answer is not valid: the result of tools/list: tools[0].name: it is missing
    /// ```
    pub fn check_results(mut self) -> Self {
        self.checks = true;
        self
    }

    /// Calls `report` with each notification of the server: lists that changed, resources that
    /// were updated, log messages. On the driver's thread; must not block.
    pub fn on_notice(self, mut report: impl FnMut(Notice<'_>) + Send + 'static) -> Self {
        self.on_raw_notice(move |method, params| report(Notice::parse(method, params)))
    }

    /// The same, as it came: the method, and the params as raw JSON.
    pub fn on_raw_notice(
        mut self,
        report: impl FnMut(&str, Option<&str>) + Send + 'static,
    ) -> Self {
        self.hooks.notice = Some(Box::new(report));
        self
    }

    /// Calls `hook` when the connection is open. On the driver's thread; must not block.
    pub fn on_opened(mut self, hook: impl FnMut(&Client) + Send + 'static) -> Self {
        self.hooks.opened = Some(Box::new(hook));
        self
    }

    /// Calls `hook` when the connection has ended, whether or not it was ever open;
    /// [`Handle::close_reason`] says why. On the driver's thread; must not block.
    pub fn on_closed(mut self, hook: impl FnMut(&Client) + Send + 'static) -> Self {
        self.hooks.closed = Some(Box::new(hook));
        self
    }

    /// The configuration of the connection, and the rest, which becomes the client on it.
    ///
    /// # Errors
    /// When a root is not at a `file://` URI or leads out of itself (R-ROO-01), or an extension's
    /// name has no prefix (R-CAP-06).
    pub fn prepare(mut self) -> Result<(Config, Prepared), RequestError> {
        self.handlers.check_roots()?;
        self.handlers.check_extensions()?;
        self.config.capabilities =
            Revision::ALL.map(|revision| self.handlers.capabilities(revision).into());
        let prepared = Prepared {
            handlers: Arc::new(self.handlers),
            checks: self.checks,
            hooks: self.hooks,
            #[cfg(feature = "http-client")]
            mirrors: false,
        };
        Ok((self.config, prepared))
    }
}

/// A client that waits for its connection. See [`ClientBuilder::prepare`].
#[derive(Debug)]
pub struct Prepared {
    handlers: Arc<Handlers>,
    checks: bool,
    hooks: Hooks,
    #[cfg(feature = "http-client")]
    mirrors: bool,
}

impl Prepared {
    /// For a wire that has headers.
    #[cfg(feature = "http-client")]
    pub(crate) fn mirroring(self) -> Self {
        let mirrors = true;
        Self { mirrors, ..self }
    }

    /// The client on the connection of `handle`, and the host that answers for it; its handlers
    /// run on `spawner`.
    pub fn connect(self, handle: Handle, spawner: Arc<dyn Spawner>) -> (Client, ClientHost) {
        let client = Client {
            checks: self.checks,
            streams: Some(Arc::default()),
            cache: Some(Arc::default()),
            #[cfg(feature = "http-client")]
            mirrored: self.mirrors.then(Arc::default),
            ..Client::with(handle, self.handlers)
        };
        let host = ClientHost::serving(client.clone(), spawner, self.hooks);
        (client, host)
    }
}
