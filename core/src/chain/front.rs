//! The side of a chain that clients talk to: a server whose answers are those of the external server.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use super::attempts::Attempts;
use super::carry::{Way, carry};
use super::external::External;
use super::lane::{Far, Lane, Near};
use super::lanes::{LaneKey, Lanes};
use super::listen;
use super::middleware::{ChainNotification, ChainResponse, Middleware, RelayDirection, notify};
use super::params::{json_text, own, push, without};
use super::parts::Parts;
use super::question::Parking;
use super::route::principal_of;
use super::shared::Shared;
use super::translate;
use super::upstream::{host, pass_progress};
use crate::connection::{
    Answer, Batch, Call, Config, Disposition, Handle, IncomingRequest, Operation,
};
use crate::correlate::CancelToken;
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
    external: External,
    middleware: Vec<Arc<dyn Middleware>>,
    config: Config,
    policy: Option<Arc<Policy>>,
    max_hops: u64,
}

impl Front {
    /// A front before that server.
    pub fn new(external: External) -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        Self {
            external,
            middleware: Vec::new(),
            config: Config::new(Side::Server, name, version),
            policy: None,
            max_hops: MAX_HOPS,
        }
    }

    /// Adds middleware behind what was added before.
    pub fn with(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Sets who may do what: credentials, permissions, rates, audit. Credentials that clients send never reach the server
    /// (R-CHN-15).
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(Arc::new(policy));
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
        let verifies = self
            .policy
            .as_ref()
            .is_some_and(|policy| policy.has_verifier());
        let parts = Parts {
            external: self.external.clone(),
            middleware: self.middleware.clone(),
            config: Arc::new(self.config.clone()),
            registry: Arc::new(registry),
            spawner,
            verifies,
            max_hops: self.max_hops,
            attempts: Attempts::default(),
            mirrored,
            era: AtomicU8::new(0),
        };
        Arc::new(Hosted(Arc::new(Shared {
            parts: Arc::new(parts),
            parking: Arc::new(Parking::default()),
            lanes: Arc::new(Lanes::default()),
        })))
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front")
            .field("external", &self.external)
            .field("middleware", &self.middleware.len())
            .finish_non_exhaustive()
    }
}

struct Hosted(Arc<Shared>);

impl Drop for Hosted {
    fn drop(&mut self) {
        self.0.parking.clear();
        self.0.lanes.clear();
    }
}

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        &self.0.parts.config
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.0.parts.registry.policy().cloned()
    }

    fn host(&self, handle: Handle, _timers: Option<&Handle>) -> ServerHost {
        let executor = FrontExecutor {
            shared: self.0.clone(),
            handle: handle.clone(),
            is_exchange: false,
            session: None,
            lanes: HashMap::new(),
            ends: CancelToken::new(),
        };
        ServerHost::new(self.0.parts.registry.clone(), handle, Box::new(executor))
    }
}

/// Takes the requests of one connection.
struct FrontExecutor {
    shared: Arc<Shared>,
    handle: Handle,
    /// Whether the connection carries one request, as over HTTP in the stateless era.
    is_exchange: bool,
    /// The connection to the server, of a client of the handshake era.
    session: Option<Arc<Lane>>,
    /// The connections to the server, of a client of the stateless era, by the capabilities that it declares.
    lanes: HashMap<Box<str>, Arc<Lane>>,
    /// Cancelled when streams that would stay open for ever are to end.
    ends: CancelToken,
}

impl FrontExecutor {
    /// The connection to the server that a request takes.
    fn way(&mut self, call: &Call) -> Option<Way> {
        if call.reply.revision().era() == Era::Handshake {
            return self.session.clone().map(Way::Own);
        }
        let view = call.message.as_ref();
        let capabilities = view.client_capabilities().unwrap_or("{}");
        if self.is_exchange {
            return Some(Way::Shared(LaneKey {
                principal: principal_of(call, &self.handle),
                capabilities: capabilities.into(),
            }));
        }
        let known = match self.shared.parts.era() {
            Some(Era::Stateless) => self.lanes.values().next(),
            _ => self.lanes.get(capabilities),
        };
        if let Some(lane) = known {
            return Some(Way::Own(lane.clone()));
        }
        let lane = self.lane(
            call.reply.revision(),
            capabilities.into(),
            view.raw(Field::ClientInfo).map(Box::from),
        );
        if self.lanes.len() >= MAX_SETS {
            self.lanes.clear();
        }
        self.lanes.insert(capabilities.into(), lane.clone());
        Some(Way::Own(lane))
    }

    /// A connection to the server for the client of this connection alone.
    fn lane(
        &self,
        revision: Revision,
        capabilities: Box<str>,
        implementation: Option<Box<str>>,
    ) -> Arc<Lane> {
        let near = Near {
            handle: Some(self.handle.clone()),
            revision,
            capabilities,
            implementation,
        };
        Lane::new(self.shared.parts.clone(), near, host)
    }

