//! The side of a chain that clients talk to: a server whose answers are those of the external server.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::attempts::Attempts;
use super::executor::FrontExecutor;
use super::external::External;
use super::kept::Kept;
use super::list_cache::{ListCache, MAX_CACHE_BYTES};
use super::middleware::Middleware;
use super::parts::Parts;
use super::places::Places;
use super::question::Parking;
use super::shared::{Member, Shared};
use crate::connection::{Config, Handle, Observer};
use crate::error::RequestError;
use crate::handler::Spawner;
use crate::limits::Limits;
use crate::mcp::header_arguments::HeaderArguments;
use crate::mcp::{Revisions, Side};
use crate::policy::Policy;
use crate::server::{Hosting, Registry, ServerHost};

/// Requests that have passed more hops are refused, unless [`Front::max_hops`] says otherwise.
const MAX_HOPS: u64 = 16;

/// How long each of several servers has, unless [`Front::patience`] says otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server towards its clients that passes their requests on to an [`External`] server, through [`Middleware`].
///
/// Each side speaks its own revision, in either era. Ids and progress tokens are each side's own; everything else passes
/// byte for byte, but for what the eras say differently.
///
/// ```
/// use mcpbolt::chain::{External, Front};
/// use mcpbolt::client::ClientBuilder;
/// use mcpbolt::server::Server;
///
/// let server = Server::builder("inner", "1.0.0").build()?;
/// let link = move |client: ClientBuilder| {
///     let server = server.clone();
///     Box::pin(async move { client.connect(&server).await }) as _
/// };
/// let front = Front::new(External::new("inner", link));
/// # let _ = front;
/// # Ok::<(), mcpbolt::server::RegistryError>(())
/// ```
#[must_use = "a front does nothing until it is served"]
pub struct Front {
    externals: Vec<External>,
    middleware: Vec<Arc<dyn Middleware>>,
    config: Config,
    policy: Option<Arc<Policy>>,
    max_hops: u64,
    patience: Duration,
    list_cache: usize,
    /// Calls whose clients have a question to answer, of this front and of those that it succeeds.
    parking: Arc<Parking>,
    /// Connections on which servers have given states to clients, likewise.
    kept: Arc<Kept>,
    /// How many fronts it succeeds.
    generation: u64,
}

