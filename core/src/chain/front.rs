//! The side of a chain that clients talk to: a server whose answers are those of the external server.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use super::attempts::Attempts;
use super::carry::{Near, carry};
use super::external::External;
use super::follow::{self, Joined};
use super::introduce::meet;
use super::lane::{self, Far, Lane};
use super::lanes::LaneKey;
use super::list_cache::{ListCache, MAX_CACHE_BYTES};
use super::middleware::{ChainNotification, Middleware, RelayDirection, notify};
use super::params::{own, without};
use super::parts::Parts;
use super::passage::Way;
use super::question::Parking;
use super::route::principal_of;
use super::shared::{Member, Shared};
use super::translate;
use super::unless::unless;
use super::upstream::{host, pass_progress, reopen};
use crate::connection::{
    Answer, Batch, Call, Config, Disposition, Handle, IncomingRequest, Operation,
};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::driven::drive;
use crate::handler::{Executor, Job, Spawner};
use crate::json::number;
use crate::limits::Limits;
use crate::mcp::header_arguments::HeaderArguments;
use crate::mcp::{Era, Method, Revision, Revisions, Side};
use crate::message::{Field, MessageRef};
use crate::policy::Policy;
use crate::server::{Hosting, Registry, ServerHost};

/// Requests that have passed more hops are refused, unless [`Front::max_hops`] says otherwise.
const MAX_HOPS: u64 = 16;

/// How long each of several servers has, unless [`Front::patience`] says otherwise.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most sets of capabilities that one client of the stateless era may use at a time.
const MAX_SETS: usize = 16;

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
        }
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

    /// Sets how long each of several servers has to add its part to a list, and to what the front offers. Default: 5 s.
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
    /// with its revisions, limits, budget and trace.
    pub fn introducing(mut self, server: &Config) -> Self {
        let Config {
            implementation,
            revisions,
            trace,
            limits,
            budget,
            ..
        } = server.clone();
        self.config = Config {
            implementation,
            revisions,
            trace,
            limits,
            budget,
            ..self.config
        };
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
                open: Arc::default(),
                era: AtomicU8::new(0),
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
        Arc::new(Hosted(Arc::new(Shared {
            parts: first.unwrap_or_else(|| parts(0, &self.externals[0])),
            members,
            parking: Arc::new(Parking::default()),
            patience: self.patience,
        })))
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

struct Hosted(Arc<Shared>);

impl Drop for Hosted {
    fn drop(&mut self) {
        self.0.parking.clear();
        self.0
            .members
            .iter()
            .for_each(|member| member.lanes.clear());
    }
}

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        &self.0.parts.config
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.0.parts.registry.policy().cloned()
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        let executor = FrontExecutor {
            shared: self.0.clone(),
            timers: timers.unwrap_or(&handle).clone(),
            handle: handle.clone(),
            is_exchange: false,
            session: None,
            joined: Vec::new(),
            lanes: HashMap::new(),
            ends: CancelToken::new(),
            closed: CancelToken::new(),
        };
        ServerHost::new(self.0.parts.registry.clone(), handle, Box::new(executor))
    }
}

/// The connections to the servers for one client alone, one for each server.
type Own = Arc<[Arc<Lane>]>;

/// Takes the requests of one connection.
struct FrontExecutor {
    shared: Arc<Shared>,
    handle: Handle,
    /// A connection whose clock runs as long as calls of this one.
    timers: Handle,
    /// Whether the connection carries one request, as over HTTP in the stateless era.
    is_exchange: bool,
    /// The connections to the servers, of a client of the handshake era.
    session: Option<Own>,
    /// The session of such a client with each server.
    joined: Vec<Joined>,
    /// The connections to the servers, of a client of the stateless era, by the capabilities that it declares.
    lanes: HashMap<Box<str>, Own>,
    /// Cancelled when streams that would stay open for ever are to end.
    ends: CancelToken,
    /// Cancelled when nobody waits for answers any more.
    closed: CancelToken,
}