    fn initialize(&mut self, call: Call) {
        let peer = self.handle.peer().cloned().unwrap_or_default();
        let implementation = Some(peer.implementation).filter(|it| !it.is_empty());
        // The call itself is served in the newest revision that both could have agreed on.
        let revision = self.handle.revision().unwrap_or(call.reply.revision());
        let lane = self.lane(revision, peer.capabilities, implementation);
        self.session = Some(lane.clone());
        let (shared, front) = (self.shared.clone(), self.handle.clone());
        drive(Box::pin(async move {
            let far = lane.far().await;
            let result = far.map(|far| ChainResponse::new(initialized(&far, revision, &shared)));
            shared.parts.answer(&front, &call.reply, result);
        }));
    }

    fn discover(&mut self, call: Call) {
        let Some(way) = self.way(&call) else { return };
        let (shared, front) = (self.shared.clone(), self.handle.clone());
        drive(Box::pin(async move {
            let lane = match way {
                Way::Own(lane) => Ok(lane),
                Way::Shared(key) => shared.lanes.shared(&shared.parts, key),
            };
            let far = match lane {
                Ok(lane) => lane.far().await,
                Err(error) => Err(error),
            };
            let result =
                far.map(|far| ChainResponse::new(discovered(&far, call.reply.revision(), &shared)));
            shared.parts.answer(&front, &call.reply, result);
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
                let asked = key.and_then(|key| self.session.as_ref()?.question(key));
                if let Some((far, reply)) = asked {
                    pass_progress(&far, &reply, &message);
                }
                false
            }
            Some(Method::Cancelled | Method::Initialized | Method::InitializedBare) => false,
            _ => {
                let lanes = self.session.iter().chain(self.lanes.values());
                for (lane, far) in lanes.filter_map(|lane| Some((lane, lane.ready()?))) {
                    let is_known_there =
                        known.is_none_or(|known| known.defined(far.revision, Side::Client));
                    let crosses_eras = lane.era() != far.revision.era();
                    let own = own(self.shared.parts.verifies, crosses_eras);
                    if !is_known_there {
                        continue;
                    }
                    let params = message.params().map(|params| without(params, own));
                    let direction = RelayDirection::ToServer;
                    let shown = ChainNotification::new(direction, &method, params.as_deref());
                    let parts = self.shared.parts.clone();
                    drive(Box::pin(async move {
                        if let Some(shown) = notify(&parts.middleware, shown).await {
                            let _ = far.handle().notify(&shown.method, shown.params.as_deref());
                        }
                    }));
                }
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
                    drive(Box::pin(carry(
                        shared,
                        way,
                        call,
                        (front, self.ends.clone()),
                    )));
                }
            }
        }
    }

    fn spawn(&mut self, job: Job) {
        self.shared.parts.spawner.spawn(job);
    }

    fn initialized(&mut self) {
        let lane = self.session.as_ref();
        if let Some((lane, far)) = lane.and_then(|lane| Some((lane, lane.ready()?)))
            && far.revision.era() == Era::Stateless
        {
            // Fails only if the connection is lost, and then it is opened again.
            let _ = listen::follow(lane, &far);
        }
    }

    fn draining(&mut self) {
        self.ends.cancel(None);
    }

    fn closed(&mut self) {
        self.ends.cancel(None);
        self.session = None;
        self.lanes.clear();
    }

    fn renew(&mut self) -> bool {
        self.session.is_none() && self.lanes.is_empty() && !self.ends.is_cancelled()
    }
}

/// The result of `initialize`.
fn initialized(far: &Far, revision: Revision, shared: &Shared) -> String {
    let mut out = vec![b'{'];
    push(&mut out, "protocolVersion", &json_text(revision.name()));
    introduce(&mut out, far, revision);
    let own = match far.implementation() {
        "" => &*shared.parts.config.implementation,
        own => own,
    };
    push(&mut out, "serverInfo", own);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The result of `server/discover`.
fn discovered(far: &Far, revision: Revision, shared: &Shared) -> String {
    let mut out = vec![b'{'];
    push(
        &mut out,
        "supportedVersions",
        &shared.parts.config.revisions.to_json(),
    );
    introduce(&mut out, far, revision);
    out.push(b'}');
    let result = String::from_utf8(out).unwrap_or_default();
    translate::newer_result(&result, Some(Method::Discover), far.implementation())
}

fn introduce(out: &mut Vec<u8>, far: &Far, revision: Revision) {
    let offered =
        translate::server_capabilities(far.capabilities(), far.revision.era(), revision.era());
    push(out, "capabilities", &offered);
    let instructions = far
        .handle()
        .peer()
        .and_then(|peer| peer.instructions.as_deref());
    if let Some(instructions) = instructions {
        push(out, "instructions", &json_text(instructions));
    }
}
