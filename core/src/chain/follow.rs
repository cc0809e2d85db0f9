//! Changes of lists and resources towards clients of the handshake era: what their sessions have subscribed to, and the streams on
//! which this side listens to a server of the stateless era for them (R-CHN-13).

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::attempts::{LONGEST_WAIT, wait_after};
use super::behalf::{Asked, Behalf, ask};
use super::far::{self, Far};
use super::filter::{LISTS, granted};
use super::lane::Lane;
use super::list_cache::change_of_list;
use super::listen::{MAX_SUBSCRIPTIONS, about, declares, insist, is_wanted, subscribe_to, tell};
use super::middleware::{ChainRequest, ChainResponse, refusal};
use super::own_streams::{Listening, StreamId};
use super::params::{json_text, log_level, with_meta};
use super::parts::{Parts, no_such_method};
use super::sessions::Session;
use super::unless::unless;
use crate::connection::{Handle, Principal, RequestOptions};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::driven::drive;
use crate::json::reader;
use crate::mcp::code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::mcp::{Era, Method, meta};
use crate::sync::lock;

/// A stream of this side has brought something: passes it to the session of the client.
pub(super) fn heard(
    lane: &Arc<Lane>,
    id: Option<StreamId>,
    method: Option<Method>,
    params: Option<&str>,
) {
    let Some(method) = method else { return };
    if method == Method::SubscriptionAcknowledged {
        return opened(lane, id, params);
    }
    let behalf = {
        let all = lock(&lane.own_streams.all);
        let own = all.iter().find(|one| Some(one.id) == id);
        own.map(|own| own.behalf.clone())
    };
    let is_change = matches!(
        method,
        Method::ToolsChanged
            | Method::PromptsChanged
            | Method::ResourcesChanged
            | Method::ResourceUpdated
    );
    let Some(behalf) = behalf.filter(|_| is_change) else {
        return;
    };
    let uri = params.and_then(|params| reader::find(params, "uri"));
    let uri = uri.and_then(reader::as_str).unwrap_or_default();
    let own = with_meta(params.unwrap_or("{}"), meta::SUBSCRIPTION_ID, None);
    let own = Some(own).filter(|own| own != "{}");
    match method {
        Method::ResourceUpdated => updated(lane, &behalf, &uri, own.as_deref()),
        _ => {
            for session in lane.sessions.all() {
                tell_client(lane, &session.handle, method, own.as_deref());
            }
        }
    }
}

/// Tells the sessions that have subscribed to a resource on that behalf of a change.
pub(super) fn updated(lane: &Arc<Lane>, behalf: &Behalf, uri: &str, params: Option<&str>) {
    for session in lane.sessions.all() {
        if session.wants_for(uri, &behalf.who()) || !lane.is_shared() {
            tell_client(lane, &session.handle, Method::ResourceUpdated, params);
        }
    }
}

/// A stream of this side is open: tells the sessions of what they may have missed before, if nothing told of it.
fn opened(lane: &Arc<Lane>, id: Option<StreamId>, params: Option<&str>) {
    let Some((behalf, late)) = lane.own_streams.opened(id) else {
        return;
    };
    let Some(far) = lane.ready() else { return };
    if late.is_some_and(|late| late.lists) {
        tell_all(lane, &far);
    }
    if late.is_some() {
        let granted = ["notifications", "resourceSubscriptions"];
        let granted = params.and_then(|params| reader::find_path(params, &granted));
        for uri in reader::elements(granted.unwrap_or("[]")).filter_map(reader::as_str) {
            updated(lane, &behalf, &uri, Some(&about(&uri)));
        }
    }
    if behalf != behalf_of_sessions(lane) {
        return;
    }
    let told: Vec<_> = changing(lane, far.capabilities()).collect();
    for session in lane.sessions.all() {
        let missed = std::mem::take(&mut *lock(&session.missed));
        for change in missed.into_iter().filter(|it| told.contains(it)) {
            lane.parts.lists.changed(lane.parts.index, change);
            tell_client(lane, &session.handle, change, None);
        }
    }
}

