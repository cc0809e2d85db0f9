//! The pending operations of a client: started, polled when their waker was called, settled once.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use mcpbolt::error::RequestError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client_events::ClientEvent;
use crate::inbox::Inbox;
use crate::operation::{Operation, Outcome};
use crate::telemetry::{sending, sending_within};

/// An operation, and the future that waits for its outcome.
pub struct Pending {
    pub operation: Operation,
    pub future: Py<PyAny>,
    progress: Option<Py<PyAny>>,
    /// The context variables in which it began, if its requests are traced.
    context: Option<Arc<Py<PyAny>>>,
}

/// The pending operations of a client, by number.
pub struct Operations {
    inbox: Arc<Inbox<ClientEvent>>,
    pending: Mutex<HashMap<u64, Pending>>,
    next: AtomicU64,
    is_traced: bool,
}

/// The waker of an operation, or, with `None`, of the opening.
struct OperationWaker {
    inbox: Arc<Inbox<ClientEvent>>,
    number: Option<u64>,
}

impl Wake for OperationWaker {
    fn wake(self: Arc<Self>) {
        self.inbox.push(match self.number {
            Some(number) => ClientEvent::Done(number),
            None => ClientEvent::Opened,
        });
    }
}

impl Operations {
    pub fn new(inbox: Arc<Inbox<ClientEvent>>, is_traced: bool) -> Self {
        Self {
            inbox,
            pending: Mutex::default(),
            next: AtomicU64::new(0),
            is_traced,
        }
    }

    /// The waker of an operation, or, with `None`, of the opening.
    pub fn waker(&self, number: Option<u64>) -> Waker {
        let inbox = self.inbox.clone();
        Waker::from(Arc::new(OperationWaker { inbox, number }))
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for the next operation.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts an operation with a number from [`number`](Self::number).
    pub fn begin(
        &self,
        number: u64,
        mut operation: Operation,
        future: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) {
        // It may send its request now, and Python may be told of that, so the lock is free. The events that follow are read on
        // this thread.
        let waker = self.waker(Some(number));
        let first =
            self.sending(|| Pin::new(&mut operation).poll(&mut Context::from_waker(&waker)));
        let pending = Pending {
            operation,
            future,
            progress,
            context: self.context(),
        };
        self.pending().insert(number, pending);
        if let Poll::Ready(outcome) = first {
            // The outcome was there at once, but earlier progress reports may still be in the inbox.
            self.inbox
                .push(ClientEvent::Outcome(number, Box::new(outcome)));
        }
    }

    /// Runs `send`, which may send requests, of which Python is told if they are traced.
    pub fn sending<T>(&self, send: impl FnOnce() -> T) -> T {
        match self.is_traced {
            true => sending(send),
            false => send(),
        }
    }

    /// The context variables of this thread, if requests are traced.
    fn context(&self) -> Option<Arc<Py<PyAny>>> {
        if !self.is_traced {
            return None;
        }
        Python::attach(|py| {
            let variables = py.import("contextvars").ok()?;
            let copy = variables.call_method0("copy_context").ok()?;
            Some(Arc::new(copy.unbind()))
        })
    }

    /// The outcome, if it is there; otherwise [`ClientEvent::Done`] follows later.
    pub fn poll(&self, number: u64) -> Option<Result<Outcome, RequestError>> {
        if self.is_traced {
            return self.poll_traced(number);
        }
        let waker = self.waker(Some(number));
        let mut all = self.pending();
        let operation = &mut all.get_mut(&number)?.operation;
        match Pin::new(operation).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// The same, of an operation that may send further requests, of which Python is told while the lock is free.
    fn poll_traced(&self, number: u64) -> Option<Result<Outcome, RequestError>> {
        let waker = self.waker(Some(number));
        let mut pending = self.remove(number)?;
        let context = pending.context.clone();
        let operation = Pin::new(&mut pending.operation);
        let poll = || operation.poll(&mut Context::from_waker(&waker));
        // Put back even if it panics, so that its future is settled.
        let polled = catch_unwind(AssertUnwindSafe(|| match context {
            Some(context) => sending_within(context, poll),
            None => poll(),
        }));
        self.pending().insert(number, pending);
        match polled {
            Ok(Poll::Ready(outcome)) => Some(outcome),
            Ok(Poll::Pending) => None,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Removes an operation that is settled or cancelled.
    pub fn remove(&self, number: u64) -> Option<Pending> {
        self.pending().remove(&number)
    }

    /// The progress callback of an operation.
    pub fn progress(&self, py: Python<'_>, number: u64) -> Option<Py<PyAny>> {
        let pending = self.pending();
        let progress = pending.get(&number).and_then(|one| one.progress.as_ref());
        progress.map(|progress| progress.clone_ref(py))
    }

    /// Shows the garbage collector the Python objects held here.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Only threads attached to the interpreter hold the lock, so it is free while the collector runs.
        let Ok(pending) = self.pending.try_lock() else {
            return Ok(());
        };
        pending.values().try_for_each(|one| {
            visit.call(&one.future)?;
            visit.call(&one.progress)?;
            visit.call(one.context.as_deref())
        })
    }

    /// Drops all operations.
    pub fn clear(&self) {
        drop(std::mem::take(&mut *self.pending()));
    }
}
