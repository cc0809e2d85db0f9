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

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::middleware::{ChainRequest, ChainResponse, refusal};
use super::params::push;
use super::parts::Parts;
use super::route::{Route, principal_of};
use super::translate;
use super::unless::unless;
use crate::connection::{Call, Handle, Principal};
use crate::correlate::{CancelToken, Cancelled};
use crate::error::RequestError;
use crate::json::{reader, string};
use crate::mcp::code::{INTERNAL_ERROR, OVERLOADED};
use crate::mcp::{Era, Method};
use crate::message::Field;
use crate::sync::lock;
use crate::unguessable;

/// How long a client may take to answer. A call that its client does not come back to is cancelled then.
pub(super) const PATIENCE: Duration = Duration::from_secs(3600);

/// The most fronts that have been succeeded, and whose calls still wait for answers.
pub(super) const MAX_RETIRED: usize = 8;

/// The most calls between two rounds, over all clients.
const MAX_PARKED: usize = 10_000;

/// What each state begins with, so that states of another hop are told apart.
const PREFIX: &str = "dev.mcpbolt/chain:";

/// Why a state is refused.
pub(super) const UNKNOWN_STATE: &str = "requestState is not for this request, or too old";

/// Asks a client what its server wants to know.
pub(super) trait Asker: Send + Sync {
    /// Asks the question in another call, as the one that it was put to has ended.
    fn ask_elsewhere(&self, question: Question);
}

/// A question that waits for the client.
pub(super) struct Question {
    /// Its name in the current round.
    key: String,
    method: String,
    params: String,
    far: Handle,
    asker: Arc<dyn Asker>,
    /// Cancelled when the server withdraws the question.
    cancel: CancelToken,
    slot: Arc<Slot>,
}

type Answered = Result<ChainResponse, RequestError>;

/// The answer of a client, and who waits for it.
#[derive(Default)]
struct Slot(Mutex<(Option<Answered>, Option<Waker>)>);

