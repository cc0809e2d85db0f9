//! Questions of a server of the handshake era to a client of the stateless era, which is sent no requests (R-CHN-12).
//!
//! ```text
//!   client           front                                   server
//!   tools/call ────▶ route ───────────── tools/call ───────▶
//!                    route ◀──────────── elicitation/create ─
//!   ◀ input_required, state; the route is parked, the call of the server stays open
//!   tools/call, state, answers ▶ route ─ result of the question ─▶
//!   ◀─────────────── route ◀──────────── result ────────────
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::params::push;
use super::route::{Route, principal_of};
use super::unless::unless;
use crate::connection::{Call, Handle, ReplyTo};
use crate::correlate::CancelToken;
use crate::json::{reader, string};
use crate::mcp::{ErrorKind, Method};
use crate::message::Field;
use crate::sync::lock;
use crate::unguessable;

/// How long a client may take to answer. A call that its client does not come back to is cancelled then.
pub(super) const PATIENCE: Duration = Duration::from_secs(3600);

/// The most calls between two rounds, over all clients.
const MAX_PARKED: usize = 10_000;

/// What each state begins with, so that states of another hop are told apart.
const PREFIX: &str = "dev.mcpbolt/chain:";

/// A question that waits for the client.
pub(super) struct Question {
    key: String,
    method: String,
    params: Option<String>,
    reply: ReplyTo,
    far: Handle,
    /// Cancelled when the server withdraws the question.
    cancel: CancelToken,
}

/// A call between two rounds.
struct Parked {
    route: Arc<Route>,
    method: Option<Method>,
    target: Option<Box<str>>,
    principal: Option<Box<str>>,
    /// Cancelled when the call is parked no longer, so that nothing waits for the end of its time.
    ends: CancelToken,
}

/// The calls between two rounds, by the state that their clients hold.
#[derive(Default)]
pub(super) struct Parking(Mutex<HashMap<Arc<str>, Parked>>);

impl Parking {
    /// Gives up all calls.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut *lock(&self.0));
        for parked in gone.values() {
            parked.ends.cancel(None);
            parked.route.abandon();
        }
    }
}

/// Whether the state was given out by a front, not by a server of the stateless era.
pub(super) fn is_own(state: &str) -> bool {
    state.starts_with(PREFIX)
}

/// The state with which a request comes back, if it has one: raw JSON.
pub(super) fn state_of(call: &Call) -> Option<&str> {
    let may_ask = call.method.is_some_and(Method::may_ask);
    let params = call.message.as_ref().params().filter(|_| may_ask)?;
    reader::find(params, "requestState")
}

fn target(call: &Call) -> Option<Box<str>> {
    let view = call.message.as_ref();
    let target = view.name().or_else(|| view.uri());
    target.map(Box::from)
}

impl Route {
    /// Notes a question of the server, whose connection is `far`. The client is asked when the [round ends](Self::end_round),
    /// so that questions that came together are asked together.
    pub fn ask(self: &Arc<Self>, question: &Call, far: &Handle) {
        let view = question.message.as_ref();
        let Some(method) = view.method() else { return };
        let mut target = self.target();
        target.asked += 1;
        let key = format!("q{}", target.asked);
        target.questions.push(Question {
            key,
            method: method.into_owned(),
            params: view
                .params()
                .map(|params| without_token(params, view.raw(Field::Meta))),
            reply: question.reply.clone(),
            far: far.clone(),
            cancel: question.cancel.clone(),
        });
    }

    /// Refuses the open questions: the call is over, and nobody will answer them.
    pub fn drop_questions(&self) {
        let questions = std::mem::take(&mut self.target().questions);
        for one in questions.iter().filter(|one| !one.cancel.is_cancelled()) {
            let why = "the client did not answer";
            let mut replies = one.far.replies();
            replies.error(&one.reply, ErrorKind::Internal, why, None);
        }
    }

