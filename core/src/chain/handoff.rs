//! Middleware whose decisions are made elsewhere: what comes is reported, and what becomes of it is said later, from any
//! thread. Bindings to other languages are built on it.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::middleware::{
    ChainAnswer, ChainNotice, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
};
use crate::error::RequestError;
use crate::sync::lock;

/// What a [`Handoff`] reports. Each number stands for one message until it is settled.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are requests and answers, which are not moved often"
)]
pub enum HandoffEvent {
    /// A request has come: [`pass`](Handoff::pass) it on or [`settle`](Handoff::settle) it.
    Request(u64, ChainRequest),
    /// The answer to a request that was passed on: [`settle`](Handoff::settle) it.
    Response(u64, Result<ChainResponse, RequestError>),
    /// The request is not waited for any more; what is said about it from now on is ignored.
    GivenUp(u64),
    /// A notification has come: [`let_go`](Handoff::let_go) of it. While 8,192 wait, further ones are dropped.
    Notification(u64, ChainNotification),
    /// An answer has come after notifications that are not let go of yet. It goes on when this is
    /// [`reached`](Handoff::reached), so that it does not overtake them.
    Behind(u64),
}

/// Which messages a [`Handoff`] reports; it passes the others on itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffInterests {
    /// Requests, with their answers.
    pub requests: bool,
    /// Notifications.
    pub notifications: bool,
}

/// The most notifications that wait for a decision at a time. Further ones are dropped: whoever decides does not keep up.
const MAX_HELD: usize = 8192;

type Report = Box<dyn Fn(HandoffEvent) + Send + Sync>;

/// A [`Middleware`] that reports messages by a callback, which must not block, and acts on what it is told later.
pub struct Handoff {
    interests: HandoffInterests,
    report: Report,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: HashMap<u64, Slot>,
    next: u64,
    /// Notifications that are not let go of.
    held: usize,
    is_closed: bool,
}

/// A message, as far as it is decided about.
#[derive(Default)]
struct Slot {
    waker: Option<Waker>,
    /// The request to pass on.
    passed: Option<ChainRequest>,
    was_passed: bool,
    decided: Option<Decided>,
}

enum Decided {
    Answer(Box<Result<ChainResponse, RequestError>>),
    Notification(Option<ChainNotification>),
    Reached,
}

impl Handoff {
    /// Makes middleware that reports to `report`.
    pub fn new(
        interests: HandoffInterests,
        report: impl Fn(HandoffEvent) + Send + Sync + 'static,
    ) -> Self {
        Self {
            interests,
            report: Box::new(report),
            state: Mutex::default(),
        }
    }

    /// Passes a request on. [`HandoffEvent::Response`] follows.
    ///
    /// # Errors
    /// [`RequestError::Misuse`] if it was passed on before; [`RequestError::Cancelled`] if it is not waited for any more.
    pub fn pass(&self, number: u64, request: ChainRequest) -> Result<(), RequestError> {
        let mut state = lock(&self.state);
        let Some(slot) = state.slots.get_mut(&number) else {
            return Err(RequestError::Cancelled(None));
        };
        if std::mem::replace(&mut slot.was_passed, true) {
            let why = "the request was passed on before; a request is passed on once at most";
            return Err(RequestError::Misuse(why));
        }
        slot.passed = Some(request);
        let waker = slot.waker.take();
        drop(state);
        wake(waker);
        Ok(())
    }

    /// Answers a request. One that was passed on and is not answered yet is cancelled at the server.
    pub fn settle(&self, number: u64, outcome: Result<ChainResponse, RequestError>) {
        self.decide(number, Decided::Answer(Box::new(outcome)));
    }

    /// Passes a notification on, perhaps another one in its place; `None` drops it.
    pub fn let_go(&self, number: u64, notification: Option<ChainNotification>) {
        self.decide(number, Decided::Notification(notification));
    }

    /// Says that an answer may go on.
    pub fn reached(&self, number: u64) {
        self.decide(number, Decided::Reached);
    }

    /// Ends it: what waits is refused or dropped, and so is what comes.
    pub fn close(&self) {
        let slots = {
            let mut state = lock(&self.state);
            state.is_closed = true;
            std::mem::take(&mut state.slots)
        };
        slots.into_values().for_each(|slot| wake(slot.waker));
    }

    fn decide(&self, number: u64, decided: Decided) {
        let mut state = lock(&self.state);
        let Some(slot) = state.slots.get_mut(&number) else {
            return;
        };
        slot.decided.get_or_insert(decided);
        let waker = slot.waker.take();
        drop(state);
        wake(waker);
    }

    /// A slot for a message; `None` if this is closed.
    fn open(&self) -> Option<Held<'_>> {
        let mut state = lock(&self.state);
        if state.is_closed {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.slots.insert(number, Slot::default());
        Some(Held {
            handoff: self,
            number,
            is_settled: false,
        })
    }

