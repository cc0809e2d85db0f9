//! The side of a hop that the external server talks to: its requests and notifications go to the client whose call caused
//! them, and to nobody else.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use super::attempts::wait_after;
use super::declared::declares;
use super::far::Upstream;
use super::lane::Lane;
use super::middleware::{
    ChainAnswer, ChainRequest, ChainResponse, NextHop, RelayDirection, refusal,
};
use super::params::Edit;
use super::question::{Asker, Question};
use super::route::Route;
use super::routes::Routes;
use super::unless::unless;
use crate::connection::{
    Answer, Batch, Call, CallKey, Disposition, Handle, Host, IncomingRequest, Operation, ReplyTo,
    RequestOptions,
};
use crate::correlate::Cancelled;
use crate::error::{ConnectionError, RequestError};
use crate::handler::driven::drive;
use crate::json::{number, reader};
use crate::mcp::code::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use crate::mcp::{Era, ErrorKind, Method, Revision};
use crate::message::{Field, MessageRef};

/// How many questions that any call may have caused are put to one call before others get some. Official clients give up a
/// call after ten rounds.
const AT_A_TURN: u64 = 4;

/// Where a message of the server comes from.
#[derive(Clone)]
struct Source {
    far: Handle,
    upstream: Arc<Upstream>,
    /// The request of this side on whose stream the message came.
    within: Option<u64>,
}

/// The host of a connection to the external server.
struct UpstreamHost {
    lane: Weak<Lane>,
    is_open: bool,
    /// The source of the current message.
    source: Source,
}

impl Source {
    /// The call that the message belongs to ([`Routes::origin`]).
    fn origin(&self, rank: impl Fn(&Route) -> Option<u64>) -> Option<Arc<Route>> {
        self.upstream.routes.origin(self.within, rank)
    }
}

impl UpstreamHost {
    fn new(lane: Weak<Lane>, far: Handle, upstream: Arc<Upstream>) -> Self {
        Self {
            lane,
            is_open: false,
            source: Source {
                far,
                upstream,
                within: None,
            },
        }
    }
}

impl Host for UpstreamHost {
    fn arrives_within(&mut self, request: Option<u64>) {
        self.source.within = request;
    }

    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let lane = self.lane.upgrade();
        let offers = |lane: &Arc<Lane>| declares(&lane.near.capabilities, request.method);
        match lane.as_ref().is_some_and(offers) {
            true => Disposition::Deferred(Operation::Own(0)),
            false => {
                let why = "the client of this chain does not offer that";
                answer.error(ErrorKind::MethodNotFound, why, None)
            }
        }
    }

    fn dispatch(&mut self, batch: Batch) {
        let Some(lane) = self.lane.upgrade() else {
            return;
        };
        // Questions that came together are asked together.
        let together = lane.rounds.together();
        for call in batch.into_calls() {
            let asks = ask(lane.clone(), self.source.clone(), call);
            drive(Box::pin(asks));
        }
        drop(together);
    }

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}

    fn overheard(&mut self, message: MessageRef<'_>) {
        let token = message.raw(Field::Progress).and_then(number::as_u64);
        let Some(route) = token.and_then(|key| self.source.upstream.routes.find(key)) else {
            return;
        };
        route.note_report();
        if let Some((front, reply)) = route.reply() {
            pass_progress(&front, &reply, &message);
        }
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        if let (Some(lane), Some(method)) = (self.lane.upgrade(), message.method()) {
            relay(&lane, &self.source, &method, &message);
        }
    }

    fn opened(&mut self, _: Revision) {
        self.is_open = true;
    }

    fn session_ended(&mut self) -> Vec<u64> {
        let bound = self.source.upstream.session_ended();
        if let Some(lane) = self.lane.upgrade() {
            // Of the next one nobody knows what it has (R-CHN-14).
            let peer = self.source.far.peer();
            let capabilities = peer.map_or("{}", |peer| &peer.capabilities);
            for method in super::follow::changing(&lane, capabilities) {
                pass_on(&lane, &self.source, Some(method), method.name(), None);
            }
            // Requests wait until the transport has subscribed to the resources anew.
            let listeners = &self.source.upstream.listeners;
            let wanted = lane.sessions.subscribed().into_values().flatten();
            let listened = crate::sync::lock(&listeners.uris)
                .keys()
                .cloned()
                .collect::<Vec<_>>();
            for uri in wanted.chain(listened).collect::<BTreeSet<_>>() {
                super::listen::may_have_changed((&lane, listeners), &uri);
            }
        }
        bound
    }

    fn is_of_ended_session(&self, id: u64) -> bool {
        self.source.upstream.is_of_ended_session(id)
    }

    fn closed(&mut self, error: &ConnectionError) {
        let upstream = &self.source.upstream;
        upstream.routes.clear();
        upstream.place.leave();
        upstream.listeners.ended.cancel(None);
        let Some(lane) = self.lane.upgrade() else {
            return;
        };
        if lane.lost(&self.source.far, upstream) && self.is_open {
            lane.parts.external.health.lost(error);
            // Clients with sessions get another connection, with the same subscriptions (R-CHN-14).
            reopen(&lane);
        }
    }
}