/// Notes that a client of the handshake era asks for a list of its servers, if it would miss that the list of one of them changes:
/// while the server's stream is not open yet.
pub(super) fn note_list(lanes: &[Arc<Lane>], sessions: &[Arc<Session>], list: Method) {
    let Some(change) = change_of_list(list) else {
        return;
    };
    for (lane, session) in lanes.iter().zip(sessions) {
        if lane
            .ready()
            .is_some_and(|far| far.revision.era() == Era::Handshake)
        {
            continue;
        }
        lane.own_streams.unless_open(&behalf_of_sessions(lane), || {
            let mut missed = lock(&session.missed);
            if !missed.contains(&change) {
                missed.push(change);
            }
        });
    }
}

/// Subscribes a client of the handshake era to a resource of a server of the stateless era.
pub(super) async fn subscribe(
    lane: &Arc<Lane>,
    far: &Far,
    session: &Session,
    uri: &str,
    who: &Option<Principal>,
) -> Result<ChainResponse, RequestError> {
    if !declares(far.capabilities(), "resources", "subscribe") {
        return Err(no_such_method(Method::Subscribe.name()));
    }
    let behalf = Behalf::of(who.clone());
    if let Some(before) = add(session, uri, who)?.filter(|before| before != who) {
        // Fails only if the connection is lost.
        let _ = follow(lane, far, &Behalf::of(before));
    }
    let subscribed = acknowledged(lane, far, &behalf).await;
    if subscribed.is_err() {
        // Another stream may have the resource: that of an earlier request, or of one that came meanwhile.
        let servers = lock(&lane.own_streams.all);
        let has_it = |one: &Listening| one.behalf == behalf && one.uris.contains(uri);
        if !servers.iter().any(has_it) {
            lock(&session.subscribed).remove(uri);
        }
    }
    subscribed.map(|()| ChainResponse::new("{}"))
}

/// Adds a subscription to those of a session. Returns who has asked for it before; `None` if it is new.
///
/// # Errors
/// If there are too many.
pub(super) fn add(
    session: &Session,
    uri: &str,
    who: &Option<Principal>,
) -> Result<Option<Option<Principal>>, RequestError> {
    let mut all = lock(&session.subscribed);
    if all.len() >= MAX_SUBSCRIPTIONS && !all.contains_key(uri) {
        return Err(RequestError::Overloaded);
    }
    Ok(all.insert(uri.into(), who.clone()))
}

/// Listens, and waits until the server has acknowledged it.
async fn acknowledged(lane: &Arc<Lane>, far: &Far, behalf: &Behalf) -> Result<(), RequestError> {
    let Some((id, acknowledged)) = follow(lane, far, behalf)? else {
        return Ok(());
    };
    let far = far.handle();
    let patience = far.sleep(far.config().limits.request_timeout);
    if unless(patience, acknowledged.cancelled()).await.is_some() {
        lane.own_streams.forget(id, None, false);
        return Err(RequestError::TimedOut);
    }
    match acknowledged.reason() {
        Some(why) => Err(refusal(INTERNAL_ERROR, why)),
        None => Ok(()),
    }
}

/// Ends the subscription of a client of the handshake era. The client is answered when the server has acknowledged the stream
/// without the resource, so that it hears of no change that comes after the answer.
pub(super) async fn unsubscribe(
    lane: &Arc<Lane>,
    far: &Far,
    session: &Session,
    uri: &str,
) -> Result<ChainResponse, RequestError> {
    let subscribed = lock(&session.subscribed).remove(uri);
    let Some(who) = subscribed.filter(|who| !lane.sessions.wants_for(uri, who)) else {
        return Ok(ChainResponse::new("{}"));
    };
    let behalf = Behalf::of(who);
    if acknowledged(lane, far, &behalf).await.is_err() {
        // The stream before may still tell of the resource.
        lane.own_streams.end(&behalf);
        lane.own_streams
            .note_late(&behalf, behalf == behalf_of_sessions(lane));
        reopen(Arc::downgrade(lane), behalf);
    }
    Ok(ChainResponse::new("{}"))
}

