//! Requests of the server to this client's program: passed to JavaScript, each with a number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::server::HandlerError;
use tokio::sync::oneshot;

use crate::inbox::{Event, Inbox};
use crate::kinds::Inbound;

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
    open: HashMap<u32, oneshot::Sender<Result<String, String>>>,
    /// Numbers are not reused: a late answer finds nothing.
    next: u32,
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

    /// Asks JavaScript. Dropping the future withdraws the question.
    pub async fn ask(&self, topic: Topic, json: String) -> Result<String, HandlerError> {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut state = self.state();
            let number = state.next;
            state.next = number.wrapping_add(1);
            state.open.insert(number, sender);
            number
        };
        let asked = Event::row(Inbound::Asked, number, topic as u32, json);
        self.inbox.push(asked);
        let _open = Open(self, number);
        answer.await?.map_err(HandlerError::new)
    }

    /// Takes JavaScript's answer: a result, or the text of a failure.
    pub fn answer(&self, number: u32, answer: Result<String, String>) {
        if let Some(sender) = { self.state().open.remove(&number) } {
            // A question that was withdrawn meanwhile needs no answer.
            let _ = sender.send(answer);
        }
    }
}

/// Withdraws a question that has no answer when it is dropped.
struct Open<'a>(&'a Questions, u32);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Self(questions, number) = *self;
        if { questions.state().open.remove(&number) }.is_some() {
            let withdrawn = Event::row(Inbound::Withdrawn, number, 0, String::new());
            questions.inbox.push(withdrawn);
        }
    }
}
