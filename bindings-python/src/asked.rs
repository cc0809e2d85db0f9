//! Questions of a server to its client: each crosses to the event loop, and its answer comes back.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcpbolt::client::{self, ClientBuilder};
use mcpbolt::handler::HandlerError;
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::settings::{ClientSettings, Seconds};

use crate::client_events::ClientEvent;
use crate::inbox::Inbox;

/// The questions that wait for the program's answer.
pub struct Asked {
    inbox: Arc<Inbox<ClientEvent>>,
    open: Mutex<HashMap<u64, Slot>>,
    next: AtomicU64,
}

enum Slot {
    Open(Waker),
    Answered(Result<String, HandlerError>),
}

impl Asked {
    pub fn new(inbox: Arc<Inbox<ClientEvent>>) -> Self {
        Self {
            inbox,
            open: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Slot>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question.
    pub fn answer(&self, number: u64, answer: Result<String, HandlerError>) {
        let waker = match self.open().get_mut(&number) {
            Some(slot) => std::mem::replace(slot, Slot::Answered(answer)),
            // The server cancelled the question meanwhile.
            None => return,
        };
        if let Slot::Open(waker) = waker {
            waker.wake();
        }
    }

    fn ask(self: &Arc<Self>, what: &'static str, params: String) -> Answering {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open()
            .insert(number, Slot::Open(Waker::noop().clone()));
        self.inbox.push(ClientEvent::Asked(number, what, params));
        Answering {
            asked: self.clone(),
            number,
        }
    }
}

/// A future answer. If it is dropped unanswered, the program is told that the question was cancelled.
struct Answering {
    asked: Arc<Asked>,
    number: u64,
}

impl Future for Answering {
    type Output = Result<String, HandlerError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut open = self.asked.open();
        let Some(slot) = open.get_mut(&self.number) else {
            return Poll::Ready(Err(HandlerError::new("the question is closed")));
        };
        match std::mem::replace(slot, Slot::Open(cx.waker().clone())) {
            Slot::Answered(answer) => {
                open.remove(&self.number);
                Poll::Ready(answer)
            }
            Slot::Open(_) => Poll::Pending,
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let left = self.asked.open().remove(&self.number);
        if let Some(Slot::Open(_)) = left {
            self.asked.inbox.push(ClientEvent::GivenUp(self.number));
        }
    }
}

/// Adds handlers to the builder that pass questions on to the program.
pub fn hand_on(
    mut builder: ClientBuilder,
    settings: &ClientSettings<Seconds>,
    asked: &Arc<Asked>,
) -> ClientBuilder {
    if settings.sampling {
        let asked = asked.clone();
        let sample = move |sampling, _| {
            let asked = asked.clone();
            async move {
                let params = serde_json::to_string(&sampling)?;
                let answer = asked.ask("sample", params).await?;
                serde_json::from_str(&answer).map_err(HandlerError::new)
            }
        };
        builder = match settings.sampling_tools {
            true => builder.on_sampling_with_tools(sample),
            false => builder.on_sampling(sample),
        };
    }
    let elicit = |asked: Arc<Asked>| {
        move |elicitation: Elicitation, context: client::ClientContext| {
            let what = match elicitation {
                Elicitation::Url { .. } => "elicit_url",
                _ => "elicit",
            };
            let params = elicitation.to_json(context.revision()).to_string();
            let answering = asked.ask(what, params);
            async move { Elicited::parse(&answering.await?).map_err(HandlerError::new) }
        }
    };
    if settings.forms {
        builder = builder.on_form(elicit(asked.clone()));
    }
    if settings.pages {
        builder = builder.on_page(elicit(asked.clone()));
    }
    builder
}