impl Front {
    /// A front before that server.
    pub fn new(external: External) -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        Self {
            externals: vec![external],
            middleware: Vec::new(),
            config: Config::new(Side::Server, name, version),
            policy: None,
            max_hops: MAX_HOPS,
            patience: PATIENCE,
            list_cache: MAX_CACHE_BYTES,
            parking: Arc::default(),
            kept: Arc::default(),
            generation: 0,
        }
    }

    /// Takes the place of an earlier front, which has other settings. A client of 2026-07-28 that has been asked something there may bring
    /// its answer here: its call goes on at the server where it began, and by the settings with which it began. When the
    /// earlier front is not hosted any more, such a call is given up after `patience`, as is the connection to a server other than on HTTP
    /// that has asked in a state of its own; at once if eight other fronts have been succeeded since. Without a successor, it is given up when its front is not hosted any more.
    pub fn succeeding(mut self, earlier: &Self, patience: Duration) -> Self {
        self.parking = earlier.parking.clone();
        self.kept = earlier.kept.clone();
        self.generation = self.parking.succeed(earlier.generation, patience);
        self
    }

    /// Adds another server. Clients see the tools, prompts and resources of all: lists are merged, and each call goes to the server
    /// whose [prefix](External::prefix) its name has, or else to the one without a prefix. A server that fails, or that is late,
    /// is left out of lists and named in their `_meta`, as `dev.mcpbolt/partial`.
    ///
    /// ```
    /// use mcpbolt::chain::{External, Front, Prefix};
    /// use mcpbolt::server::Server;
    ///
    /// let git = Server::builder("git", "1.0.0").build()?;
    /// let files = Server::builder("files", "1.0.0").build()?;
    /// let front = Front::new(External::server("git", &git).prefix(Prefix::new("git")?))
    ///     .join(External::server("files", &files).prefix(Prefix::new("files")?))?;
    /// # let _ = front;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RequestError::Misuse`] if two servers have the same name, no prefix, or prefixes that could make the same names: one
    /// is the other, in either case, or is the other and `_` and more.
    pub fn join(mut self, external: External) -> Result<Self, RequestError> {
        for other in &self.externals {
            if other.name == external.name {
                return Err(RequestError::Misuse(
                    "two servers of a front have the same name",
                ));
            }
            let is_apart = match (&other.prefix, &external.prefix) {
                (None, None) => false,
                (Some(one), Some(other)) => one.is_apart_from(other),
                _ => true,
            };
            if !is_apart {
                return Err(RequestError::Misuse(
                    "two servers of a front could have the same names: give each a prefix of its own, which differs by more than \
                     case and does not begin with that of another one and _",
                ));
            }
        }
        self.externals.push(external);
        Ok(self)
    }

    /// Sets how long each of several servers has to add its part to a list, to what the front offers, and to a stream of changes, which is
    /// acknowledged then without those that are late. Default: 5 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how many bytes of lists are kept, 0 for none. Default: 16 MiB. The lists of servers of 2026-07-28 are kept as long as
    /// their `ttlMs` allows, a day at most, or until the server tells of a change; for all clients if their `cacheScope` is
    /// `public`, and else for one verified client, or for one connection of a client that nobody verified. Those that were not
    /// used for longest make room.
    pub fn list_cache(mut self, max_bytes: usize) -> Self {
        self.list_cache = max_bytes;
        self
    }

    /// Adds middleware behind what was added before.
    pub fn with(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets who may do what: credentials, permissions, rates, audit. Lists leave out what the policy hides, by the names that
    /// clients see. Credentials that clients send never reach the server, with or without a policy (R-CHN-15).
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Has the front speak in the name of a server: with its name and version, if there are several servers behind the front, and
    /// with its revisions, limits, budget, trace and observer.
    pub fn introducing(mut self, server: &Config) -> Self {
        let Config {
            implementation,
            revisions,
            trace,
            observer,
            limits,
            budget,
            ..
        } = server.clone();
        self.config = Config {
            implementation,
            revisions,
            trace,
            observer,
            limits,
            budget,
            ..self.config
        };
        self
    }

    /// Has `observer` told of the requests and sessions of all connections, to clients and to servers, for metrics and traces. A
    /// request to a server carries the trace context that the observer gives it, in place of the client's.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.config.observer = Some(observer);
        self
    }

    /// Sets the limits of connections to clients.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets the protocol revisions to speak with clients. Default: all of them.
    pub fn revisions(mut self, revisions: Revisions) -> Self {
        self.config.revisions = revisions;
        self
    }

    /// Sets how many hops a request may pass before it is refused as one that goes in a circle (R-CHN-21). Default: 16.
    pub fn max_hops(mut self, hops: u64) -> Self {
        self.max_hops = hops;
        self
    }

    /// Returns the front for a carrier. Connections to the server are opened on `spawner`.
    pub fn hosting(&self, spawner: Arc<dyn Spawner>) -> Arc<dyn Hosting> {
        let mut registry = Registry::new();
        let mirrored = Arc::<HeaderArguments>::default();
        registry.set_mirrored(mirrored.clone());
        if let Some(policy) = &self.policy {
            registry.set_policy(policy.clone());
        }
        let (config, registry) = (Arc::new(self.config.clone()), Arc::new(registry));
        let lists = Arc::new(ListCache::new(self.list_cache));
        let parts = |index, external: &External| {
            Arc::new(Parts {
                external: external.clone(),
                index,
                lists: lists.clone(),
                prefix: external.prefix.clone(),
                is_of_many: self.externals.len() > 1,
                middleware: self.middleware.clone(),
                config: config.clone(),
                registry: registry.clone(),
                spawner: spawner.clone(),
                max_hops: self.max_hops,
                attempts: Attempts::default(),
                mirrored: mirrored.clone(),
                places: Places::new(external.max_connections),
                era: AtomicU8::new(0),
                takes_no_handshakes: AtomicBool::new(false),
                retired: OnceLock::new(),
            })
        };
        let members = self.externals.iter().enumerate();
        let members: Vec<_> = members
            .map(|(index, external)| Member {
                parts: parts(index, external),
                lanes: Arc::default(),
            })
            .collect();
        let first = members.first().map(|member| member.parts.clone());
        let shared = Shared {
            parts: first.unwrap_or_else(|| parts(0, &self.externals[0])),
            members,
            parking: self.parking.clone(),
            kept: self.kept.clone(),
            patience: self.patience,
        };
        Arc::new(Hosted {
            shared: Arc::new(shared),
            generation: self.generation,
        })
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front")
            .field("externals", &self.externals)
            .field("middleware", &self.middleware.len())
            .finish_non_exhaustive()
    }
}

struct Hosted {
    shared: Arc<Shared>,
    generation: u64,
}

impl Hosted {
    fn close_connections(&self) {
        let members = self.shared.members.iter();
        members.for_each(|member| member.lanes.clear());
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        let Shared {
            parking,
            parts,
            kept,
            members,
            ..
        } = &*self.shared;
        match parking.patience_after(self.generation) {
            Some(patience) => {
                parking.retire(parts, patience);
                kept.retire(members.iter().map(|member| &member.parts), patience);
                self.close_connections();
            }
            None => self.ended(),
        }
    }
}

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        &self.shared.parts.config
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.shared.parts.registry.policy().cloned()
    }

    fn ended(&self) {
        self.shared.parking.clear(&self.shared.parts);
        self.shared.kept.clear();
        self.close_connections();
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        let timers = timers.unwrap_or(&handle).clone();
        let executor = FrontExecutor::new(self.shared.clone(), handle.clone(), timers);
        let registry = self.shared.parts.registry.clone();
        ServerHost::new(registry, handle, Box::new(executor))
    }
}
