//! Changes of lists and resources towards clients of the stateless era: a stream that listens, of one that has no session with the
//! server (R-CHN-12).

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;

use super::attempts::wait_after;
use super::behalf::{Behalf, ask};
use super::far::Far;
use super::filter::{LISTS, granted};
use super::follow::updated;
use super::lane::Lane;
use super::listeners::{Listener, Listeners};
use super::middleware::{ChainNotification, ChainRequest, ChainResponse, RelayDirection, refusal};
use super::params::json_text;
use super::route::Route;
use super::stream::{acknowledge, ended_well, over};
use super::unless::unless;
use crate::connection::{Handle, Principal, RequestOptions};
use crate::error::RequestError;
use crate::handler::driven::drive;
use crate::json::reader;
use crate::mcp::Method;
use crate::mcp::code::{INTERNAL_ERROR, INVALID_PARAMS, OVERLOADED, RATE_LIMITED};
use crate::sync::lock;

/// The most resources that one client may subscribe to through a front.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1000;

pub(super) fn declares(capabilities: &str, kind: &str, what: &str) -> bool {
    reader::find_path(capabilities, &[kind, what]) == Some("true")
}

/// Serves a stream that listens, of a client of the stateless era, from the notifications of a session.
pub(super) async fn serve(
    lane: &Arc<Lane>,
    far: &Far,
    route: &Arc<Route>,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let filter = filter(request)?;
    let wants = |name| reader::find(filter, name) == Some("true");
    let kinds: Vec<_> = LISTS
        .iter()
        .filter(|(kind, name, _)| wants(name) && declares(far.capabilities(), kind, "listChanged"))
        .collect();
    let may_subscribe = declares(far.capabilities(), "resources", "subscribe");
    let uris = reader::find(filter, "resourceSubscriptions").filter(|_| may_subscribe);
    let uris = uris
        .into_iter()
        .flat_map(reader::elements)
        .filter_map(reader::as_str);
    let uris: BTreeSet<Box<str>> = uris.map(Box::from).take(MAX_SUBSCRIPTIONS).collect();
    if !lane.parts.is_of_many {
        route.hold(Vec::new());
    }
    let listeners = far.listeners();
    let number = listeners.begin(Listener {
        route: route.clone(),
        kinds: kinds.iter().map(|(_, _, method)| *method).collect(),
        uris: uris.clone(),
    });
    let _gone = Gone(lane, far, number);
    let mut decided = Vec::new();
    for uri in &uris {
        let is_first = {
            let mut all = lock(&listeners.uris);
            let clients = all.entry(uri.clone()).or_default();
            let own = clients.entry(route.principal.clone()).or_default();
            own.streams.insert(number);
            decided.push(own.is_tried.clone());
            own.streams.len() == 1
        };
        if is_first {
            subscribe_to(lane, far, uri, &route.principal, false);
        }
    }
    // The connection may be lost at any moment: then the client listens anew.
    let mut ending = pin!(unless(over(route), listeners.ended.cancelled()));
    let subscribed = async {
        for uri in decided {
            uri.cancelled().await;
        }
    };
    let early = unless(ending.as_mut(), subscribed).await;
    // Without what the server has refused (R-SUB-03).
    let granted = granted(&kinds, &listeners.uris_of(number));
    let is_whole = match lane.parts.is_of_many {
        true => {
            arrived(lane, route, &granted);
            true
        }
        false => acknowledge(&lane.parts, route, &seen(lane, &granted)).await,
    };
    match early {
        Some(ended) => ended.unwrap_or(Ok(()))?,
        None if is_whole => ending.await.unwrap_or(Ok(()))?,
        None => {}
    }
    ended_well(route)
}

/// The filter of a request that listens.
pub(super) fn filter(request: &ChainRequest) -> Result<&str, RequestError> {
    let filter = reader::find(request.params(), "notifications").filter(|it| it.starts_with('{'));
    filter.ok_or_else(|| refusal(INVALID_PARAMS, "notifications is an object"))
}

/// The filter of a server, as clients name things.
fn seen(lane: &Lane, filter: &str) -> String {
    let (name, params) = (
        Method::SubscriptionAcknowledged.name(),
        format!("{{\"notifications\":{filter}}}"),
    );
    let mut told = ChainNotification::new(RelayDirection::ToClient, name, Some(&params));
    if let Some(prefix) = &lane.parts.prefix {
        prefix.tell(&mut told);
    }
    let seen = told.params.as_deref();
    let seen = seen.and_then(|params| reader::find(params, "notifications"));
    seen.unwrap_or(filter).to_owned()
}