/// Makes the host of a connection to the server.
pub(super) fn host(lane: Weak<Lane>, far: Handle, upstream: Arc<Upstream>) -> Box<dyn Host + Send> {
    if lane.upgrade().is_some_and(|lane| !lane.listens()) {
        far.set_listens(false);
    }
    Box::new(UpstreamHost::new(lane, far, upstream))
}

/// Opens a lost connection again, twice as long after each failure, as long as there are clients with sessions; and restores what they had
/// on it, also if something else opens it before.
pub(super) fn reopen(lane: &Arc<Lane>) {
    if lane.sessions.any().is_none() || !lane.sessions.reopen() {
        return;
    }
    let lane = Arc::downgrade(lane);
    drive(Box::pin(async move {
        for waits in 0.. {
            let Some((near, opens)) = lane.upgrade().and_then(|lane| waiting(&lane)) else {
                return;
            };
            // A connection with the server can be no clock: there is none.
            unless(near.sleep(wait_after(waits)), opens).await;
            let Some(lane) = lane.upgrade() else { return };
            if waiting(&lane).is_none() {
                return;
            }
            if let Ok(far) = lane.far(std::future::pending()).await {
                lane.sessions.reopened();
                return match far.handle().is_closed() {
                    // Whoever noticed that it is lost again found this one at work.
                    true => reopen(&lane),
                    false => super::follow::restore(&lane, &far),
                };
            }
        }
    }));
}

/// A client that waits for the connection, and what completes when it opens. Without a client nothing is opened.
fn waiting(lane: &Arc<Lane>) -> Option<(Handle, Cancelled)> {
    let opens = lane.opens();
    if let Some(near) = lane.sessions.any() {
        return Some((near, opens));
    }
    lane.sessions.reopened();
    if !lane.is_open() {
        // A client that came meanwhile found this one at work.
        reopen(lane);
    }
    None
}

/// Sends a report of progress to the peer that asked for it, with its own token.
pub(super) fn pass_progress(
    to: &Handle,
    reply: &crate::connection::ReplyTo,
    message: &MessageRef<'_>,
) {
    let (Some(params), span) = (message.params(), message.envelope().span(Field::Progress)) else {
        return;
    };
    let start = message.envelope().span(Field::Params).start();
    let place = (span.start() - start, span.end() - start);
    let mut replies = to.replies();
    replies.pass_progress(reply, |out, token| {
        append_replaced(out, params, place, token.raw());
    });
}

/// Appends an object with other text at one place.
fn append_replaced(out: &mut Vec<u8>, object: &str, (from, to): (usize, usize), text: &str) {
    let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
    crate::json::writer::append_compact(out, &part(object.get(..from)));
    out.extend_from_slice(text.as_bytes());
    crate::json::writer::append_compact(out, &part(object.get(to..)));
}

fn may_ask(route: &Route) -> bool {
    route.method.is_some_and(Method::may_ask)
}

/// Whether the client waits for the answer of a call that may ask, rather than having a question to answer already.
fn waits(route: &Route) -> bool {
    may_ask(route) && route.reply().is_some()
}

/// Asks the client whose call caused it a question of the server, and answers the server.
async fn ask(lane: Arc<Lane>, source: Source, call: Call) {
    let request = ChainRequest {
        message: call.message.clone(),
        direction: RelayDirection::ToClient,
        revision: call.reply.revision(),
        principal: None,
    };
    let (asking, from, question) = (&lane, &source, &call);
    let send = move |request: ChainRequest| -> ChainAnswer<'_> {
        Box::pin(async move {
            match era_of_asked(asking, from) {
                Era::Handshake => by_request(asking, from, &question.reply, request).await,
                Era::Stateless => in_a_round(asking, from, question, request).await,
            }
        })
    };
    let next = NextHop::new(&lane.parts.middleware, RelayDirection::ToClient, send);
    let answer = unless(next.run(request), call.cancel.cancelled()).await;
    // The server has withdrawn the question.
    let Some(outcome) = answer else { return };
    lane.parts.answer(&source.far, &call.reply, outcome);
}

