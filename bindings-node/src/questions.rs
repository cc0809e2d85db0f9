//! Requests of the server to this client's program: passed to JavaScript, each with a number.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcpbolt::server::HandlerError;

use crate::inbox::{Event, Inbox};

/// The kind of a question; `face/answering.ts` uses the same numbers.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Topic {
    Sampling = 0,
    Form = 1,
    Page = 2,
}

/// The questions that JavaScript has not yet answered.
pub struct Questions {
    inbox: Arc<Inbox>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: HashMap<u32, Open>,
    /// Numbers are not reused: a late answer finds nothing.
    next: u32,
}

enum Open {
    Waits(Option<Waker>),
    Answered(Result<String, String>),
}

impl Questions {
    pub fn new(inbox: &Arc<Inbox>) -> Self {
        Self {
            inbox: inbox.clone(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the table whole, also when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks JavaScript. Dropping the question withdraws it.
    pub fn ask(self: &Arc<Self>, topic: Topic, json: String) -> Question {
        let mut state = self.state();
        let number = state.next;
        state.next = state.next.wrapping_add(1);
        state.open.insert(number, Open::Waits(None));
        drop(state);
        self.inbox.push(Event::Asked(number, topic, json));
        Question {
            questions: self.clone(),
            number,
        }
    }

    /// Takes JavaScript's answer: a result, or the text of a failure.
    pub fn answer(&self, number: u32, answer: Result<String, String>) {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(&number) else {
            return;
        };
        let before = std::mem::replace(open, Open::Answered(answer));
        drop(state);
        if let Open::Waits(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// The future of an answer.
pub struct Question {
    questions: Arc<Questions>,
    number: u32,
}

impl Future for Question {
    type Output = Result<String, HandlerError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.questions.state();
        match state.open.remove(&self.number) {
            Some(Open::Answered(answer)) => Poll::Ready(answer.map_err(HandlerError::new)),
            _ => {
                let waits = Open::Waits(Some(cx.waker().clone()));
                state.open.insert(self.number, waits);
                Poll::Pending
            }
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let open = self.questions.state().open.remove(&self.number);
        if let Some(Open::Waits(_)) = open {
            self.questions.inbox.push(Event::Withdrawn(self.number));
        }
    }
}