/// The stream of one of several servers is open: tells the client that everything may have changed, if it may have missed changes.
pub(super) fn arrived(lane: &Arc<Lane>, route: &Arc<Route>, filter: &str) {
    if !route.settle(&lane.parts, Some(&seen(lane, filter))) {
        return;
    }
    let tell = |method: Method, params: Option<&str>| {
        let route = route.clone();
        lane.show(method.name(), params, move |_, shown| {
            route.tell(&shown.method, shown.params.as_deref());
        });
    };
    for (_, name, method) in LISTS {
        if reader::find(filter, name) == Some("true") {
            tell(method, None);
        }
    }
    let uris = reader::find(filter, "resourceSubscriptions").unwrap_or("[]");
    for uri in reader::elements(uris).filter_map(reader::as_str) {
        tell(Method::ResourceUpdated, Some(&about(&uri)));
    }
}

/// Takes a client's stream off the lists of its connection when dropped.
struct Gone<'a>(&'a Lane, &'a Far, u64);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let Self(lane, far, number) = self;
        let listeners = far.listeners();
        let Some(gone) = lock(&listeners.clients).remove(number) else {
            return;
        };
        for uri in &gone.uris {
            let mut all = lock(&listeners.uris);
            let Some(counts) = all.get_mut(uri) else {
                continue;
            };
            if let Some(own) = counts.get_mut(&gone.route.principal)
                && own.streams.remove(number)
                && own.streams.is_empty()
            {
                counts.remove(&gone.route.principal);
            }
            if counts.is_empty() {
                all.remove(uri);
                drop(all);
                if !lane.sessions.wants(uri) {
                    tell(far.handle(), Method::Unsubscribe, uri);
                }
            }
        }
    }
}

/// Whether any client of a lane is told of changes of a resource.
pub(super) fn is_wanted(lane: &Lane, far: &Far, uri: &str) -> bool {
    lane.sessions.wants(uri) || lock(&far.listeners().uris).contains_key(uri)
}

/// What tells clients of the changes that one connection brings: the lane with their sessions, and their streams.
type Told<'a> = (&'a Lane, &'a Listeners);

/// Whether a client is told of changes of a resource that it has asked for.
fn is_wanted_for((lane, listeners): Told<'_>, uri: &str, who: &Option<Principal>) -> bool {
    let all = lock(&listeners.uris);
    let is_listened_for = all.get(uri).is_some_and(|counts| counts.contains_key(who));
    drop(all);
    is_listened_for || lane.sessions.wants_for(uri, who)
}

/// The server grants that client a resource, or could not be asked. A grant that comes after a failure tells the client of a change,
/// which it may have missed.
fn tried(
    (lane, listeners): (&Arc<Lane>, &Arc<Listeners>),
    uri: &str,
    who: &Option<Principal>,
    is_granted: bool,
) {
    let mut all = lock(&listeners.uris);
    let own = all.get_mut(uri).and_then(|clients| clients.get_mut(who));
    let Some(own) = own else { return };
    own.is_granted |= is_granted;
    let is_tried = own.is_tried.clone();
    drop(all);
    if !is_tried.cancel(None) && is_granted {
        may_have_changed((lane, listeners), uri);
    }
}

/// Tells those who want a resource of a change, which they may have missed.
pub(super) fn may_have_changed((lane, listeners): (&Arc<Lane>, &Arc<Listeners>), uri: &str) {
    let (method, told) = (Method::ResourceUpdated, about(uri));
    let listeners = listeners.clone();
    lane.show(method.name(), Some(&told.clone()), move |lane, shown| {
        let shown = shown.params.as_deref();
        changed((lane, &listeners), Some(method), Some(&told), shown);
    });
}

/// Whether a stream of a client may bring changes of a resource: not while nobody but another client is known to have been granted it.
fn may_hear((lane, listeners): Told<'_>, uri: &str, who: &Option<Principal>) -> bool {
    let all = lock(&listeners.uris);
    let Some(clients) = all.get(uri) else {
        return false;
    };
    let is_only = clients.len() == 1 && !lane.sessions.wants(uri);
    is_only || clients.get(who).is_some_and(|own| own.is_granted)
}

/// The server refuses that client a resource: others may hear of its changes.
fn refused((lane, listeners): Told<'_>, uri: &str, who: &Option<Principal>) {
    let mut clients = lock(&listeners.clients);
    for one in clients.values_mut() {
        if one.route.principal == *who {
            one.uris.remove(uri);
        }
    }
    drop(clients);
    let mut all = lock(&listeners.uris);
    let gone = all.get_mut(uri).and_then(|counts| counts.remove(who));
    if all.get(uri).is_some_and(HashMap::is_empty) {
        all.remove(uri);
    }
    drop(all);
    if let Some(gone) = gone {
        gone.is_tried.cancel(None);
    }
    lane.sessions.refused(uri, who);
}

