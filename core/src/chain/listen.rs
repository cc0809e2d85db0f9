//! Changes of lists and resources: a stream that listens in the stateless era, subscriptions of a session in the handshake
//! era (R-CHN-12, R-CHN-13).

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::attempts::{LONGEST_WAIT, wait_after};
use super::lane::{Far, Lane};
use super::listeners::{Listener, Listening};
use super::middleware::{
    ChainNotification, ChainRequest, ChainResponse, RelayDirection, notify, refusal,
};
use super::params::{json_text, with_meta};
use super::parts::{Parts, no_such_method};
use super::route::Route;
use super::stream::{acknowledgement, ended_well, over};
use super::unless::unless;
use crate::connection::{self, Handle, RequestOptions};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::driven::drive;
use crate::json::{JsonStr, reader};
use crate::mcp::code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::mcp::{Era, LogLevel, Method, meta};
use crate::sync::lock;

/// The kinds of list, each with the name of its capability, of its filter and of its notification.
const LISTS: [(&str, &str, Method); 3] = [
    ("tools", "toolsListChanged", Method::ToolsChanged),
    ("prompts", "promptsListChanged", Method::PromptsChanged),
    (
        "resources",
        "resourcesListChanged",
        Method::ResourcesChanged,
    ),
];

/// The most resources that one client may subscribe to through a front.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1000;

fn declares(capabilities: &str, kind: &str, what: &str) -> bool {
    reader::find_path(capabilities, &[kind, what]) == Some("true")
}

/// Serves a stream that listens, of a client of the stateless era, from the notifications of a session.
pub(super) async fn serve(
    lane: &Arc<Lane>,
    far: &Far,
    route: &Arc<Route>,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let Some((front, reply)) = route.reply() else {
        return Err(RequestError::Cancelled(None));
    };
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
    let granted = granted(&kinds, &uris);
    // R-SUB-02: before the stream is among those that hear of changes. The front of several servers has acknowledged it.
    let name = Method::SubscriptionAcknowledged.name();
    let shown = match lane.parts.is_of_many {
        true => None,
        false => {
            let told = acknowledgement(&granted, &reply);
            let mut told = ChainNotification::new(RelayDirection::ToClient, name, Some(&told));
            if let Some(prefix) = &lane.parts.prefix {
                prefix.tell(&mut told);
            }
            notify(&lane.parts.middleware, told).await
        }
    };
    let listeners = &lane.listeners;
    let number = {
        let mut begun = lock(&listeners.begun);
        *begun += 1;
        *begun
    };
    let listener = Listener {
        route: route.clone(),
        kinds: kinds.iter().map(|(_, _, method)| *method).collect(),
        uris: uris.clone(),
    };
    {
        // A change that another thread brings after the acknowledgement finds the stream.
        let mut clients = lock(&listeners.clients);
        if let Some(shown) = shown {
            let mut replies = front.replies();
            replies.notify(&reply, &shown.method, shown.params.as_deref());
        }
        clients.insert(number, listener);
    }
    let _gone = Gone(lane.clone(), number);
    for uri in &uris {
        let is_first = {
            let mut counts = lock(&listeners.uris);
            let count = counts.entry(uri.clone()).or_default();
            *count += 1;
            *count == 1
        };
        if is_first {
            tell(far.handle(), Method::Subscribe, uri);
        }
    }
    if lane.parts.is_of_many {
        arrived(lane, route, &granted);
    }
    let ended = lock(&listeners.ends).cancelled();
    unless(over(route), ended).await.unwrap_or(Ok(()))?;
    ended_well(route)
}

/// The filter of a request that listens.
pub(super) fn filter(request: &ChainRequest) -> Result<&str, RequestError> {
    let filter = reader::find(request.params(), "notifications").filter(|it| it.starts_with('{'));
    filter.ok_or_else(|| refusal(INVALID_PARAMS, "notifications is an object"))
}

/// Whether the member of a filter asks for changes of a list.
pub(super) fn is_list(name: JsonStr<'_>) -> bool {
    LISTS.iter().any(|(_, filter, _)| name == *filter)
}

/// The stream of one of several servers is open: tells the client that lists may be others, if it may have missed changes.
pub(super) fn arrived(lane: &Arc<Lane>, route: &Route, filter: &str) {
    let Some((front, reply)) = route.reply().filter(|_| route.comes_late(&lane.parts)) else {
        return;
    };
    for (_, name, method) in LISTS {
        if reader::find(filter, name) == Some("true") {
            let (front, reply) = (front.clone(), reply.clone());
            lane.show(method.name(), None, move |_, shown| {
                let (own, id) = (shown.params.as_deref().unwrap_or("{}"), reply.id().raw());
                let own = with_meta(own, meta::SUBSCRIPTION_ID, Some(id));
                front.replies().notify(&reply, &shown.method, Some(&own));
            });
        }
    }
}