/// The era of the client to ask: that of the lane's client, or else of the only call that may be meant.
fn era_of_asked(lane: &Lane, source: &Source) -> Era {
    let origin = match lane.is_shared() {
        true => source.origin(|route| waits(route).then_some(0)),
        false => None,
    };
    origin.map_or(lane.era(), |route| route.revision.era())
}

/// Asks a client of the handshake era.
async fn by_request(
    lane: &Arc<Lane>,
    source: &Source,
    reply: &ReplyTo,
    request: ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let none = || refusal(METHOD_NOT_FOUND, "there is no client to ask");
    let origin = source.origin(|route| waits(route).then_some(0));
    let waiting = origin.as_ref().map(Route::note_question);
    let within = origin.and_then(|route| route.reply());
    let of_call = within.as_ref().map(|(front, _)| front);
    let front = lane.near.handle.as_ref().or(of_call).ok_or_else(none)?;
    let session = lane.sessions.of(front).ok_or_else(none)?;
    let options = RequestOptions {
        timeout: Some(front.config().limits.max_request_timeout),
        within: within.as_ref().map(|(_, reply)| reply.key()),
        ..RequestOptions::default()
    };
    let (view, mut asked) = (request.view(), None);
    if request.known_method() == Some(Method::Elicit) {
        session.elicited(request.params());
    }
    let (method, params) = (request.method(), Some(request.params()));
    // The handler that asks has told of it where it runs.
    let is_told = !lane.parts.external.is_own;
    let response = front.forward((&method, params), (options, is_told), |out, own, trace| {
        asked = Some(session.asked(own, &source.far, reply));
        let token = Some(own.get());
        let edit = Edit {
            token,
            trace,
            ..Edit::default()
        };
        edit.append(out, &view);
    });
    let answer = response?.await;
    drop((asked, waiting));
    answer.map(ChainResponse::from)
}

/// Asks a client of the stateless era, in the answer of one of its calls.
async fn in_a_round(
    lane: &Arc<Lane>,
    source: &Source,
    call: &Call,
    request: ChainRequest,
) -> Result<ChainResponse, RequestError> {
    let asker = asker(lane, &source.upstream.routes);
    let (answer, question) = Question::new(&request, &source.far, &call.cancel, asker);
    put(lane, &source.upstream.routes, source.within, question);
    answer.await
}

/// Puts a question to the call that caused it, or else to one that waits. Nothing may tell which call caused it: then each
/// gets a few before any gets more, since clients give up a call after some rounds.
fn put(lane: &Arc<Lane>, routes: &Routes, mut within: Option<u64>, mut question: Question) {
    let turn = |route: &Route| route.target().asked / AT_A_TURN;
    // On the stream of a list nobody can be asked: its result has no room for questions.
    within = within.filter(|key| routes.find(*key).is_some_and(|route| may_ask(&route)));
    loop {
        let waiting = routes.origin(within, |route| waits(route).then(|| turn(route)));
        let origin = waiting.or_else(|| routes.origin(None, |it| may_ask(it).then(|| turn(it))));
        let Some(route) = origin else {
            let why = "no call of the client is under way that could be asked";
            return question.refuse(METHOD_NOT_FOUND, why);
        };
        match route.ask(question) {
            Ok(()) => return lane.rounds.end(route),
            // It has just ended.
            Err(back) => (question, within) = (back, None),
        }
    }
}

/// What puts questions that came on a connection to other calls that it carries.
pub(super) fn asker(lane: &Arc<Lane>, routes: &Arc<Routes>) -> Arc<dyn Asker> {
    Arc::new((Arc::downgrade(lane), Arc::downgrade(routes)))
}

impl Asker for (Weak<Lane>, Weak<Routes>) {
    fn ask_elsewhere(&self, question: Question) {
        match (self.0.upgrade(), self.1.upgrade()) {
            (Some(lane), Some(routes)) => put(&lane, &routes, None, question),
            _ => question.refuse(INTERNAL_ERROR, "the client is gone"),
        }
    }
}

