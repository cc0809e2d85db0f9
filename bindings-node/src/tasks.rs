//! Calls that run as tasks: of the peer, and at the peer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use mcpbolt::correlate::{CancelToken, Cancelled};
use napi_derive::napi;

use crate::caller::CallId;
use crate::error::Result;
use crate::inbox::{Event, Inbox};
use crate::link::Link;

/// Tells JavaScript when a task is cancelled. The call was answered long ago, so no message of its connection
/// reports that.
#[derive(Debug)]
pub struct GivenUp(#[expect(dead_code, reason = "it holds the waker")] Pin<Box<Cancelled>>);

struct Tell {
    inbox: Arc<Inbox>,
    call: CallId,
}

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        self.inbox.push(Event::Cancelled(self.call, None));
    }
}

impl GivenUp {
    pub fn watch(inbox: &Arc<Inbox>, call: CallId, token: &CancelToken) -> Self {
        let inbox = inbox.clone();
        let waker = Waker::from(Arc::new(Tell { inbox, call }));
        let mut cancelled = Box::pin(token.cancelled());
        if let Poll::Ready(()) = cancelled.as_mut().poll(&mut Context::from_waker(&waker)) {
            waker.wake();
        }
        Self(cancelled)
    }
}

#[napi]
impl Link {
    /// Turns a call of the peer into a task; returns whether it is one.
    #[napi(catch_unwind)]
    pub fn begin_task(&mut self, call: u32) -> bool {
        let underway = self.calls.get_mut(call);
        underway.is_some_and(|underway| underway.begin_task(&self.inbox))
    }

    /// Whether a call has become a task.
    #[napi(catch_unwind)]
    pub fn is_task(&self, call: u32) -> bool {
        self.calls
            .get(call)
            .is_some_and(|call| call.task().is_some())
    }

    /// Waits for the result of a task at the server; each state that is seen is reported as progress. Returns
    /// the number under which the answer will come.
    #[napi(catch_unwind)]
    pub fn follow_task(&mut self, id: String) -> Result<u32> {
        let task = self.client()?.task(&id);
        let inbox = self.inbox.clone();
        Ok(self.wait(|number| {
            Box::pin(async move {
                let seen = |state: &str| inbox.push(Event::Progress(number, state.to_owned()));
                let answer = task.answer(seen).await?;
                Ok(answer.as_ref().result().unwrap_or("{}").to_owned())
            })
        }))
    }
}
