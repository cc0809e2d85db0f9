//! The connection of a client to a front: which connections to the servers its requests take.

use std::collections::HashMap;
use std::sync::Arc;

use super::behalf::Behalf;
use super::carry::{Near, carry};
use super::external::Isolation;
use super::far::Far;
use super::follow::{self, Joined};
use super::introduce::meet;
use super::lane::{self, Lane};
use super::lane_key::LaneKey;
use super::listen::declares;
use super::middleware::{ChainNotification, RelayDirection, notify};
use super::params::{own, without};
use super::passage::Way;
use super::prefix;
use super::route::principal_of;
use super::sessions::Session;
use super::shared::{Member, Shared};
use super::translate;
use super::unless::unless;
use super::upstream::{host, pass_progress, reopen};
use crate::connection::{
    Answer, Batch, Call, Disposition, Handle, IncomingRequest, Operation, RequestScope,
};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::driven::drive;
use crate::handler::scoped::scoped;
use crate::handler::{Executor, Job};
use crate::json::number;
use crate::mcp::{Era, ErrorKind, Method, Revision, Side};
use crate::message::{Field, MessageRef};

/// The most sets of capabilities that one client of the stateless era may use at a time.
const MAX_SETS: usize = 16;

const NOT_OPENED: &str = "the session has not begun, since `initialize` was refused; connect again";

/// The connections to the servers for one client alone, one for each server.
type Own = Arc<[Arc<Lane>]>;

/// Takes the requests of one connection.
pub(super) struct FrontExecutor {
    shared: Arc<Shared>,
    handle: Handle,
    /// A connection whose clock runs as long as calls of this one.
    timers: Handle,
    /// Whether the connection carries one request, as over HTTP in the stateless era.
    is_exchange: bool,
    /// Whether the client reads messages that belong to no request.
    listens: bool,
    /// The connections to the servers, of a client of the handshake era.
    session: Option<Own>,
    /// The session of such a client with each server.
    joined: Vec<Joined>,
    /// The same, for its calls.
    sessions: Arc<[Arc<Session>]>,
    /// The connections to the servers, of a client of the stateless era, by the capabilities that it declares.
    lanes: HashMap<Box<str>, Own>,
    /// Cancelled when streams that would stay open for ever are to end.
    ends: CancelToken,
    /// Cancelled when nobody waits for answers any more.
    closed: CancelToken,
}

impl FrontExecutor {
    /// For the client of a connection. The clock of `timers` runs as long as its calls.
    pub fn new(shared: Arc<Shared>, handle: Handle, timers: Handle) -> Self {
        Self {
            shared,
            handle,
            timers,
            is_exchange: false,
            listens: true,
            session: None,
            joined: Vec::new(),
            sessions: Arc::default(),
            lanes: HashMap::new(),
            ends: CancelToken::new(),
            closed: CancelToken::new(),
        }
    }

