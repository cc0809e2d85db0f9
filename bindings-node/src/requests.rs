//! Pending requests of this side, by the numbers that JavaScript uses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use mcpbolt::client::{Client, PendingRequest};
use mcpbolt::connection::{ProgressFn, Response};
use mcpbolt::error::RequestError;
use mcpbolt::message::Message;

use crate::describe;
use crate::inbox::{Event, Inbox};
use crate::kinds::Inbound;

/// A future that gives a result: raw JSON.
pub type Task = Pin<Box<dyn Future<Output = Result<String, RequestError>> + Send>>;

/// The answer to a request.
#[expect(
    clippy::large_enum_variant,
    reason = "it goes from the future to a row; nobody keeps it"
)]
pub enum Answer {
    Message(Message),
    Json(String),
}

impl Answer {
    /// The result.
    pub fn json(&self) -> &str {
        match self {
            Self::Message(message) => message.as_ref().result().unwrap_or("{}"),
            Self::Json(json) => json,
        }
    }
}

/// The outcome of a request.
pub type Outcome = Result<Answer, RequestError>;

#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one: in a box, every request would be allocated"
)]
enum Request {
    /// The number is taken, nothing is sent.
    Reserved,
    /// The answer is pending, and will wake JavaScript.
    /// Whether it was looked at before it was answered, as in the rounds of a call.
    Waiting(Way, Waker, bool),
    /// The answer has arrived, behind earlier events.
    Answered(Box<Outcome>),
}

/// The source of an answer.
pub enum Way {
    Request(PendingRequest),
    /// A page of the list of tools, which leaves out tools that this client may not call.
    Listing(Client, PendingRequest),
    /// A request of another library's server to its client.
    Peer(Response),
    Task(Task),
}

impl Way {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        match self {
            Self::Request(asking) => Pin::new(asking).poll(cx).map_ok(Answer::Message),
            Self::Listing(client, asking) => Pin::new(asking).poll(cx).map_ok(|message| {
                let page = message.as_ref().result().unwrap_or("{}");
                match client.usable_tools(page) {
                    Cow::Borrowed(_) => Answer::Message(message),
                    Cow::Owned(page) => Answer::Json(page),
                }
            }),
            Self::Peer(response) => Pin::new(response).poll(cx).map_ok(Answer::Message),
            Self::Task(task) => task.as_mut().poll(cx).map_ok(Answer::Json),
        }
    }
}

struct Ready {
    inbox: Arc<Inbox>,
    number: u32,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.inbox.push(Event::Ready(self.number));
    }
}

/// The highest number: JavaScript reads numbers as signed 32-bit integers.
const MAX_NUMBER: u32 = i32::MAX as u32;

/// All pending requests. A number is reused only after all others, so that an event queued for an earlier
/// request finds no request instead of a wrong one.
#[derive(Default)]
pub struct Requests {
    waiting: HashMap<u32, Request>,
    last: u32,
}

impl Requests {
    /// Reserves a number for a request that is about to be sent.
    pub fn reserve(&mut self) -> u32 {
        loop {
            self.last = (self.last + 1) & MAX_NUMBER;
            if let Entry::Vacant(place) = self.waiting.entry(self.last) {
                place.insert(Request::Reserved);
                return self.last;
            }
        }
    }

    /// Releases a number; a pending request is dropped.
    pub fn forget(&mut self, number: u32) {
        self.waiting.remove(&number);
    }

    /// Awaits an answer. JavaScript is notified in any case, even if the answer is available at once.
    pub fn wait(&mut self, number: u32, way: Way, inbox: &Arc<Inbox>) {
        if let Some(outcome) = self.begin(number, way, inbox) {
            self.settle(number, outcome, inbox);
        }
    }

    /// Like [`wait`](Self::wait), but returns a result that is available at once instead of a number.
    pub fn try_wait(&mut self, task: Task, inbox: &Arc<Inbox>) -> Result<String, u32> {
        let number = self.reserve();
        match self.begin(number, Way::Task(task), inbox) {
            None => Err(number),
            Some(Ok(Answer::Json(json))) => {
                self.forget(number);
                Ok(json)
            }
            Some(outcome) => {
                self.settle(number, outcome, inbox);
                Err(number)
            }
        }
    }

    fn begin(&mut self, number: u32, mut way: Way, inbox: &Arc<Inbox>) -> Option<Outcome> {
        let inbox = inbox.clone();
        let waker = Waker::from(Arc::new(Ready { inbox, number }));
        match way.poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => {
                self.waiting
                    .insert(number, Request::Waiting(way, waker, false));
                None
            }
        }
    }

    /// Keeps an answer until all earlier events have been taken.
    fn settle(&mut self, number: u32, outcome: Outcome, inbox: &Inbox) {
        let answered = Request::Answered(Box::new(outcome));
        self.waiting.insert(number, answered);
        inbox.push(Event::Answered(number));
    }

    /// The answer that woke JavaScript, if it has arrived. The answer of a task, or of a request that something else woke before, comes
    /// later: something may have been reported before it that JavaScript has not taken.
    pub fn look(&mut self, number: u32, inbox: &Inbox) -> Option<Outcome> {
        let Some(Request::Waiting(way, waker, has_rounds)) = self.waiting.get_mut(&number) else {
            return None;
        };
        match (way.poll(&mut Context::from_waker(waker)), way) {
            (Poll::Pending, _) => {
                *has_rounds = true;
                None
            }
            (Poll::Ready(outcome), Way::Request(_) | Way::Listing(..) | Way::Peer(_))
                if !*has_rounds =>
            {
                self.forget(number);
                Some(outcome)
            }
            (Poll::Ready(outcome), _) => {
                self.settle(number, outcome, inbox);
                None
            }
        }
    }

    /// The answer that was kept.
    pub fn take(&mut self, number: u32) -> Option<Outcome> {
        match self.waiting.remove(&number)? {
            Request::Answered(outcome) => Some(*outcome),
            _ => None,
        }
    }

    /// Cancels a request, and tells the peer.
    pub fn cancel(&mut self, number: u32, reason: Option<&str>) {
        match self.waiting.remove(&number) {
            Some(Request::Waiting(Way::Request(asking) | Way::Listing(_, asking), ..)) => {
                asking.cancel(reason);
            }
            Some(Request::Waiting(Way::Peer(response), ..)) => response.cancel(reason),
            _ => {}
        }
    }
}

/// Reports what happens to a request of this side before its answer.
pub struct Reporter {
    inbox: Arc<Inbox>,
    number: u32,
}

impl Reporter {
    pub fn new(inbox: &Arc<Inbox>, number: u32) -> Self {
        let inbox = inbox.clone();
        Self { inbox, number }
    }

    pub fn report(&self, kind: Inbound, text: String) {
        self.inbox.push(Event::row(kind, self.number, 0, text));
    }

    /// Reports progress.
    pub fn progress(self) -> ProgressFn {
        Arc::new(move |progress| self.report(Inbound::Progress, describe::progress(progress)))
    }
}