impl FrontExecutor {
    /// The connections to the servers that a request may take. A request without one is answered.
    fn way(&mut self, call: &Call) -> Option<Way> {
        if call.reply.revision().era() == Era::Handshake {
            return self.session.clone().map(Way::Own);
        }
        let view = call.message.as_ref();
        let capabilities = view.client_capabilities().unwrap_or("{}");
        if self.is_exchange {
            return Some(Way::Shared(LaneKey {
                principal: principal_of(call, &self.handle).map(|it| it.as_str().into()),
                capabilities: capabilities.into(),
            }));
        }
        let known = match self.shared.era() {
            Some(Era::Stateless) => self.lanes.values().next(),
            _ => self.lanes.get(capabilities),
        };
        if let Some(lanes) = known {
            return Some(Way::Own(lanes.clone()));
        }
        let own = self.own(call, capabilities, view.raw(Field::ClientInfo))?;
        if self.lanes.len() >= MAX_SETS {
            self.lanes.clear();
        }
        self.lanes.insert(capabilities.into(), own.clone());
        Some(Way::Own(own))
    }

    /// Connections to the servers for the client of this connection, alone unless a server is declared to be shared. A server of the
    /// stateless era is told the capabilities with each request, so it has one for all sets of them. `None` if there are too many;
    /// then the call is answered.
    fn own(&self, call: &Call, capabilities: &str, implementation: Option<&str>) -> Option<Own> {
        let revision = match call.method {
            // The call itself is served in the newest revision that both could have agreed on.
            Some(Method::Initialize) => self.handle.revision(),
            _ => None,
        };
        let revision = revision.unwrap_or(call.reply.revision());
        let lanes = self.shared.members.iter().map(|member| {
            let mut known = self.lanes.values();
            let known = known.next().and_then(|own| own.get(member.index()));
            if let Some(lane) = known.filter(|_| member.parts.era() == Some(Era::Stateless)) {
                return Ok(lane.clone());
            }
            let principal = principal_of(call, &self.handle);
            let neutral =
                translate::client_capabilities(capabilities, revision.era(), Era::Stateless);
            let isolation = member.parts.external.isolation;
            let principal = principal.map(|it| it.as_str().into());
            match LaneKey::of_session(isolation, principal, &neutral) {
                Some(key) => member.lanes.shared(&member.parts, key),
                None => Ok(self.lane(
                    member,
                    revision,
                    capabilities.into(),
                    implementation.map(Box::from),
                )),
            }
        });
        match lanes.collect() {
            Ok(own) => Some(own),
            Err(error) => {
                let parts = &self.shared.parts;
                parts.answer(&self.handle, &call.reply, Err(error));
                None
            }
        }
    }

    /// A connection to a server for the client of this connection alone.
    fn lane(
        &self,
        member: &Member,
        revision: Revision,
        capabilities: Box<str>,
        implementation: Option<Box<str>>,
    ) -> Arc<Lane> {
        let near = lane::Near {
            handle: Some(self.handle.clone()),
            revision,
            capabilities,
            implementation,
        };
        Lane::new(member.parts.clone(), near, host)
    }

    fn initialize(&mut self, call: Call) {
        let peer = self.handle.peer().cloned().unwrap_or_default();
        let implementation = Some(&*peer.implementation).filter(|it| !it.is_empty());
        let revision = self.handle.revision().unwrap_or(call.reply.revision());
        let Some(own) = self.own(&call, &peer.capabilities, implementation) else {
            return;
        };
        let joined = own.iter().map(|lane| Joined::new(lane, &self.handle));
        self.joined = joined.collect();
        self.session = Some(own.clone());
        let (shared, front) = (self.shared.clone(), self.handle.clone());
        let timers = self.timers.clone();
        self.open(async move {
            match meet(&shared, &own, &timers).await {
                Ok(met) => {
                    let result = met.initialized(revision, &shared);
                    shared.parts.answer(&front, &call.reply, Ok(result));
                }
                Err((parts, error)) => parts.answer(&front, &call.reply, Err(error)),
            }
        });
    }

    fn discover(&mut self, call: Call) {
        let Some(way) = self.way(&call) else { return };
        let (shared, front) = (self.shared.clone(), self.handle.clone());
        let timers = self.timers.clone();
        self.open(async move {
            let met = match way {
                Way::Own(own) => meet(&shared, &own, &timers).await,
                Way::Shared(key) => {
                    let members = shared.members.iter();
                    let own: Result<Vec<_>, _> = members
                        .map(|member| {
                            let key = key.clone().within(member.parts.external.isolation);
                            member.lanes.shared(&member.parts, key)
                        })
                        .collect();
                    match own {
                        Ok(own) => meet(&shared, &own, &timers).await,
                        Err(error) => Err((shared.parts.clone(), error)),
                    }
                }
            };
            match met {
                Ok(met) => {
                    let result = met.discovered(call.reply.revision(), &shared);
                    shared.parts.answer(&front, &call.reply, Ok(result));
                }
                Err((parts, error)) => parts.answer(&front, &call.reply, Err(error)),
            }
        });
    }