    /// What is decided about a message, or a request to pass on.
    fn poll(&self, number: u64, cx: &Context<'_>) -> Poll<Step> {
        let mut state = lock(&self.state);
        let Some(slot) = state.slots.get_mut(&number) else {
            return Poll::Ready(Step::Closed);
        };
        if let Some(decided) = slot.decided.take() {
            return Poll::Ready(Step::Decided(Box::new(decided)));
        }
        if let Some(request) = slot.passed.take() {
            return Poll::Ready(Step::Pass(Box::new(request)));
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    async fn ask<'a>(
        &'a self,
        request: ChainRequest,
        next: NextHop<'a>,
    ) -> Result<ChainResponse, RequestError> {
        let Some(mut held) = self.open() else {
            return Err(closed());
        };
        let number = held.number;
        (self.report)(HandoffEvent::Request(number, request));
        let (mut next, mut running) = (Some(next), None::<ChainAnswer<'a>>);
        let decided = poll_fn(|cx| {
            loop {
                match self.poll(number, cx) {
                    Poll::Ready(Step::Pass(request)) => {
                        running = next.take().map(|next| next.run(*request));
                        continue;
                    }
                    Poll::Ready(step) => return Poll::Ready(step),
                    Poll::Pending => {}
                }
                let Some(answer) = &mut running else {
                    return Poll::Pending;
                };
                let answer = std::task::ready!(answer.as_mut().poll(cx));
                running = None;
                (self.report)(HandoffEvent::Response(number, answer));
            }
        })
        .await;
        held.is_settled = true;
        let Step::Decided(decided) = decided else {
            return Err(closed());
        };
        match *decided {
            Decided::Answer(outcome) => *outcome,
            _ => Err(closed()),
        }
    }

    /// Waits until notifications that came before are on their way.
    async fn behind(&self) {
        if lock(&self.state).held == 0 {
            return;
        }
        let Some(mut held) = self.open() else { return };
        let number = held.number;
        (self.report)(HandoffEvent::Behind(number));
        poll_fn(|cx| self.poll(number, cx)).await;
        held.is_settled = true;
    }
}

enum Step {
    Pass(Box<ChainRequest>),
    Decided(Box<Decided>),
    Closed,
}

/// A message that is waited for; if it is dropped before it is settled, that is reported.
struct Held<'a> {
    handoff: &'a Handoff,
    number: u64,
    is_settled: bool,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let slot = lock(&self.handoff.state).slots.remove(&self.number);
        if slot.is_some() && !self.is_settled {
            (self.handoff.report)(HandoffEvent::GivenUp(self.number));
        }
    }
}

/// Counts a notification that is held.
struct Counted<'a>(&'a Handoff);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).held -= 1;
    }
}

fn closed() -> RequestError {
    RequestError::Misuse("the middleware has ended")
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Middleware for Handoff {
    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        match self.interests {
            HandoffInterests { requests: true, .. } => Box::pin(self.ask(request, next)),
            HandoffInterests {
                notifications: true,
                ..
            } => Box::pin(async move {
                let answer = next.run(request).await;
                self.behind().await;
                answer
            }),
            _ => next.run(request),
        }
    }

    fn notice(&self, notification: ChainNotification) -> ChainNotice<'_> {
        if !self.interests.notifications {
            return Box::pin(std::future::ready(Some(notification)));
        }
        // From now on, not from the first poll: an answer may come before it.
        {
            let mut state = lock(&self.state);
            if state.held >= MAX_HELD {
                return Box::pin(std::future::ready(None));
            }
            state.held += 1;
        }
        let counted = Counted(self);
        Box::pin(async move {
            let counted = counted;
            let mut held = self.open()?;
            let number = held.number;
            (self.report)(HandoffEvent::Notification(number, notification));
            let decided = poll_fn(|cx| self.poll(number, cx)).await;
            held.is_settled = true;
            drop(counted);
            let Step::Decided(decided) = decided else {
                return None;
            };
            match *decided {
                Decided::Notification(notification) => notification,
                _ => None,
            }
        })
    }
}