/// Sends a request about a resource whose answer changes nothing.
pub(super) fn tell(far: &Handle, method: Method, uri: &str) {
    let options = RequestOptions::default();
    if let Ok(asked) = far.request(method.name(), Some(&about(uri)), options) {
        drive(Box::pin(async move { drop(asked.await) }));
    }
}

/// Subscribes to a resource on behalf of a client, for as long as it wants that. If the client was subscribed before, on a connection
/// that was lost, it hears that the resource may have changed.
pub(super) fn subscribe_to(
    lane: &Arc<Lane>,
    far: &Far,
    uri: &str,
    who: &Option<Principal>,
    is_again: bool,
) {
    let (request, uri) = ((Method::Subscribe, about(uri)), Box::<str>::from(uri));
    let (behalf, who) = (Behalf::Client(who.clone()), who.clone());
    let (wanted, is_wanted_by) = (uri.clone(), who.clone());
    let (listeners, all) = (far.listeners().clone(), far.listeners().clone());
    let is_wanted = move |lane: &Lane| is_wanted_for((lane, &all), &wanted, &is_wanted_by);
    insist(
        lane,
        far,
        behalf,
        request,
        is_wanted,
        move |lane, granted| match granted {
            Some(false) => refused((lane, &listeners), &uri, &who),
            granted => {
                tried((lane, &listeners), &uri, &who, granted.is_some());
                if is_again && granted.is_some() {
                    updated(lane, &Behalf::Client(who.clone()), &uri, Some(&about(&uri)));
                }
            }
        },
    );
}

/// The params about a resource.
pub(super) fn about(uri: &str) -> String {
    format!("{{\"uri\":{}}}", json_text(uri))
}

/// Sends a request until the server has answered: twice as long after each failure, while the answer is wanted and the connection is
/// open. Calls `told` with whether the server has granted it or refused it for good, and with `None` after a failure.
pub(super) fn insist(
    lane: &Arc<Lane>,
    far: &Far,
    behalf: Behalf,
    (method, params): (Method, String),
    is_wanted: impl Fn(&Lane) -> bool + Send + 'static,
    told: impl Fn(&Arc<Lane>, Option<bool>) + Send + 'static,
) {
    let (lane, routes, far) = (
        Arc::downgrade(lane),
        far.routes().clone(),
        far.handle().clone(),
    );
    drive(Box::pin(async move {
        for waits in 0.. {
            let request = (method, &*params);
            let asked = ask((&far, &routes), &behalf, request, RequestOptions::default());
            let answer = match asked {
                Ok(asked) => asked.await,
                Err(error) => Err(error),
            };
            let is_granted = match answer {
                Ok(_) => Some(true),
                Err(RequestError::Peer(error)) if !may_pass(error.code) => Some(false),
                Err(_) => None,
            };
            let Some(held) = lane.upgrade() else { return };
            told(&held, is_granted);
            drop(held);
            if is_granted.is_some() {
                return;
            }
            far.sleep(wait_after(waits)).await;
            let is_wanted = lane.upgrade().is_some_and(|lane| is_wanted(&lane));
            if !is_wanted || far.is_closed() {
                return;
            }
        }
    }));
}

/// Whether a server that answers with this code may answer otherwise later.
fn may_pass(code: i64) -> bool {
    matches!(code, INTERNAL_ERROR | OVERLOADED | RATE_LIMITED)
}

/// A server of the handshake era has told those who share its connection of a change, or that a user has finished with a page:
/// passes what middleware makes of it to the streams and the sessions that it is for.
pub(super) fn changed(
    (lane, listeners): Told<'_>,
    method: Option<Method>,
    told: Option<&str>,
    shown: Option<&str>,
) {
    let Some(method) = method else { return };
    let uri = told.and_then(|told| reader::find(told, "uri"));
    let uri = uri.and_then(reader::as_str);
    let params = shown.unwrap_or("{}");
    let wants = |one: &&Listener| match (method, &uri) {
        (Method::ResourceUpdated, Some(uri)) => {
            one.uris.contains(&**uri) && may_hear((lane, listeners), uri, &one.route.principal)
        }
        _ => one.kinds.contains(&method),
    };
    let routes: Vec<_> = {
        let all = lock(&listeners.clients);
        all.values()
            .filter(wants)
            .map(|one| one.route.clone())
            .collect()
    };
    for route in routes {
        route.tell(method.name(), Some(params));
    }
    for session in lane.sessions.all() {
        let wants = match (method, &uri) {
            (Method::ResourceUpdated, Some(uri)) => session.wants(uri),
            (Method::ResourceUpdated, None) => false,
            (Method::ElicitationComplete, _) => told.is_some_and(|told| session.finishes(told)),
            _ => LISTS.iter().any(|(_, _, list)| *list == method),
        };
        if wants {
            // Fails only if the client is gone.
            let _ = session.handle.notify(method.name(), shown);
        }
    }
}