/// Passes on a notification of the server.
fn relay(lane: &Arc<Lane>, source: &Source, method: &str, message: &MessageRef<'_>) {
    let (known, params) = (Method::parse(method), message.params());
    if known == Some(Method::ElicitationComplete) {
        source.upstream.visits.finished(params);
    }
    let subscription = message.raw(Field::SubscriptionId);
    // Notifications of a stream that this side listens to, in the stateless era.
    if let Some(id) = subscription {
        forget_lists(lane, known);
        let key = number::as_u64(id);
        let Some(route) = key.and_then(|key| source.upstream.routes.find(key)) else {
            let id = key.map(|key| (source.upstream.routes.connection, key));
            return super::follow::heard(lane, id, known, params);
        };
        if lane.parts.is_of_many && known == Some(Method::SubscriptionAcknowledged) {
            let filter = params.and_then(|params| reader::find(params, "notifications"));
            return super::listen::arrived(lane, &route, filter.unwrap_or("{}"));
        }
        return lane.show(method, params, move |_, shown| {
            route.tell(&shown.method, shown.params.as_deref());
        });
    }
    if known == Some(Method::LogMessage) {
        // Any call may have caused it, and one that wants no logs must not give them to another.
        let is_certain = source.upstream.routes.are_of_one();
        let fits = |route: &Route| (is_certain && wants_logs(route)).then_some(0);
        let origin = source.origin(fits);
        if let Some(route) = &origin {
            route.note_report();
        }
        return lane.show(method, params, move |lane, shown| {
            let params = shown.params.as_deref().unwrap_or("{}");
            log(lane, origin.as_deref(), &shown.method, params);
        });
    }
    let within = source
        .within
        .filter(|_| known.is_none() && lane.is_shared());
    let within = within.and_then(|key| source.upstream.routes.find(key));
    if let Some((front, reply)) = within.and_then(|route| route.reply()) {
        // Nothing else tells whom a notification is for that the protocol does not define.
        return lane.show(method, params, move |_, shown| {
            let params = shown.params.as_deref();
            front.replies().notify(&reply, &shown.method, params);
        });
    }
    pass_on(lane, source, known, method, params);
}

/// A list may have changed: it is not kept when a client hears of that, and asks.
fn forget_lists(lane: &Lane, change: Option<Method>) {
    if let Some(change) = change {
        lane.parts.lists.changed(lane.parts.index, change);
    }
}

/// Passes on a notification that belongs to no stream.
fn pass_on(
    lane: &Arc<Lane>,
    source: &Source,
    known: Option<Method>,
    method: &str,
    params: Option<&str>,
) {
    forget_lists(lane, known);
    match lane.era() {
        Era::Stateless => {
            let told = params.map(str::to_owned);
            let listeners = source.upstream.listeners.clone();
            lane.show(method, params, move |lane, shown| {
                let (told, shown) = (told.as_deref(), shown.params.as_deref());
                super::listen::changed((lane, &listeners), known, told, shown);
            });
        }
        Era::Handshake => lane.show(method, params, |lane, shown| {
            if let Some(near) = &lane.near.handle {
                // Fails only for params that are no object, which a message cannot have.
                let _ = near.notify(&shown.method, shown.params.as_deref());
            }
        }),
    }
}

/// Whether a call of the stateless era asked for log messages; in the handshake era the whole session does.
fn wants_logs(route: &Route) -> bool {
    let reply = route.reply();
    reply.is_some_and(|(_, reply)| match reply.revision().era() {
        Era::Handshake => true,
        Era::Stateless => reply.log_level().flatten().is_some(),
    })
}

/// Passes on a log message: on the stream of its call if it has one (R-LOG-04), else to the session.
fn log(lane: &Lane, of_call: Option<&Route>, method: &str, params: &str) {
    let level = super::params::log_level(params);
    let era = of_call.map_or(lane.era(), |route| route.revision.era());
    match (era, of_call.and_then(Route::reply)) {
        (Era::Stateless, Some((front, reply))) => {
            let least = reply.log_level().flatten();
            let is_wanted = least.is_some_and(|least| level.is_none_or(|level| level >= least));
            if is_wanted {
                front.replies().notify(&reply, method, Some(params));
            }
        }
        (Era::Handshake, origin) => {
            let of_call = of_call.and_then(|route| route.sessions.get(lane.parts.index).cloned());
            let of_lane = || lane.sessions.of(lane.near.handle.as_ref()?);
            let Some(session) = of_call.or_else(of_lane) else {
                return;
            };
            let least = *crate::sync::lock(&session.level);
            if least.is_some_and(|least| level.is_some_and(|level| level < least)) {
                return;
            }
            match origin {
                Some((front, reply)) => front.replies().notify(&reply, method, Some(params)),
                None => drop(session.handle.notify(method, Some(params))),
            }
        }
        (Era::Stateless, None) => {}
    }
}