impl fmt::Debug for Handoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff")
            .field("interests", &self.interests)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::chain::RelayDirection;

    fn handoff(requests: bool, notifications: bool) -> (Arc<Handoff>, Receiver<HandoffEvent>) {
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let interests = HandoffInterests {
            requests,
            notifications,
        };
        let report = move |event| drop(lock(&sender).send(event));
        (Arc::new(Handoff::new(interests, report)), events)
    }

    fn request() -> ChainRequest {
        ChainRequest::question("roots/list", "{}", crate::mcp::Revision::NEWEST).unwrap()
    }

    fn next<'a>(answer: &'static str) -> NextHop<'a> {
        NextHop::new(&[], RelayDirection::ToServer, move |_| {
            Box::pin(async move { Ok(ChainResponse::new(answer)) })
        })
    }

    fn poll<T>(work: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
        std::pin::Pin::new(work).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// R-CHN-08
    #[test]
    fn a_request_is_passed_on_once_and_answered_once() {
        let (handoff, events) = handoff(true, false);
        let mut asked = handoff.request(request(), next("{\"a\":1}"));
        assert!(poll(&mut asked).is_pending());
        let Ok(HandoffEvent::Request(number, request)) = events.try_recv() else {
            panic!("the request is not reported");
        };
        handoff.pass(number, request.clone()).unwrap();
        let again = handoff.pass(number, request.clone());
        assert!(matches!(again, Err(RequestError::Misuse(_))), "{again:?}");
        assert!(poll(&mut asked).is_pending());
        let Ok(HandoffEvent::Response(_, Ok(response))) = events.try_recv() else {
            panic!("the answer is not reported");
        };
        assert_eq!(response.result(), "{\"a\":1}");
        handoff.settle(number, Ok(ChainResponse::new("{\"a\":2}")));
        handoff.settle(number, Ok(ChainResponse::new("{\"a\":3}")));
        let Poll::Ready(Ok(answer)) = poll(&mut asked) else {
            panic!("there is no answer");
        };
        assert_eq!(answer.result(), "{\"a\":2}");
        let late = handoff.pass(number, request);
        assert!(matches!(late, Err(RequestError::Cancelled(_))), "{late:?}");
        drop(asked);
        assert!(events.try_recv().is_err());
    }

    /// R-CHN-08
    #[test]
    fn a_request_may_be_answered_before_its_answer_has_come() {
        struct Flag(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::SeqCst);
            }
        }
        let (handoff, events) = handoff(true, false);
        let never = NextHop::new(&[], RelayDirection::ToServer, |_| {
            Box::pin(std::future::pending())
        });
        let mut asked = handoff.request(request(), never);
        assert!(poll(&mut asked).is_pending());
        let Ok(HandoffEvent::Request(number, request)) = events.try_recv() else {
            panic!("the request is not reported");
        };
        handoff.pass(number, request).unwrap();
        let flag = Arc::new(Flag(false.into()));
        let waker = Waker::from(flag.clone());
        assert!(
            asked
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        handoff.settle(number, Ok(ChainResponse::new("{}")));
        assert!(
            flag.0.load(std::sync::atomic::Ordering::SeqCst),
            "it is woken"
        );
        assert!(matches!(poll(&mut asked), Poll::Ready(Ok(_))));
    }

    #[test]
    fn a_request_that_is_given_up_is_reported_and_a_closed_handoff_refuses() {
        let (handoff, events) = handoff(true, false);
        let mut asked = handoff.request(request(), next("{}"));
        assert!(poll(&mut asked).is_pending());
        drop(asked);
        let seen: Vec<_> = events.try_iter().collect();
        assert!(matches!(
            seen[..],
            [HandoffEvent::Request(a, _), HandoffEvent::GivenUp(b)] if a == b
        ));
        let mut asked = handoff.request(request(), next("{}"));
        assert!(poll(&mut asked).is_pending());
        handoff.close();
        assert!(matches!(poll(&mut asked), Poll::Ready(Err(_))));
        let mut asked = handoff.request(request(), next("{}"));
        assert!(matches!(poll(&mut asked), Poll::Ready(Err(_))));
    }

    #[test]
    fn an_answer_does_not_overtake_notifications() {
        let (handoff, events) = handoff(false, true);
        let told = ChainNotification::new(RelayDirection::ToClient, "notifications/message", None);
        let mut notice = handoff.notice(told);
        let mut asked = handoff.request(request(), next("{}"));
        assert!(poll(&mut notice).is_pending());
        assert!(poll(&mut asked).is_pending());
        let Ok(HandoffEvent::Notification(one, told)) = events.try_recv() else {
            panic!("the notification is not reported");
        };
        let Ok(HandoffEvent::Behind(two)) = events.try_recv() else {
            panic!("the answer is not behind it");
        };
        handoff.let_go(one, Some(told));
        assert!(matches!(poll(&mut notice), Poll::Ready(Some(_))));
        handoff.reached(two);
        assert!(matches!(poll(&mut asked), Poll::Ready(Ok(_))));
        // They are bounded in number.
        let told =
            || ChainNotification::new(RelayDirection::ToClient, "notifications/message", None);
        let mut all: Vec<_> = (0..MAX_HELD).map(|_| handoff.notice(told())).collect();
        let mut beyond = handoff.notice(told());
        assert!(matches!(poll(&mut beyond), Poll::Ready(None)));
        all.clear();
        // With none under way, answers are not held up.
        let mut asked = handoff.request(request(), next("{}"));
        assert!(matches!(poll(&mut asked), Poll::Ready(Ok(_))));
    }
}