    /// The connections to the servers that a request may take. A request without one is answered.
    fn way(&mut self, call: &Call) -> Option<Way> {
        if call.reply.revision().era() == Era::Handshake {
            if let Some(who) = call.reply.principal() {
                let all = self.joined.iter();
                all.for_each(|joined| joined.session().sent_by(who));
            }
            let Some(session) = self.session.clone() else {
                let mut replies = self.handle.replies();
                replies.error(&call.reply, ErrorKind::InvalidRequest, NOT_OPENED, None);
                replies.submit_last();
                return None;
            };
            let has_all = self.stop_borrowing(&session, call);
            return self.session.clone().filter(|_| has_all).map(Way::Own);
        }
        let view = call.message.as_ref();
        let capabilities = view.client_capabilities().unwrap_or("{}");
        if self.is_exchange {
            return Some(Way::Shared(LaneKey {
                principal: principal_of(call, &self.handle).map(|it| it.as_str().into()),
                capabilities: capabilities.into(),
                is_lent: false,
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
            let is_session = revision.era() == Era::Handshake && isolation == Isolation::Session;
            match LaneKey::of_session(isolation, principal, &neutral) {
                Some(key) => member.lanes.shared(&member.parts, key),
                None if is_session && member.parts.lends() => member.lanes.lent(&member.parts),
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
            listens: self.listens,
            implementation,
            shared_by: None,
        };
        Lane::new(member.parts.clone(), near, host)
    }

    /// Gives the session connections of its own in place of those that it shares because it needed none: where the server has become one
    /// of the handshake era, or the session is about to subscribe to a resource. Returns whether it has all that it needs; a call
    /// for which there are too many connections is answered.
    fn stop_borrowing(&mut self, session: &Own, call: &Call) -> bool {
        let subscribed = self.subscribed(call);
        let ends = |lane: &Arc<Lane>| {
            let subscribes = || {
                let far = lane.ready();
                subscribed == Some(lane.parts.index)
                    && far.is_none_or(|far| declares(far.capabilities(), "resources", "subscribe"))
            };
            lane.is_lent() && (!lane.parts.lends() || subscribes())
        };
        if !session.iter().any(ends) {
            return true;
        }
        let peer = self.handle.peer().cloned().unwrap_or_default();
        let revision = self.handle.revision().unwrap_or(call.reply.revision());
        let mut own = Vec::from(&**session);
        for (lane, member) in own.iter_mut().zip(&self.shared.members) {
            if !ends(lane) {
                continue;
            }
            if !member.parts.places.have_room() {
                let error = Err(RequestError::Overloaded);
                member.parts.answer(&self.handle, &call.reply, error);
                return false;
            }
            let named = Some(peer.implementation.clone()).filter(|it| !it.is_empty());
            *lane = self.lane(member, revision, peer.capabilities.clone(), named);
        }
        for (joined, lane) in self.joined.iter_mut().zip(&own) {
            if joined.go_on(lane) {
                // Restores what the session had, such as its log level.
                reopen(lane);
            }
        }
        self.session = Some(own.into());
        true
    }

    /// The index of the server of a resource, if a call subscribes to one.
    fn subscribed(&self, call: &Call) -> Option<usize> {
        let method = call.method.filter(|method| *method == Method::Subscribe)?;
        let params = call.message.as_ref().params().unwrap_or("{}");
        let (kind, outer) = prefix::target(Some(method), params)?;
        self.shared.owner(kind, &outer).map(Member::index)
    }

    fn initialize(&mut self, call: Call) {
        let peer = self.handle.peer().cloned().unwrap_or_default();
        let implementation = Some(&*peer.implementation).filter(|it| !it.is_empty());
        let revision = self.handle.revision().unwrap_or(call.reply.revision());
        let Some(own) = self.own(&call, &peer.capabilities, implementation) else {
            return;
        };
        let who = principal_of(&call, &self.handle);
        let joined = own.iter();
        let joined = joined.map(|lane| Joined::new(lane, &self.handle, who.clone()));
        self.joined = joined.collect();
        self.sessions = self.joined.iter().map(Joined::session).cloned().collect();
        self.session = Some(own.clone());
        let (shared, front) = (self.shared.clone(), self.handle.clone());
        let (timers, scope) = (self.timers.clone(), call.scope.clone());
        self.open(scope, async move {
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
        let (timers, scope) = (self.timers.clone(), call.scope.clone());
        self.open(scope, async move {
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
    fn open(
        &self,
        scope: Option<RequestScope>,
        opening: impl Future<Output = ()> + Send + 'static,
    ) {
        let closed = self.closed.clone();
        drive_within(scope, async move {
            unless(opening, closed.cancelled()).await;
        });
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

    fn listened(&mut self, listens: bool) {
        self.listens = listens;
        let own = self.session.iter().flat_map(|own| own.iter());
        own.filter(|_| listens).for_each(|lane| lane.listen());
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
                let is_heard = |lane: &&Arc<Lane>| !lane.is_shared() || lane.is_lent();
                let mut lanes: Vec<_> = sets.filter(is_heard).collect();
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
                        sessions: self.sessions.clone(),
                        ends: self.ends.clone(),
                        timers: self.timers.clone(),
                    };
                    let scope = call.scope.clone();
                    drive_within(scope, carry(shared, way, call, near));
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
                    let behalf = follow::behalf_of_sessions(lane);
                    // Those that share a lane hear by one stream of the lists.
                    if behalf != Behalf::All || !lane.own_streams.has(&behalf) {
                        // Fails only if the connection is lost, and then it is opened again.
                        let _ = follow::follow(lane, &far, &behalf);
                    }
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
        self.sessions = Arc::default();
        self.session = None;
        self.lanes.clear();
    }

    fn renew(&mut self) -> bool {
        self.session.is_none() && self.lanes.is_empty() && !self.ends.is_cancelled()
    }
}

/// Runs a job on the threads that wake it, within `scope` if there is one.
fn drive_within(scope: Option<RequestScope>, job: impl Future<Output = ()> + Send + 'static) {
    drive(match scope {
        None => Box::pin(job),
        Some(scope) => Box::pin(scoped(scope, job)),
    });
}
