//! What this side waits for: answers of the peer, by the numbers that JavaScript knows them by.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use mcpbolt::client::Asking;
use mcpbolt::error::RequestError;
use mcpbolt::message::Message;

use crate::inbox::{Event, Inbox};
use crate::slots::Slots;

/// A future that gives a result: raw JSON.
pub type Task = Pin<Box<dyn Future<Output = Result<String, RequestError>> + Send>>;

/// What an answer is made of.
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

type Outcome = Result<Answer, RequestError>;

#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one: in a box, every request would be allocated"
)]
enum Request {
    /// Its number is taken, nothing is sent.
    Reserved,
    /// Its answer is to come, and will wake JavaScript.
    Waiting(Way, Waker),
    /// Its answer came while it was sent.
    Answered(Box<Outcome>),
}

/// How an answer comes.
pub enum Way {
    Asking(Asking),
    Task(Task),
}

impl Way {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        match self {
            Self::Asking(asking) => Pin::new(asking).poll(cx).map_ok(Answer::Message),
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

/// Everything that is waited for.
#[derive(Default)]
pub struct Requests(Slots<Request>);

impl Requests {
    /// Takes a number for what is about to be sent.
    pub fn reserve(&mut self) -> u32 {
        self.0.insert(Request::Reserved)
    }

    /// Gives a number back; what was under way is given up.
    pub fn forget(&mut self, number: u32) {
        self.0.remove(number);
    }

    /// Waits for an answer. JavaScript is told in any case, also when it is there at once.
    pub fn wait(&mut self, number: u32, way: Way, inbox: &Arc<Inbox>) {
        if let Some(outcome) = self.begin(number, way, inbox) {
            self.0.replace(number, Request::Answered(Box::new(outcome)));
            inbox.push(Event::Ready(number));
        }
    }

    /// The same; gives a result that is there at once, instead of a number.
    pub fn try_wait(&mut self, task: Task, inbox: &Arc<Inbox>) -> Result<String, u32> {
        let number = self.reserve();
        match self.begin(number, Way::Task(task), inbox) {
            None => Err(number),
            Some(Ok(Answer::Json(json))) => {
                self.forget(number);
                Ok(json)
            }
            Some(outcome) => {
                self.0.replace(number, Request::Answered(Box::new(outcome)));
                inbox.push(Event::Ready(number));
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
                self.0.replace(number, Request::Waiting(way, waker));
                None
            }
        }
    }

    /// The answer that woke JavaScript, if it is there.
    pub fn take(&mut self, number: u32) -> Option<Outcome> {
        match self.0.get_mut(number)? {
            Request::Reserved => None,
            Request::Waiting(way, waker) => match way.poll(&mut Context::from_waker(waker)) {
                // A wake-up for an earlier request of that number finds nothing yet.
                Poll::Pending => None,
                Poll::Ready(outcome) => {
                    self.forget(number);
                    Some(outcome)
                }
            },
            Request::Answered(_) => match self.0.remove(number) {
                Some(Request::Answered(outcome)) => Some(*outcome),
                _ => None,
            },
        }
    }

    /// Gives a request up and tells the peer.
    pub fn cancel(&mut self, number: u32, reason: Option<&str>) {
        if let Some(Request::Waiting(Way::Asking(asking), _)) = self.0.remove(number) {
            asking.cancel(reason);
        }
    }
}
