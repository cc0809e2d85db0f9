//! The way back of one call: to whom its answer, its progress and its questions go.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::held::{Held, Part};
use super::middleware::ChainResponse;
use super::params::with_meta;
use super::parts::Parts;
use super::question::{Parking, Question};
use super::sessions::Session;
use crate::connection::{Call, Caller, Handle, Principal, ReplyTo, RequestScope};
use crate::correlate::{CancelToken, Cancelled};
use crate::error::RequestError;
use crate::json::number;
use crate::mcp::{Era, Method, Revision, meta};
use crate::sync::lock;

/// One call of the client, from its arrival to its answer. A call whose client answers questions in rounds is one
/// route over all of them.
pub(super) struct Route {
    pub parts: Arc<Parts>,
    pub parking: Arc<Parking>,
    pub method: Option<Method>,
    /// The name of the tool or prompt, or the URI of the resource.
    pub about: Option<Box<str>>,
    /// The verified client.
    pub principal: Option<Principal>,
    /// Whether a chain of this process asks on behalf of all its clients.
    pub is_of_all: bool,
    /// The scope that the handler of the call runs in, if the observer of the front has given one.
    pub scope: Option<RequestScope>,
    /// The revision in which the client speaks.
    pub revision: Revision,
    /// Cancelled when streams of the client's connection are to end in good order.
    pub ends: CancelToken,
    /// A connection whose clock runs as long as the call.
    pub timers: Handle,
    /// The sessions of the client with the servers, by their indexes, if it is of the handshake era.
    pub sessions: Arc<[Arc<Session>]>,
    target: Mutex<Target>,
}

/// Where the call is answered at present.
#[derive(Default)]
pub(super) struct Target {
    /// The client's connection, and its request; `None` between two rounds, and after the answer.
    pub reply: Option<(Handle, ReplyTo)>,
    /// The cancel token of the client's current request.
    cancel: Option<(CancelToken, Cancelled)>,
    /// Wakes the task that carries the call, when the client's request is another one.
    waker: Option<Waker>,
    /// Questions of the server that wait for the client's answers.
    pub questions: Vec<Question>,
    /// How many questions there were.
    pub asked: u64,
    /// How many reports of progress, log messages, and questions in requests there were.
    reports: u64,
    /// How many questions in requests wait for the client.
    waiting: usize,
    /// Whether the call has ended, so that no further question can be asked in it.
    pub is_over: bool,
    /// The state that the client holds between two rounds.
    pub parked: Option<Arc<str>>,
    /// The parts by which failures are worded: those of the server that the call went to, once it is known.
    parts: Option<Arc<Parts>>,
    /// What a stream of changes tells before it is acknowledged.
    held: Option<Held>,
    /// The servers whose streams of changes are open later than that of the front, by their indexes.
    late: Vec<usize>,
    /// The answer that came between two rounds.
    outcome: Option<Result<ChainResponse, RequestError>>,
}

impl Route {
    pub fn new(
        (parts, parking): (Arc<Parts>, Arc<Parking>),
        front: Handle,
        call: &Call,
        sessions: Arc<[Arc<Session>]>,
        (ends, timers): (CancelToken, Handle),
    ) -> Arc<Self> {
        let (reply, cancel) = (call.reply.clone(), call.cancel.clone());
        let cancelled = cancel.cancelled();
        let view = call.message.as_ref();
        // Only a call that is resumed is compared with the one before.
        let is_resumable =
            call.method.is_some_and(Method::may_ask) && reply.revision().era() == Era::Stateless;
        let about = view.name().or_else(|| view.uri()).filter(|_| is_resumable);
        Arc::new(Self {
            parts,
            parking,
            method: call.method,
            about: about.map(Box::from),
            principal: principal_of(call, &front),
            is_of_all: is_of_all(call, &front),
            scope: call.scope.clone(),
            revision: reply.revision(),
            ends,
            timers,
            sessions,
            target: Mutex::new(Target {
                reply: Some((front, reply)),
                cancel: Some((cancel, cancelled)),
                ..Target::default()
            }),
        })
    }

