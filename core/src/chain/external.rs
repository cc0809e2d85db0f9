//! The server at the end of a chain, and the links that reach it.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::prefix::Prefix;
use crate::client::{Client, ClientBuilder};
use crate::connection::OpeningMode;
use crate::limits::Limits;
use crate::mcp::Revisions;

/// The future of a client that connects.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Client>> + Send>>;

/// Connects to a server. A closure is a link, too: `|client: ClientBuilder| Box::pin(client.spawn(command))`.
pub trait Link: Send + Sync + 'static {
    /// Connects the client that is given, over a new connection. Called each time the chain needs a connection.
    fn connect(&self, client: ClientBuilder) -> Connecting;
}

impl<F: Fn(ClientBuilder) -> Connecting + Send + Sync + 'static> Link for F {
    fn connect(&self, client: ClientBuilder) -> Connecting {
        self(client)
    }
}

/// A server that a chain ends at.
#[derive(Clone)]
#[must_use = "it is given to a front"]
pub struct External {
    pub(super) name: Arc<str>,
    pub(super) link: Arc<dyn Link>,
    pub(super) opening: Option<OpeningMode>,
    pub(super) revisions: Revisions,
    pub(super) limits: Limits,
    pub(super) prefix: Option<Prefix>,
}

impl External {
    /// A server behind a link. The name stands in errors and logs.
    pub fn new(name: impl Into<Arc<str>>, link: impl Link) -> Self {
        Self {
            name: name.into(),
            link: Arc::new(link),
            opening: None,
            revisions: Revisions::ALL,
            limits: Limits::STDIO,
            prefix: None,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets what clients see before the names and URIs of the server ([`Prefix`]).
    pub fn prefix(mut self, prefix: Prefix) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// Sets how connections open. By default in the era of the client, so that nothing needs to be translated if the server
    /// speaks both eras, and else in the other one.
    pub fn opening(mut self, opening: OpeningMode) -> Self {
        self.opening = Some(opening);
        self
    }

    /// Sets the protocol revisions to speak with the server. Default: all of them.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Sets the limits of connections to the server.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the time to wait for an answer of the server, which reports of progress restart, and the time to wait in
    /// total. Then the request is cancelled, and its sender gets an error (R-CHN-14).
    pub fn timeouts(mut self, answer: Duration, total: Duration) -> Self {
        self.limits.request_timeout = answer;
        self.limits.max_request_timeout = total;
        self
    }
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("External")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