    /// Answers the client's request with the open questions, if there are any and the client waits.
    pub fn end_round(self: &Arc<Self>) {
        let mut target = self.target();
        target.questions.retain(|one| !one.cancel.is_cancelled());
        if target.questions.is_empty() || target.reply.is_none() {
            return;
        }
        let is_full = lock(&self.parking.0).len() >= MAX_PARKED;
        let Some(state) = unguessable::name().filter(|_| !is_full) else {
            for one in target.questions.drain(..) {
                let why = "too many clients have questions to answer";
                one.far
                    .replies()
                    .error(&one.reply, ErrorKind::Overloaded, why, None);
            }
            return;
        };
        let state: Arc<str> = format!("{PREFIX}{state}").into();
        let result = input_required(&target.questions, &state);
        let Some((front, reply)) = Self::detach(&mut target, state.clone()) else {
            return;
        };
        drop(target);
        let parked = Parked {
            route: self.clone(),
            method: self.method,
            target: self.about.clone(),
            principal: self.principal.clone(),
            ends: CancelToken::new(),
        };
        let resumed = parked.ends.cancelled();
        lock(&self.parking.0).insert(state.clone(), parked);
        let mut replies = front.replies();
        replies.whole_result(&reply, &result);
        replies.submit_last();
        drop(replies);
        let route = self.clone();
        let far = self.target().questions.first().map(|one| one.far.clone());
        if let Some(far) = far {
            crate::handler::driven::drive(Box::pin(async move {
                let is_late = unless(far.sleep(PATIENCE), resumed).await.is_some();
                if is_late && lock(&route.parking.0).remove(&state).is_some() {
                    route.abandon();
                    route.drop_questions();
                }
            }));
        }
    }

    /// Takes the client's next request for a parked call. `state` is decoded.
    ///
    /// # Errors
    /// A sentence for the client; the call stays parked unless the state was its own.
    pub fn resume(
        parking: &Parking,
        front: &Handle,
        call: &Call,
        state: &str,
    ) -> Result<(), &'static str> {
        const UNKNOWN: &str = "requestState is not for this request, or too old";
        let mut all = lock(&parking.0);
        let principal = principal_of(call, front);
        let fits = all.get(state).is_some_and(|parked| {
            parked.method == call.method
                && parked.target == target(call)
                && parked.principal.as_deref() == principal.as_deref()
        });
        if !fits {
            return Err(UNKNOWN);
        }
        let params = call.message.as_ref().params().unwrap_or("{}");
        let given = reader::find(params, "inputResponses").unwrap_or("{}");
        let mut answers = reader::members(given);
        if !given.starts_with('{') || answers.any(|(_, answer)| !answer.starts_with('{')) {
            return Err("inputResponses is an object of objects");
        }
        let Some(Parked { route, ends, .. }) = all.remove(state) else {
            return Err(UNKNOWN);
        };
        drop(all);
        ends.cancel(None);
        let mut target = route.target();
        let questions = std::mem::take(&mut target.questions);
        let (answered, open): (Vec<_>, Vec<_>) = questions
            .into_iter()
            .partition(|one| reader::find(given, &one.key).is_some());
        target.questions = open;
        drop(target);
        route.attach(front.clone(), call.reply.clone(), call.cancel.clone());
        for one in answered {
            let answer = reader::find(given, &one.key).unwrap_or("{}");
            let mut replies = one.far.replies();
            replies.whole_result(&one.reply, answer);
        }
        route.end_round();
        Ok(())
    }
}

/// An `InputRequiredResult` (R-MRT-02, R-MRT-04).
fn input_required(questions: &[Question], state: &str) -> String {
    let mut out = b"{\"resultType\":\"input_required\",\"inputRequests\":{".to_vec();
    for one in questions {
        let mut request = b"{\"method\":".to_vec();
        string::append(&mut request, &one.method);
        if let Some(params) = &one.params {
            push(&mut request, "params", params);
        }
        request.push(b'}');
        push(
            &mut out,
            &one.key,
            std::str::from_utf8(&request).unwrap_or("{}"),
        );
    }
    out.extend_from_slice(b"},\"requestState\":");
    string::append(&mut out, state);
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Params without a progress token: a client of the stateless era reports no progress on answers.
fn without_token(params: &str, meta: Option<&str>) -> String {
    match meta.is_some_and(|meta| reader::find(meta, "progressToken").is_some()) {
        true => super::params::with_meta(params, "progressToken", None),
        false => params.to_owned(),
    }
}