    pub fn target(&self) -> MutexGuard<'_, Target> {
        lock(&self.target)
    }

    /// Where the call is answered; `None` between rounds and after the answer.
    pub fn reply(&self) -> Option<(Handle, ReplyTo)> {
        self.target().reply.clone()
    }

    /// Notes the server that the call goes to.
    pub fn goes_to(&self, parts: &Arc<Parts>) {
        if parts.is_of_many {
            self.target().parts = Some(parts.clone());
        }
    }

    /// Keeps back what servers tell on a stream of changes until it is [acknowledged](Self::acknowledge). The token is cancelled when
    /// none of these servers is awaited any more.
    pub fn hold(&self, parts: Vec<Part>) -> CancelToken {
        let held = Held::new(parts);
        let opens = held.opens.clone();
        self.target().held = Some(held);
        opens
    }

    /// Takes the filter that servers have granted to a stream that is held, or may grant yet, to [acknowledge](Self::acknowledge) it.
    /// The servers that are awaited at this moment are late, even if they settle before the client is told.
    pub fn take_granted(&self) -> String {
        let target = &mut *self.target();
        let Some(held) = &target.held else {
            return String::new();
        };
        target.late.extend(held.awaited());
        held.granted()
    }

    /// Tells the client that its stream is open, if middleware shows that, and then what was held. Returns whether that is all.
    pub fn acknowledge(&self, shown: Option<(&str, &str)>) -> bool {
        let mut target = self.target();
        let Some(held) = target.held.take() else {
            return true;
        };
        if let Some((front, reply)) = &target.reply {
            let mut replies = front.replies();
            for (method, params) in shown.into_iter().chain(held.told()) {
                replies.notify(reply, method, Some(params));
            }
        }
        !held.is_full()
    }

    /// Tells the client of a change, on its stream (R-SUB-04).
    pub fn tell(&self, method: &str, params: Option<&str>) {
        let mut target = self.target();
        let Some((front, reply)) = target.reply.clone() else {
            return;
        };
        let id = Some(reply.id().raw());
        let own = with_meta(params.unwrap_or("{}"), meta::SUBSCRIPTION_ID, id);
        let Some(held) = &mut target.held else {
            drop(target);
            return front.replies().notify(&reply, method, Some(&own));
        };
        held.tell(method, &own);
        let opens = held.opens.clone();
        let is_full = held.is_full();
        drop(target);
        if is_full {
            opens.cancel(None);
        }
    }

    /// Notes that the client may miss changes until the stream of this server is open, unless its own stream waits for that.
    pub fn expect_late(&self, parts: &Parts) {
        let mut target = self.target();
        let is_awaited = target
            .held
            .as_ref()
            .is_some_and(|it| it.awaits(parts.index));
        if !is_awaited && !target.late.contains(&parts.index) {
            target.late.push(parts.index);
        }
    }

    /// Notes that the stream of this server is open, with what it has granted, or that it has failed. Returns whether the client
    /// may have missed changes.
    pub fn settle(&self, parts: &Parts, granted: Option<&str>) -> bool {
        let mut target = self.target();
        let opens = target.held.as_mut().and_then(|held| {
            held.settle(parts.index, granted);
            (!held.is_awaiting()).then(|| held.opens.clone())
        });
        let at = target.late.iter().position(|one| *one == parts.index);
        let is_late = granted.is_some() && at.map(|at| target.late.remove(at)).is_some();
        drop(target);
        if let Some(opens) = opens {
            opens.cancel(None);
        }
        is_late
    }

    /// Notes that the call has ended. Returns the questions that its client is not asked any more; a client that has been
    /// asked may still answer.
    pub fn close(&self) -> Vec<Question> {
        let mut target = self.target();
        target.is_over = true;
        match target.parked {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut target.questions),
        }
    }

    /// Completes when the client has cancelled the call.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<Option<Box<str>>> {
        let mut target = self.target();
        match &target.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => target.waker = Some(cx.waker().clone()),
        }
        let Some((token, cancelled)) = &mut target.cancel else {
            return Poll::Pending;
        };
        std::task::ready!(Pin::new(cancelled).poll(cx));
        Poll::Ready(token.reason().map(Box::from))
    }

    /// Notes a report of progress or a log message.
    pub fn note_report(&self) {
        self.target().reports += 1;
    }

    /// Notes a question that the client is asked by a request, for as long as the guard exists.
    pub fn note_question(self: &Arc<Self>) -> Waiting {
        let mut target = self.target();
        target.reports += 1;
        target.waiting += 1;
        drop(target);
        Waiting(self.clone())
    }

    /// How often the server has said something about the call, and whether a question of the server waits for the client.
    pub fn signs(&self) -> (u64, bool) {
        let target = self.target();
        let waits = !target.questions.is_empty() || target.parked.is_some() || target.waiting > 0;
        (target.asked + target.reports, waits)
    }

    /// Whether the client has cancelled the call, or is gone.
    pub fn is_cancelled(&self) -> bool {
        let target = self.target();
        let token = target.cancel.as_ref();
        token.is_some_and(|(token, _)| token.is_cancelled())
    }

    /// Cancels the call on behalf of a client that does not come back.
    pub fn abandon(&self) {
        let token = CancelToken::new();
        token.cancel(Some("the client did not answer in time"));
        let cancelled = token.cancelled();
        let mut target = self.target();
        target.parked = None;
        target.cancel = Some((token, cancelled));
        let waker = target.waker.take();
        drop(target);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the round: the client's request is answered by the caller, and the call goes on without one.
    pub fn detach(target: &mut Target, state: Arc<str>) -> Option<(Handle, ReplyTo)> {
        target.cancel = None;
        target.parked = Some(state);
        target.reply.take()
    }

    /// Goes on with another request of the client. Sends the answer, if it is there. `target` is this route's, and locked
    /// since the questions of the round before were taken: no other thread ends the call in between.
    pub fn attach(
        &self,
        mut target: MutexGuard<'_, Target>,
        front: Handle,
        reply: ReplyTo,
        cancel: CancelToken,
    ) {
        target.parked = None;
        target.reply = Some((front, reply));
        let cancelled = cancel.cancelled();
        target.cancel = Some((cancel, cancelled));
        let (outcome, waker) = (target.outcome.take(), target.waker.take());
        drop(target);
        match (outcome, waker) {
            (Some(outcome), _) => self.finish(outcome),
            (None, Some(waker)) => waker.wake(),
            (None, None) => {}
        }
    }

    /// Answers the call: at once, or when the client comes for the answer.
    pub fn finish(&self, outcome: Result<ChainResponse, RequestError>) {
        let mut target = self.target();
        let parts = target.parts.clone();
        match target.reply.take() {
            Some((front, reply)) => {
                drop(target);
                parts
                    .as_ref()
                    .unwrap_or(&self.parts)
                    .answer(&front, &reply, outcome);
            }
            None if target.parked.is_some() => drop(target.outcome.get_or_insert(outcome)),
            None => {}
        }
    }
}

/// A question that the client is asked by a request.
pub(super) struct Waiting(Arc<Route>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.target().waiting -= 1;
    }
}

/// Answers the call if nothing else does, for example because middleware panicked.
pub(super) struct Unanswered(pub Arc<Route>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0
            .finish(Err(RequestError::Misuse("the request was given up")));
    }
}

/// The verified sender of a call.
pub(super) fn principal_of(call: &Call, front: &Handle) -> Option<Principal> {
    let own = call.reply.principal().or_else(|| front.verified());
    own.cloned()
}

/// Whether a call comes from a chain of this process, on behalf of no client in particular.
fn is_of_all(call: &Call, front: &Handle) -> bool {
    front.callers().is_some_and(|callers| {
        let id = call.message.as_ref().id();
        let id = id.and_then(|id| number::as_u64(id.raw()));
        id.is_none_or(|id| matches!(callers.caller(id), Caller::Nobody))
    })
}
