//! The server at the end of a chain, and the links that reach it.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::health::UpstreamHealth;
use super::middleware::Middleware;
use super::prefix::Prefix;
use crate::client::{Client, ClientBuilder};
use crate::connection::OpeningMode;
use crate::limits::Limits;
use crate::mcp::Revisions;

/// The most connections to one server, unless [`External::max_connections`] says otherwise.
const MAX_CONNECTIONS: usize = 10_000;

/// How long a connection that clients share is open without use, unless [`External::idle_time`] says otherwise.
const IDLE_TIME: Duration = Duration::from_secs(600);

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

/// Which clients share a connection to a server, and thus its process if it is a command.
///
/// A server of the stateless era gets what it has to know of a client with each request. So do its clients that have no session of
/// their own: to a server of the handshake era they share a connection if they declare the same capabilities and are the same
/// verified client, or may be asked nothing.
///
/// Where clients share a connection, each has its own ids, progress tokens, subscriptions and log level; changes of lists reach
/// all. Tasks of the handshake era are not offered: each could see those of all. A question of the server, and a log message,
/// reaches a client only if nobody else has a call under way. A server of this process is told the verified client of each request and
/// each subscription; what all clients share, changes of lists and the log level, is asked for on behalf of nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each session has a connection of its own. To a server on HTTP that speaks no revision with a handshake, sessions share one
    /// until they subscribe to a resource.
    #[default]
    Session,
    /// The sessions of a verified client share a connection, if they declare the same capabilities. A client that nobody verified has
    /// one of its own.
    Principal,
    /// All clients share one connection. A server of the handshake era is told that they can answer no questions.
    Shared,
}

impl FromStr for Isolation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "session" => Ok(Self::Session),
            "principal" => Ok(Self::Principal),
            "shared" => Ok(Self::Shared),
            _ => Err(format!(
                "{text:?} is no isolation; write session, principal or shared"
            )),
        }
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
    pub(super) follows_revision: bool,
    pub(super) is_of_requests: bool,
    pub(super) is_own: bool,
    pub(super) limits: Limits,
    pub(super) prefix: Option<Prefix>,
    pub(super) isolation: Isolation,
    pub(super) max_connections: usize,
    pub(super) idle_time: Option<Duration>,
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
    pub(super) health: UpstreamHealth,
}

impl External {
    /// A server behind a link. The name stands in errors and logs.
    pub fn new(name: impl Into<Arc<str>>, link: impl Link) -> Self {
        Self {
            name: name.into(),
            link: Arc::new(link),
            opening: None,
            revisions: Revisions::ALL,
            follows_revision: false,
            is_of_requests: false,
            is_own: false,
            limits: Limits::STDIO,
            prefix: None,
            isolation: Isolation::default(),
            max_connections: MAX_CONNECTIONS,
            idle_time: Some(IDLE_TIME),
            middleware: Vec::new(),
            health: UpstreamHealth::default(),
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

    /// Sets which clients share a connection. Default: those of one session.
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets how many connections to the server may be open at a time: for a command, how many processes run. A client that would need
    /// another one gets an error of an overloaded server, unless a connection is being closed: then the client waits until the place is
    /// free, which for a command is when the process has ended. Default: 10,000, and 256 for commands.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets how long a connection that clients share stays open while neither a session nor a request needs it; it is closed within twice
    /// that time, and the next request opens another one: for a command, the process ends and is started again. `None` keeps such
    /// connections open. Default: 10 minutes. The connection of one session ends with the session.
    pub fn idle_time(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.idle_time = time
            .into()
            .map(|time: Duration| time.max(Duration::from_millis(1)));
        self
    }

    /// Goes on counting what `health` has counted, for example of the same server with other settings before.
    pub fn counting(mut self, health: UpstreamHealth) -> Self {
        self.health = health;
        self
    }

    /// Adds middleware for this server alone, behind what was added before: between the [middleware](super::Front::with) of
    /// the front and the server. It sees requests to the server and notifications of the server, by the server's own names. Questions
    /// of the server pass it by. Lists that pass it are kept only if it [says so](Middleware::keeps_lists).
    pub fn with(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Whether middleware has to see each list that a client gets.
    pub(super) fn sees_each_list(&self) -> bool {
        self.middleware.iter().any(|one| !one.keeps_lists())
    }

    /// What is known of the server while it is used.
    pub fn health(&self) -> UpstreamHealth {
        self.health.clone()
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

    /// Speaks with the server in the revision of the client, where a connection is one client's own: for a server that speaks all
    /// revisions that clients may use, and whose handlers see which one it is. By default each side agrees on the newest revision
    /// that it has in common with the front.
    pub fn following_revision(mut self) -> Self {
        self.follows_revision = true;
        self
    }

    /// Says that a connection of the stateless era is nothing but requests, any of which could come from anybody, as over HTTP
    /// ([`Self::at`] knows that): then sessions of the handshake era need no connection of their own ([`Isolation::Session`]), and a
    /// server that refuses requests is asked whether it still is of that era.
    pub fn of_requests(mut self) -> Self {
        self.is_of_requests = true;
        self
    }

    /// Says that the front stands for this server of this process, and [speaks in its name](super::Front::introducing): the server's clients
    /// are those of the front, however many they are, and speak in their own revisions
    /// ([`following_revision`](Self::following_revision)). The observer of the front sees each request of a client once, as it came to the
    /// front, and the server's handlers run within what surrounds that request; requests of handlers to the client are seen once, too.
    pub fn as_own(mut self) -> Self {
        self.is_own = true;
        self.max_connections(usize::MAX).following_revision()
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