pub(super) fn uri(request: &ChainRequest) -> Result<Box<str>, RequestError> {
    let uri = request.view().uri();
    let uri = uri.ok_or_else(|| refusal(INVALID_PARAMS, "uri is missing"))?;
    Ok((&*uri).into())
}

/// Listens, for clients of the handshake era, to what a server of the stateless era says may change: on behalf of a client, to the
/// resources that it has subscribed to; and on [behalf of the sessions](behalf_of_sessions), to the lists. The stream before ends when
/// this one is acknowledged: then the token is cancelled, or with a reason if the server refuses. If nothing told of changes before, clients hear
/// then that they may have missed some. `None` if there is nothing to listen to.
///
/// # Errors
/// If the request cannot be sent.
pub(super) fn follow(
    lane: &Arc<Lane>,
    far: &Far,
    behalf: &Behalf,
) -> Result<Option<(StreamId, CancelToken)>, RequestError> {
    follow_with(lane, far, || {
        let own = lane.sessions.subscribed().remove_entry(&behalf.who());
        match own {
            Some((newest, uris)) => (Behalf::of(newest), uris),
            None => (behalf.clone(), BTreeSet::new()),
        }
    })
}

/// On whose behalf this side asks for what all sessions of a lane get, such as changes of lists.
pub(super) fn behalf_of_sessions(lane: &Lane) -> Behalf {
    Behalf::of_all(lane.isolation(), || lane.sessions.who())
}

/// Those on whose behalf there is something to listen to.
fn listeners_of(lane: &Lane) -> impl Iterator<Item = Behalf> {
    let (sessions, clients) = (behalf_of_sessions(lane), lane.sessions.subscribed());
    let clients = clients.into_keys().map(Behalf::of);
    let others: Vec<_> = clients.filter(|client| *client != sessions).collect();
    std::iter::once(sessions).chain(others)
}

/// The same, on whose behalf and for what resources `wanted` says.
fn follow_with(
    lane: &Arc<Lane>,
    far: &Far,
    wanted: impl FnOnce() -> (Behalf, BTreeSet<Box<str>>),
) -> Result<Option<(StreamId, CancelToken)>, RequestError> {
    // The later of two streams is to have what the earlier one has, and the acknowledgement waits for the lock, so it finds the stream.
    let mut servers = lock(&lane.own_streams.all);
    let (behalf, uris) = wanted();
    let has_lists = behalf == behalf_of_sessions(lane);
    let kinds: Vec<_> = LISTS
        .iter()
        .filter(|(kind, _, _)| has_lists && declares(far.capabilities(), kind, "listChanged"))
        .collect();
    let has_both = !kinds.is_empty() && !uris.is_empty();
    if kinds.is_empty() && uris.is_empty() {
        let gone = lane.own_streams.take(&mut servers, &behalf);
        drop(servers);
        drop(gone);
        return Ok(None);
    }
    let params = format!("{{\"notifications\":{}}}", granted(&kinds, &uris));
    let options = RequestOptions {
        timeout: Some(Duration::MAX),
        ..RequestOptions::default()
    };
    let ways = (far.handle(), far.routes());
    let asked = ask(ways, &behalf, (Method::Listen, &params), options)?;
    let listening = Listening {
        id: (far.number(), asked.key().get()),
        behalf: behalf.clone(),
        uris,
        is_open: false,
        acknowledged: CancelToken::new(),
        cancel: CancelToken::new(),
    };
    let cancel = listening.cancel.clone();
    let followed = (listening.id, listening.acknowledged.clone());
    servers.push(listening);
    drop(servers);
    let kept = keep(
        Arc::downgrade(lane),
        (asked, behalf),
        cancel,
        followed.clone(),
        has_both,
    );
    drive(Box::pin(kept));
    Ok(Some(followed))
}