fn granted(kinds: &[&(&str, &str, Method)], uris: &BTreeSet<Box<str>>) -> String {
    let mut members: Vec<_> = kinds
        .iter()
        .map(|(_, name, _)| format!("\"{name}\":true"))
        .collect();
    if !uris.is_empty() {
        let uris: Vec<_> = uris.iter().map(|uri| json_text(uri)).collect();
        members.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// Takes a client's stream off the lists of its lane when dropped.
struct Gone(Arc<Lane>, u64);

impl Drop for Gone {
    fn drop(&mut self) {
        let listeners = &self.0.listeners;
        let Some(gone) = lock(&listeners.clients).remove(&self.1) else {
            return;
        };
        for uri in &gone.uris {
            let mut counts = lock(&listeners.uris);
            let Some(count) = counts.get_mut(uri) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                counts.remove(uri);
                drop(counts);
                if let Some(far) = self.0.ready() {
                    tell(far.handle(), Method::Unsubscribe, uri);
                }
            }
        }
    }
}

/// Sends a request about a resource whose answer changes nothing.
fn tell(far: &Handle, method: Method, uri: &str) {
    tell_server(far, method, &format!("{{\"uri\":{}}}", json_text(uri)));
}

fn tell_server(far: &Handle, method: Method, params: &str) {
    let options = RequestOptions::default();
    if let Ok(asked) = far.request(method.name(), Some(params), options) {
        drive(Box::pin(async move { drop(asked.await) }));
    }
}

/// A session of the handshake era has told of a change: passes what middleware makes of it to the streams that want it.
pub(super) fn changed(
    lane: &Lane,
    method: Option<Method>,
    told: Option<&str>,
    shown: Option<&str>,
) {
    let Some(method) = method else { return };
    let uri = told.and_then(|told| reader::find(told, "uri"));
    let uri = uri.and_then(reader::as_str);
    let params = shown.unwrap_or("{}");
    let wants = |one: &&Listener| match (method, &uri) {
        (Method::ResourceUpdated, Some(uri)) => one.uris.contains(&**uri),
        _ => one.kinds.contains(&method),
    };
    let routes: Vec<_> = {
        let all = lock(&lane.listeners.clients);
        all.values()
            .filter(wants)
            .map(|one| one.route.clone())
            .collect()
    };
    for route in routes {
        if let Some((front, reply)) = route.reply() {
            let own = with_meta(params, meta::SUBSCRIPTION_ID, Some(reply.id().raw()));
            front.replies().notify(&reply, method.name(), Some(&own));
        }
    }
}

/// A stream of this side has brought something: passes it to the session of the client.
pub(super) fn heard(
    lane: &Arc<Lane>,
    id: Option<u64>,
    method: Option<Method>,
    params: Option<&str>,
) {
    let (Some(near), Some(method)) = (&lane.near.handle, method) else {
        return;
    };
    let is_own = {
        let mut all = lock(&lane.listeners.servers);
        let at = all.iter().position(|one| Some(one.id) == id);
        if let Some(at) = at
            && method == Method::SubscriptionAcknowledged
        {
            all[at].acknowledged.cancel(None);
            // It has everything that the streams before it had.
            let gone: Vec<_> = all.drain(..at).collect();
            drop(all);
            drop(gone);
        }
        at.is_some()
    };
    let is_change = matches!(
        method,
        Method::ToolsChanged
            | Method::PromptsChanged
            | Method::ResourcesChanged
            | Method::ResourceUpdated
    );
    if is_own && is_change && lane.era() == Era::Handshake {
        let own = with_meta(params.unwrap_or("{}"), meta::SUBSCRIPTION_ID, None);
        let own = Some(own).filter(|own| own != "{}");
        tell_client(lane, near, method, own.as_deref());
    }
}

/// Subscribes a client of the handshake era to a resource of a server of the stateless era.
pub(super) async fn subscribe(
    lane: &Arc<Lane>,
    far: &Far,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let uri = uri(request)?;
    if !declares(far.capabilities(), "resources", "subscribe") {
        return Err(no_such_method(Method::Subscribe.name()));
    }
    {
        let mut all = lock(&lane.subscribed);
        if all.len() >= MAX_SUBSCRIPTIONS && !all.contains(&uri) {
            return Err(RequestError::Overloaded);
        }
        all.insert(uri.clone());
    }
    let subscribed = acknowledged(lane, far).await;
    if subscribed.is_err() {
        // Another stream may have the resource: that of an earlier request, or of one that came meanwhile.
        let servers = lock(&lane.listeners.servers);
        if !servers.iter().any(|one| one.uris.contains(&uri)) {
            lock(&lane.subscribed).remove(&uri);
        }
    }
    subscribed.map(|()| ChainResponse::new("{}"))
}

/// Listens, and waits until the server has acknowledged it.
async fn acknowledged(lane: &Arc<Lane>, far: &Far) -> Result<(), RequestError> {
    let Some((id, acknowledged)) = follow(lane, far)? else {
        return Ok(());
    };
    let far = far.handle();
    let patience = far.sleep(far.config().limits.request_timeout);
    if unless(patience, acknowledged.cancelled()).await.is_some() {
        forget(lane, id, None);
        return Err(RequestError::TimedOut);
    }
    match acknowledged.reason() {
        Some(why) => Err(refusal(INTERNAL_ERROR, why)),
        None => Ok(()),
    }
}

/// Ends a stream of this side. The request that waits for its acknowledgement fails with `why`.
fn forget(lane: &Lane, id: u64, why: Option<&str>) {
    let mut all = lock(&lane.listeners.servers);
    let at = all.iter().position(|one| one.id == id);
    let gone = at.map(|at| all.remove(at));
    drop(all);
    if let Some(gone) = gone {
        gone.acknowledged.cancel(why);
    }
}

/// Ends the subscription of a client of the handshake era. The client is answered when the server has acknowledged the stream
/// without the resource, so that it hears of no change that comes after the answer.
pub(super) async fn unsubscribe(
    lane: &Arc<Lane>,
    far: &Far,
    request: &ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let uri = uri(request)?;
    let was_subscribed = lock(&lane.subscribed).remove(&uri);
    if was_subscribed && acknowledged(lane, far).await.is_err() {
        // The stream before may still tell of the resource.
        let gone = std::mem::take(&mut *lock(&lane.listeners.servers));
        drop(gone);
        reopen(Arc::downgrade(lane));
    }
    Ok(ChainResponse::new("{}"))
}

fn uri(request: &ChainRequest) -> Result<Box<str>, RequestError> {
    let uri = request.view().uri();
    let uri = uri.ok_or_else(|| refusal(INVALID_PARAMS, "uri is missing"))?;
    Ok((&*uri).into())
}

/// Listens, for a client of the handshake era, to the lists that a server of the stateless era says may change and to the
/// resources that the client has subscribed to. The stream before ends when this one is acknowledged: then the token is
/// cancelled, or with a reason if the server refuses. `None` if there is nothing to listen to.
///
/// # Errors
/// If the request cannot be sent.
pub(super) fn follow(
    lane: &Arc<Lane>,
    far: &Far,
) -> Result<Option<(u64, CancelToken)>, RequestError> {
    let uris = lock(&lane.subscribed).clone();
    follow_with(lane, far, uris)
}

/// The same, with these resources.
fn follow_with(
    lane: &Arc<Lane>,
    far: &Far,
    uris: BTreeSet<Box<str>>,
) -> Result<Option<(u64, CancelToken)>, RequestError> {
    let kinds: Vec<_> = LISTS
        .iter()
        .filter(|(kind, _, _)| declares(far.capabilities(), kind, "listChanged"))
        .collect();
    let has_both = !kinds.is_empty() && !uris.is_empty();
    if kinds.is_empty() && uris.is_empty() {
        let gone = std::mem::take(&mut *lock(&lane.listeners.servers));
        drop(gone);
        return Ok(None);
    }
    let params = format!("{{\"notifications\":{}}}", granted(&kinds, &uris));
    let options = RequestOptions {
        timeout: Some(Duration::MAX),
        ..RequestOptions::default()
    };
    // The acknowledgement waits for the lock, so it finds the stream.
    let mut servers = lock(&lane.listeners.servers);
    let far = far.handle();
    let response = far.request(Method::Listen.name(), Some(&params), options)?;
    let listening = Listening {
        id: response.key().get(),
        uris,
        acknowledged: CancelToken::new(),
        cancel: CancelToken::new(),
    };
    let cancel = listening.cancel.clone();
    let followed = (listening.id, listening.acknowledged.clone());
    servers.push(listening);
    drop(servers);
    let acknowledged = followed.1.clone();
    let kept = keep(
        Arc::downgrade(lane),
        response,
        cancel,
        acknowledged,
        has_both,
    );
    drive(Box::pin(kept));
    Ok(Some(followed))
}

/// Keeps a stream open until this side or the server ends it. One that the server ends is opened again, unless the server has
/// refused it: then it is asked once more for the lists alone, if nothing else tells of them.
async fn keep(
    lane: Weak<Lane>,
    response: connection::Response,
    cancel: CancelToken,
    acknowledged: CancelToken,
    has_both: bool,
) {
    let (id, begun) = (response.key().get(), Instant::now());
    let ended = unless(response, cancel.cancelled()).await;
    let (Some(ended), Some(held)) = (ended, lane.upgrade()) else {
        return;
    };
    let refusal = ended.as_ref().err().filter(|error| is_final(error));
    let refusal = refusal.filter(|_| !acknowledged.is_cancelled()).cloned();
    let why = ended.map_or_else(
        |error| error.to_string(),
        |_| "the server ended the stream of changes".to_owned(),
    );
    if begun.elapsed() >= LONGEST_WAIT {
        *lock(&held.listeners.endings) = 0;
    }
    forget(&held, id, Some(&why));
    let Some(error) = refusal else {
        return reopen(lane);
    };
    if !lock(&held.listeners.servers).is_empty() {
        return;
    }
    log_refusal(&held.parts, &error);
    let far = held.ready().filter(|_| has_both);
    let again = far.map(|far| (follow_with(&held, &far, BTreeSet::new()), far));
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
fn reopen(lane: Weak<Lane>) {
    drive(Box::pin(async move {
        loop {
            let Some((far, waits)) = lane.upgrade().and_then(|lane| {
                let mut endings = lock(&lane.listeners.endings);
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
            if !lock(&lane.listeners.servers).is_empty() {
                return;
            }
            match acknowledged(&lane, &far).await {
                Ok(()) => return tell_all(&lane, &far),
                Err(RequestError::TimedOut | RequestError::Overloaded) => {}
                // The stream has ended, and sees to its own place.
                Err(_) => return,
            }
        }
    }));
}

/// Tells a client of the handshake era that all lists may be others.
fn tell_all(lane: &Arc<Lane>, far: &Far) {
    let Some(near) = &lane.near.handle else {
        return;
    };
    for (kind, _, method) in LISTS {
        let offers = match lane.parts.is_of_many {
            // The lists of several servers change when one of them is found.
            true => reader::find(far.capabilities(), kind).is_some(),
            false => declares(far.capabilities(), kind, "listChanged"),
        };
        if offers {
            tell_client(lane, near, method, None);
        }
    }
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
pub(super) fn note(lane: &Lane, request: &ChainRequest, method: Option<Method>) {
    if !matches!(method, Some(Method::Subscribe | Method::Unsubscribe)) {
        return;
    }
    let mut subscribed = lock(&lane.subscribed);
    match (method, uri(request)) {
        (Some(Method::Subscribe), Ok(uri)) if subscribed.len() < MAX_SUBSCRIPTIONS => {
            subscribed.insert(uri);
        }
        (Some(Method::Unsubscribe), Ok(uri)) => {
            subscribed.remove(&uri);
        }
        _ => {}
    }
}

/// Notes the log level that a session asks for, so that it can be restored.
pub(super) fn note_level(lane: &Lane, request: &ChainRequest) {
    let level = reader::find(request.params(), "level").and_then(reader::as_str);
    if let Some(level) = level.and_then(|level| LogLevel::parse(&level)) {
        *lock(&lane.level) = Some(level);
    }
}

/// Restores on a new connection what the session had on the lost one, and tells the client that all lists may be others
/// (R-CHN-14).
pub(super) fn restore(lane: &Arc<Lane>, far: &Far) {
    let uris = lock(&lane.subscribed).clone();
    match far.revision.era() {
        Era::Handshake => {
            if let Some(level) = *lock(&lane.level)
                && reader::find(far.capabilities(), "logging").is_some()
            {
                let params = format!("{{\"level\":{}}}", json_text(level.name()));
                tell_server(far.handle(), Method::SetLevel, &params);
            }
            for uri in &uris {
                tell(far.handle(), Method::Subscribe, uri);
            }
        }
        Era::Stateless => {
            // Fails only if the connection is lost again.
            let _ = follow(lane, far);
        }
    }
    tell_all(lane, far);
}