impl Question {
    /// A request of the server, whose connection is `far`; and its answer.
    pub fn new(
        request: &ChainRequest,
        far: &Handle,
        cancel: &CancelToken,
        asker: Arc<dyn Asker>,
    ) -> (impl Future<Output = Answered> + Send + use<>, Self) {
        let params = without_token(request.params(), request.view().raw(Field::Meta));
        let slot = Arc::<Slot>::default();
        let question = Self {
            key: String::new(),
            method: request.method().into_owned(),
            params: translate::question(request.known_method(), params, Era::Stateless),
            far: far.clone(),
            asker,
            cancel: cancel.clone(),
            slot: slot.clone(),
        };
        let answer = poll_fn(move |cx| {
            let mut waiting = lock(&slot.0);
            match waiting.0.take() {
                Some(answered) => Poll::Ready(answered),
                None => {
                    waiting.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        (answer, question)
    }

    fn answer(&self, answered: Answered) {
        let mut waiting = lock(&self.slot.0);
        waiting.0 = Some(answered);
        let waker = waiting.1.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Answers with an error.
    pub fn refuse(&self, code: i64, why: &str) {
        self.answer(Err(refusal(code, why)));
    }

    /// Asks the client in another call, if there is one.
    fn ask_elsewhere(self) {
        if !self.cancel.is_cancelled() {
            self.asker.clone().ask_elsewhere(self);
        }
    }
}

/// Withdraws a question when dropped: who asked it does not wait any more, and nobody else is to be asked it.
#[derive(Default)]
pub(super) struct Withdrawn(CancelToken);

impl Withdrawn {
    /// Cancelled when the question is withdrawn.
    pub fn token(&self) -> &CancelToken {
        &self.0
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.cancel(None);
    }
}

/// Asks the client in other calls.
pub(super) fn ask_elsewhere(questions: Vec<Question>) {
    questions.into_iter().for_each(Question::ask_elsewhere);
}

/// A call between two rounds.
struct Parked {
    route: Arc<Route>,
    method: Option<Method>,
    target: Option<Box<str>>,
    principal: Option<Principal>,
    /// Cancelled when the call is parked no longer, so that nothing waits for the end of its time.
    ends: CancelToken,
}

/// The calls between two rounds, by the state that their clients hold: those of a front, and of the fronts that it succeeds.
#[derive(Default)]
pub(super) struct Parking {
    calls: Mutex<HashMap<Arc<str>, Parked>>,
    fronts: Mutex<Fronts>,
}

/// The fronts whose calls stand in one place.
#[derive(Default)]
struct Fronts {
    /// How many have been succeeded, and how long calls of the last of these wait.
    succeeded: u64,
    patience: Duration,
    /// Those that are not hosted any more, the oldest first.
    retired: VecDeque<Weak<Parts>>,
}

impl Parking {
    /// Whether a call waits for the client with this state.
    pub fn has(&self, state: &str) -> bool {
        lock(&self.calls).contains_key(state)
    }

    /// A front has a successor. Returns the number of that one.
    pub fn succeed(&self, front: u64, patience: Duration) -> u64 {
        let mut fronts = lock(&self.fronts);
        fronts.succeeded = fronts.succeeded.max(front + 1);
        fronts.patience = patience;
        fronts.succeeded
    }

    /// How long calls of a front wait when it is not hosted any more; `None` if it has no successor.
    pub fn patience_after(&self, front: u64) -> Option<Duration> {
        let fronts = lock(&self.fronts);
        (fronts.succeeded > front).then_some(fronts.patience)
    }

    /// A front with a successor is not hosted any more: its calls wait no longer than that.
    pub fn retire(&self, parts: &Arc<Parts>, patience: Duration) {
        // Calls that come to wait from now on find it.
        let patience = *parts.retired.get_or_init(|| patience);
        let oldest = {
            let mut fronts = lock(&self.fronts);
            fronts.retired.retain(|front| front.strong_count() > 0);
            fronts.retired.push_back(Arc::downgrade(parts));
            let is_full = fronts.retired.len() > MAX_RETIRED;
            is_full.then(|| fronts.retired.pop_front()).flatten()
        };
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            self.give_up(|front| Arc::ptr_eq(front, &oldest));
        }
        let calls = lock(&self.calls);
        let own = calls
            .iter()
            .filter(|(_, call)| Arc::ptr_eq(&call.route.parts, parts));
        let own =
            own.map(|(state, call)| (state.clone(), call.route.clone(), call.ends.cancelled()));
        let own: Vec<_> = own.collect();
        drop(calls);
        for (state, route, resumed) in own {
            route.give_up_after(patience, state, resumed);
        }
    }

    /// Gives up the calls of a front, and of those that have been succeeded.
    pub fn clear(&self, parts: &Arc<Parts>) {
        self.give_up(|front| Arc::ptr_eq(front, parts) || front.retired.get().is_some());
    }

    fn give_up(&self, is_over: impl Fn(&Arc<Parts>) -> bool) {
        let mut calls = lock(&self.calls);
        let gone = calls.extract_if(|_, call| is_over(&call.route.parts));
        let gone: Vec<_> = gone.map(|(_, call)| call).collect();
        drop(calls);
        for call in gone {
            call.ends.cancel(None);
            call.route.give_up();
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
    let params = Some(params).filter(|params| reader::may_have(params, "requestState"))?;
    reader::find(params, "requestState")
}

fn target(call: &Call) -> Option<Box<str>> {
    let view = call.message.as_ref();
    let target = view.name().or_else(|| view.uri());
    target.map(Box::from)
}

impl Route {
    /// Notes a question of the server. The client is asked when the [round ends](Self::end_round), so that questions that
    /// came together are asked together.
    ///
    /// # Errors
    /// The question, if the call has ended.
    pub fn ask(&self, mut question: Question) -> Result<(), Question> {
        let mut target = self.target();
        if target.is_over {
            return Err(question);
        }
        target.asked += 1;
        question.key = format!("q{}", target.asked);
        target.questions.push(question);
        Ok(())
    }

    /// Refuses the open questions: nobody will answer them.
    fn refuse_questions(&self) {
        let questions = std::mem::take(&mut self.target().questions);
        for one in questions {
            one.refuse(INTERNAL_ERROR, "the client did not answer");
        }
    }

    /// Answers the client's request with the open questions, if there are any and the client waits.
    pub fn end_round(self: &Arc<Self>) {
        let mut target = self.target();
        target.questions.retain(|one| !one.cancel.is_cancelled());
        if target.questions.is_empty() || target.reply.is_none() {
            return;
        }
        let is_full = lock(&self.parking.calls).len() >= MAX_PARKED;
        let Some(state) = unguessable::name().filter(|_| !is_full) else {
            let questions = std::mem::take(&mut target.questions);
            drop(target);
            let why = "too many clients have questions to answer";
            return questions.iter().for_each(|one| one.refuse(OVERLOADED, why));
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
        lock(&self.parking.calls).insert(state.clone(), parked);
        let mut replies = front.replies();
        replies.whole_result(&reply, &result);
        replies.submit_last();
        drop(replies);
        let retired = self.parts.retired.get().copied();
        self.give_up_after(retired.unwrap_or(PATIENCE), state, resumed);
    }

    /// Gives the call up after a while, unless its client comes back before.
    fn give_up_after(self: &Arc<Self>, patience: Duration, state: Arc<str>, resumed: Cancelled) {
        let route = self.clone();
        let far = self.target().questions.first().map(|one| one.far.clone());
        if let Some(far) = far {
            crate::handler::driven::drive(Box::pin(async move {
                let is_late = unless(far.sleep(patience), resumed).await.is_some();
                if is_late && lock(&route.parking.calls).remove(&state).is_some() {
                    route.give_up();
                }
            }));
        }
    }

    /// Gives the call up: its client does not come back.
    fn give_up(&self) {
        self.refuse_questions();
        self.abandon();
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
        let mut all = lock(&parking.calls);
        let principal = principal_of(call, front);
        let fits = all.get(state).is_some_and(|parked| {
            parked.method == call.method
                && parked.target == target(call)
                && parked.principal.as_ref().map(Principal::as_str)
                    == principal.as_ref().map(Principal::as_str)
        });
        if !fits {
            return Err(UNKNOWN_STATE);
        }
        let params = call.message.as_ref().params().unwrap_or("{}");
        let given = reader::find(params, "inputResponses").unwrap_or("{}");
        let mut answers = reader::members(given);
        if !given.starts_with('{') || answers.any(|(_, answer)| !answer.starts_with('{')) {
            return Err("inputResponses is an object of objects");
        }
        let Some(Parked { route, ends, .. }) = all.remove(state) else {
            return Err(UNKNOWN_STATE);
        };
        drop(all);
        ends.cancel(None);
        let mut target = route.target();
        let questions = std::mem::take(&mut target.questions);
        let (answered, open): (Vec<_>, Vec<_>) = questions
            .into_iter()
            .partition(|one| reader::find(given, &one.key).is_some());
        // A call that has ended has no further round.
        let (kept, left) = match target.is_over {
            true => (Vec::new(), open),
            false => (open, Vec::new()),
        };
        target.questions = kept;
        let (reply, cancel) = (call.reply.clone(), call.cancel.clone());
        route.attach(target, front.clone(), reply, cancel);
        for one in answered {
            let answer = reader::find(given, &one.key).unwrap_or("{}");
            one.answer(Ok(ChainResponse::new(answer)));
        }
        ask_elsewhere(left);
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
        push(&mut request, "params", &one.params);
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