    /// Answers the client's first request, as long as it waits.
    fn open(&self, opening: impl Future<Output = ()> + Send + 'static) {
        let closed = self.closed.clone();
        drive(Box::pin(async move {
            unless(opening, closed.cancelled()).await;
        }));
    }
}

impl Executor for FrontExecutor {
    fn opens(&self, method: Method) -> bool {
        matches!(method, Method::Initialize | Method::Discover)
    }

    fn first<'a>(
        &mut self,
        _request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        self.is_exchange = answer.is_exchange();
        Ok(Disposition::Deferred(Operation::Own(0)))
    }

    fn hear(&mut self, message: MessageRef<'_>) -> bool {
        let Some(method) = message.method() else {
            return false;
        };
        let known = Method::parse(&method);
        match known {
            Some(Method::Progress) => {
                let key = message.raw(Field::Progress).and_then(number::as_u64);
                let mut own = self.joined.iter();
                let asked = key.and_then(|key| own.find_map(|it| it.session().question(key)));
                if let Some((far, reply)) = asked {
                    pass_progress(&far, &reply, &message);
                }
                false
            }
            Some(Method::Cancelled | Method::Initialized | Method::InitializedBare) => false,
            _ => {
                let sets = self.session.iter().chain(self.lanes.values());
                // One client is not to speak for all that share a connection.
                let sets = sets.flat_map(|own| own.iter());
                let mut lanes: Vec<_> = sets.filter(|lane| !lane.is_shared()).collect();
                lanes.sort_by_key(|lane| Arc::as_ptr(lane));
                lanes.dedup_by(|one, other| Arc::ptr_eq(one, other));
                let is_known_there =
                    |far: &Far| known.is_none_or(|known| known.defined(far.revision, Side::Client));
                let servers = lanes.into_iter().filter_map(|lane| {
                    let far = lane.ready().filter(is_known_there)?;
                    let stays = own(lane.era() != far.revision.era());
                    Some((far, stays))
                });
                let servers: Vec<_> = servers.collect();
                if servers.is_empty() {
                    return true;
                }
                let params = message.params().map(|params| without(params, own(false)));
                let direction = RelayDirection::ToServer;
                let shown = ChainNotification::new(direction, &method, params.as_deref());
                let parts = self.shared.parts.clone();
                // Middleware sees it once, however many servers are told.
                drive(Box::pin(async move {
                    let Some(shown) = notify(&parts.middleware, shown).await else {
                        return;
                    };
                    for (far, stays) in servers {
                        let params = shown.params.as_deref().map(|it| without(it, stays));
                        // Fails only if that server is lost.
                        let _ = far.handle().notify(&shown.method, params.as_deref());
                    }
                }));
                true
            }
        }
    }

    fn run(&mut self, batch: Batch) {
        for call in batch.into_calls() {
            match call.method {
                Some(Method::Initialize) => self.initialize(call),
                Some(Method::Discover) => self.discover(call),
                _ => {
                    let Some(way) = self.way(&call) else { continue };
                    let (shared, front) = (self.shared.clone(), self.handle.clone());
                    let near = Near {
                        handle: front,
                        ends: self.ends.clone(),
                        timers: self.timers.clone(),
                    };
                    drive(Box::pin(carry(shared, way, call, near)));
                }
            }
        }
    }

    fn spawn(&mut self, job: Job) {
        self.shared.parts.spawner.spawn(job);
    }

    fn initialized(&mut self) {
        for lane in self.session.iter().flat_map(|own| own.iter()) {
            match lane.ready() {
                Some(far) if far.revision.era() == Era::Stateless => {
                    // Fails only if the connection is lost, and then it is opened again.
                    let _ = follow::follow(lane, &far);
                }
                // The client hears of what the server has when it is found.
                None if lane.parts.is_of_many => reopen(lane),
                _ => {}
            }
        }
    }

    fn draining(&mut self) {
        self.ends.cancel(None);
    }

    fn closed(&mut self) {
        self.ends.cancel(None);
        self.closed.cancel(None);
        self.joined.clear();
        self.session = None;
        self.lanes.clear();
    }

    fn renew(&mut self) -> bool {
        self.session.is_none() && self.lanes.is_empty() && !self.ends.is_cancelled()
    }
}