/// Keeps a stream open until this side or the server ends it. One that the server ends is opened again, unless the server has
/// refused it: then it is asked once more for the lists alone, if nothing else tells of them.
async fn keep(
    lane: Weak<Lane>,
    (asked, behalf): (Asked, Behalf),
    cancel: CancelToken,
    (id, acknowledged): (StreamId, CancelToken),
    has_both: bool,
) {
    let begun = Instant::now();
    let ended = unless(asked, cancel.cancelled()).await;
    let (Some(ended), Some(held)) = (ended, lane.upgrade()) else {
        return;
    };
    let refusal = ended.as_ref().err().filter(|error| is_final(error));
    let refusal = refusal.filter(|_| !acknowledged.is_cancelled()).cloned();
    // A connection that is lost is restored with all that it had.
    let is_lost = matches!(ended, Err(RequestError::Closed(_)));
    let why = ended.map_or_else(
        |error| error.to_string(),
        |_| "the server ended the stream of changes".to_owned(),
    );
    if begun.elapsed() >= LONGEST_WAIT {
        lock(&held.own_streams.endings).remove(&behalf);
    }
    let lists = !is_lost && behalf == behalf_of_sessions(&held);
    held.own_streams.forget(id, Some(&why), lists);
    let Some(error) = refusal else {
        return reopen(lane, behalf);
    };
    if held.own_streams.has(&behalf) {
        return;
    }
    log_refusal(&held.parts, &error);
    let far = held.ready().filter(|_| has_both);
    let lists = || (behalf, BTreeSet::new());
    let again = far.map(|far| (follow_with(&held, &far, lists), far));
    if let Some((Ok(_), far)) = again {
        tell_all(&held, &far);
    }
}

/// Logs that changes of a server, or of its resources, are not heard.
#[cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, reason = "there is no log")
)]
pub(super) fn log_refusal(parts: &Parts, error: &RequestError) {
    #[cfg(feature = "tracing")]
    if let RequestError::Peer(error) = error {
        let (server, code) = (parts.external.name(), error.code);
        tracing::warn!(server, code, "a server refuses to tell of changes");
    }
}

/// Whether a server that answers so to a request would answer so again.
pub(super) fn is_final(error: &RequestError) -> bool {
    matches!(error, RequestError::Peer(error) if matches!(error.code, INVALID_REQUEST | METHOD_NOT_FOUND | INVALID_PARAMS))
}

/// Listens anew after a while, unless another stream has taken the place of the one that ended. Waits twice as long after each
/// stream that did not last.
fn reopen(lane: Weak<Lane>, behalf: Behalf) {
    drive(Box::pin(async move {
        loop {
            let Some((far, waits)) = lane.upgrade().and_then(|lane| {
                let mut endings = lock(&lane.own_streams.endings);
                let endings = endings.entry(behalf.clone()).or_default();
                *endings = endings.saturating_add(1);
                Some((lane.ready()?, *endings - 1))
            }) else {
                return;
            };
            let far = far.handle().clone();
            far.sleep(wait_after(waits)).await;
            let Some(lane) = lane.upgrade() else { return };
            // A lost connection has everything restored when it is open again.
            let Some(far) = lane.ready() else { return };
            if lane.own_streams.has(&behalf) {
                return;
            }
            match acknowledged(&lane, &far, &behalf).await {
                Err(RequestError::TimedOut | RequestError::Overloaded) => {}
                // It is open, or has ended and sees to its own place.
                Ok(()) | Err(_) => return,
            }
        }
    }));
}

/// Tells a client of the handshake era that all lists may be others.
fn tell_all(lane: &Arc<Lane>, far: &Far) {
    for method in changing(lane, far.capabilities()) {
        for session in lane.sessions.all() {
            tell_client(lane, &session.handle, method, None);
        }
    }
}

/// The notifications that all lists of a server with these capabilities may be others.
pub(super) fn changing(lane: &Lane, capabilities: &str) -> impl Iterator<Item = Method> {
    let lists = LISTS
        .into_iter()
        .filter(|(kind, _, _)| match lane.parts.is_of_many {
            // The lists of several servers change when one of them is found.
            true => reader::find(capabilities, kind).is_some(),
            false => declares(capabilities, kind, "listChanged"),
        });
    lists.map(|(_, _, method)| method)
}

