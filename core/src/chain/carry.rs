//! Carries one call of a client from its arrival to its answer, through the middleware.

use std::borrow::Cow;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use super::middleware::{
    ChainAnswer, ChainRequest, ChainResponse, Line, NextHop, RelayDirection, refusal,
};
use super::pages::{Wanted, kept_or};
use super::passage::{Passage, Way};
use super::question::{self, is_own, state_of};
use super::route::{Route, Unanswered};
use super::sessions::Session;
use super::shared::Shared;
use super::{follow, hiding, merged, streams};
use crate::connection::{Call, Handle};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::code::INVALID_PARAMS;
use crate::mcp::{Era, Method};

/// The connection of a client.
pub(super) struct Near {
    pub handle: Handle,
    /// Its sessions with the servers, by their indexes, if it is of the handshake era.
    pub sessions: Arc<[Arc<Session>]>,
    /// Cancelled when streams that would stay open for ever are to end.
    pub ends: CancelToken,
    /// A connection whose clock runs as long as the client's calls.
    pub timers: Handle,
}

/// Carries a call. Never answers it twice, and answers it unless its client has cancelled it.
pub(super) async fn carry(shared: Arc<Shared>, way: Way, call: Call, near: Near) {
    let front = near.handle;
    let is_newer = call.reply.revision().era() == Era::Stateless;
    let state = is_newer.then(|| state_of(&call)).flatten();
    if let Some(state) = state.filter(|state| is_parked(&shared, state)) {
        let resumed = reader::as_str(state).ok_or("requestState is a string");
        let resumed =
            resumed.and_then(|state| Route::resume(&shared.parking, &front, &call, &state));
        if let Err(why) = resumed {
            let refused = Err(refusal(INVALID_PARAMS, why));
            shared.parts.answer(&front, &call.reply, refused);
        }
        return;
    }
    let state = state.and_then(reader::as_str);
    let state = state.map(Cow::into_owned);
    let route = Route::new(
        (shared.parts.clone(), shared.parking.clone()),
        front,
        &call,
        near.sessions,
        (near.ends, near.timers),
    );
    let resumes = state.and_then(|state| shared.kept.find(&state, &route, &shared));
    let answered = Unanswered(route.clone());
    let principal = call.reply.principal().cloned();
    let mut request = ChainRequest {
        message: call.message,
        direction: RelayDirection::ToServer,
        revision: call.reply.revision(),
        principal,
    };
    let passage = Passage {
        shared,
        way,
        route,
        exclusive: Mutex::default(),
        resumes,
    };
    let (shared, route) = (&passage.shared, &passage.route);
    let outcome = async {
        // By the names of clients, which middleware may change.
        hiding::listening(route, &mut request)?;
        let onward = Onward(&passage);
        let work = match &shared.parts.middleware[..] {
            [] => onward.send(request),
            all => {
                let next = NextHop::over(all, RelayDirection::ToServer, onward).of(route.clone());
                next.run(request)
            }
        };
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            // Middleware that waits for something else is dropped.
            Poll::Pending => {
                let reason = std::task::ready!(route.poll_cancelled(cx));
                Poll::Ready(Err(RequestError::Cancelled(reason)))
            }
        })
        .await
    };
    let outcome = outcome.await;
    if let (Some(Method::ListTools), Ok(page)) = (route.method, &outcome)
        && !page.is_kept()
    {
        let tools = reader::find(page.result(), "tools").unwrap_or("[]");
        shared.parts.mirrored.learn(tools);
    }
    let outcome = outcome.map(|answer| hiding::answer(route, answer));
    question::ask_elsewhere(route.close());
    let exclusive = std::mem::take(&mut *crate::sync::lock(&passage.exclusive));
    drop(exclusive);
    route.finish(outcome);
    drop(answered);
}

/// The way of a request behind the middleware of the front.
struct Onward<'a>(&'a Passage);

impl<'a> Line<'a> for Onward<'a> {
    fn send(&self, request: ChainRequest) -> ChainAnswer<'a> {
        Box::pin(dispatch(self.0, request))
    }

    #[cfg(feature = "settings")]
    fn is_own(&self, request: &ChainRequest) -> bool {
        let method = request.known_method();
        let goes_to_all = merged::list_of(method).is_some()
            || matches!(method, Some(Method::SetLevel | Method::Listen));
        let member = || self.0.member(request).ok();
        !goes_to_all && member().is_some_and(|member| member.parts.external.is_own)
    }
}

/// Passes a request on to the server that it is for, or to all. What is rare is boxed, here and on the way: each call would
/// hold its room.
async fn dispatch(passage: &Passage, request: ChainRequest) -> Result<ChainResponse, RequestError> {
    let sessions = &passage.route.sessions;
    if let Way::Own(lanes) = &passage.way
        && !sessions.is_empty()
        && let Some(method) = request.known_method()
    {
        follow::note_list(lanes, sessions, method);
    }
    if let Some(lane) = &passage.resumes {
        passage.route.goes_to(&lane.parts);
        return Box::pin(passage.over(lane, request)).await;
    }
    if let [only] = &passage.shared.members[..] {
        let wanted = Wanted::new(passage, Some(only.index()), &request);
        return kept_or(wanted, || passage.to(only, request)).await;
    }
    let method = request.known_method();
    if let Some(list) = merged::list_of(method) {
        let wanted = Wanted::new(passage, None, &request);
        return Box::pin(kept_or(wanted, || merged::list(passage, list, &request))).await;
    }
    match method {
        Some(Method::SetLevel) => Box::pin(merged::set_level(passage, &request)).await,
        Some(Method::Listen) => Box::pin(streams::listen(passage, &request)).await,
        _ => passage.to(passage.member(&request)?, request).await,
    }
}

/// Whether a `requestState` belongs to a call that waits in this front.
fn is_parked(shared: &Shared, state: &str) -> bool {
    let (era, text) = (shared.era(), reader::as_str(state));
    let is_own = text.as_deref().is_some_and(is_own);
    let waits = || text.as_deref().is_some_and(|text| shared.parking.has(text));
    match era {
        // Other states are the servers' own; this one is of a question of middleware.
        Some(Era::Stateless) => is_own && waits(),
        // Such a server gives out no states, so there no other state can be right.
        Some(Era::Handshake) => true,
        // One of several servers may be a front, too, and give out such states.
        None => is_own && (shared.members.len() == 1 || waits()),
    }
}
