//! Calls of tools that wait for the program's approval: each crosses to the event loop, and the verdict comes back.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use mcpbolt::chain::{Approval, ChainRequest};
use mcpbolt::json::reader;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use super::handoffs::Event;
use crate::inbox::Inbox;
use crate::read;

/// `Ok`, or why the call is refused.
type Verdict = Result<(), String>;

/// Why a call is refused that nobody decides about any more.
const ENDED: &str = "the program has ended";

/// The calls that wait for a verdict.
#[derive(Default)]
pub struct Approvals {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Verdict>>>,
    next: AtomicU64,
}

/// A call that needs approval.
pub struct Needed {
    /// The number of the `Approval`.
    pub approval: usize,
    /// The number of the call.
    pub number: u64,
    request: ChainRequest,
    verdict: oneshot::Sender<Verdict>,
}

impl Approvals {
    /// Middleware whose calls are put to the program by way of `inbox`, as those of the `Approval` of that number.
    pub fn rule(
        self: &Arc<Self>,
        inbox: Arc<Inbox<Event>>,
        needs: impl Fn(&str) -> bool + Send + Sync + 'static,
        approval: usize,
    ) -> Approval {
        let this = self.clone();
        Approval::new(needs, move |request| {
            let (sender, verdict) = oneshot::channel();
            let number = this.next.fetch_add(1, Ordering::Relaxed);
            inbox.push(Event::Needed(Needed {
                approval,
                number,
                request,
                verdict: sender,
            }));
            Waiting {
                verdict,
                number,
                inbox: inbox.clone(),
            }
        })
    }

    /// Passes a call to `ask`, with the tool, the arguments, the client and the revision.
    pub fn take(&self, py: Python<'_>, needed: Needed, ask: &Py<PyAny>) -> PyResult<()> {
        let Needed {
            approval,
            number,
            request,
            verdict,
        } = needed;
        self.waiting().insert(number, verdict);
        let arguments = reader::find(request.params(), "arguments").unwrap_or("{}");
        let tool = request.target().map(|tool| tool.into_owned());
        let principal = request.principal().map(|who| who.as_str().to_owned());
        let about = (
            tool,
            read::value(py, arguments)?,
            principal,
            request.revision().name(),
        );
        ask.call1(py, (approval, number, about)).map(drop)
    }

    /// Gives a verdict: `why` the call is refused, if it is.
    pub fn decide(&self, number: u64, why: Option<String>) {
        let waiting = self.waiting().remove(&number);
        if let Some(waiting) = waiting {
            // Fails only if the call was cancelled.
            let _ = waiting.send(why.map_or(Ok(()), Err));
        }
    }

    /// Refuses what waits.
    pub fn close(&self) {
        let all = std::mem::take(&mut *self.waiting());
        drop(all);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Verdict>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The verdict to come. If it is dropped before, that is told.
struct Waiting {
    verdict: oneshot::Receiver<Verdict>,
    number: u64,
    inbox: Arc<Inbox<Event>>,
}

impl Future for Waiting {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Verdict> {
        let verdict = Pin::new(&mut self.verdict).poll(cx);
        verdict.map(|verdict| verdict.unwrap_or_else(|_| Err(ENDED.to_owned())))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.verdict.is_terminated() {
            self.inbox.push(Event::NotNeeded(self.number));
        }
    }
}