/// Tells a client of the handshake era of a change, as middleware shows it.
fn tell_client(lane: &Arc<Lane>, near: &Handle, method: Method, params: Option<&str>) {
    let near = near.clone();
    lane.show(method.name(), params, move |_, shown| {
        // Fails only if the client is gone.
        let _ = near.notify(&shown.method, shown.params.as_deref());
    });
}

/// Notes what a session has subscribed to, so that it can be restored.
pub(super) fn note(
    session: &Session,
    request: &ChainRequest,
    method: Option<Method>,
    who: &Option<Principal>,
) {
    match (method, uri(request)) {
        // One too many is not restored.
        (Some(Method::Subscribe), Ok(uri)) => drop(add(session, &uri, who)),
        (Some(Method::Unsubscribe), Ok(uri)) => drop(lock(&session.subscribed).remove(&uri)),
        _ => {}
    }
}

/// Notes the log level that a session asks for, so that it can be restored.
pub(super) fn note_level(session: &Session, request: &ChainRequest) {
    if let Some(level) = log_level(request.params()) {
        *lock(&session.level) = Some(level);
    }
}

/// The session of a client on a lane, which it leaves when this is dropped.
pub(super) struct Joined(Arc<Lane>, Arc<Session>);

impl Joined {
    /// Begins the session of a client, which `who` opens.
    pub fn new(lane: &Arc<Lane>, client: &Handle, who: Option<Principal>) -> Self {
        Self(lane.clone(), lane.sessions.join(far::number(), client, who))
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.1
    }

    /// Goes on with the session on a lane to the same server. Returns whether it is another lane.
    pub fn go_on(&mut self, lane: &Arc<Lane>) -> bool {
        if Arc::ptr_eq(&self.0, lane) {
            return false;
        }
        lane.sessions.add(&self.1);
        let before = std::mem::replace(&mut self.0, lane.clone());
        before.sessions.leave(&self.1);
        true
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let Self(lane, session) = self;
        lane.sessions.leave(session);
        let subscribed = std::mem::take(&mut *lock(&session.subscribed));
        // A lane of one client ends with it.
        let Some(far) = lane.ready().filter(|_| lane.is_shared()) else {
            return;
        };
        match far.revision.era() {
            Era::Handshake => {
                let unwanted = subscribed.keys().filter(|uri| !is_wanted(lane, &far, uri));
                unwanted.for_each(|uri| tell(far.handle(), Method::Unsubscribe, uri));
            }
            Era::Stateless => {
                let clients: HashSet<_> = subscribed.into_values().collect();
                for who in clients {
                    // Fails only if the connection is lost.
                    let _ = follow(lane, &far, &Behalf::of(who));
                }
            }
        }
    }
}

/// Restores on a new connection what the session had on the lost one, and tells the client that all lists may be others, and each resource
/// that it has subscribed to when the server tells of its changes again (R-CHN-14).
pub(super) fn restore(lane: &Arc<Lane>, far: &Far) {
    match far.revision.era() {
        Era::Handshake => {
            let level = lane.sessions.level();
            *lock(far.level()) = level.filter(|_| lane.is_shared());
            if let Some(level) = level
                && reader::find(far.capabilities(), "logging").is_some()
            {
                let params = format!("{{\"level\":{}}}", json_text(level.name()));
                let is_wanted = move |lane: &Lane| lane.sessions.level() == Some(level);
                let (behalf, request) = (behalf_of_sessions(lane), (Method::SetLevel, params));
                insist(lane, far, behalf, request, is_wanted, |_, _| {});
            }
            for (who, uris) in lane.sessions.subscribed() {
                let uris = uris.iter();
                uris.for_each(|uri| subscribe_to(lane, far, uri, &who, true));
            }
        }
        Era::Stateless => {
            let listeners: Vec<_> = listeners_of(lane).collect();
            lane.own_streams.retain_late(&listeners);
            for behalf in listeners {
                // Fails only if the connection is lost again.
                let _ = follow(lane, far, &behalf);
            }
        }
    }
    tell_all(lane, far);
}
