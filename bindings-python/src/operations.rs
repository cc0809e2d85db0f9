//! The pending operations of a client: started, polled when their waker was called, settled once.

use std::collections::HashMap;
use std::future::Future;
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

/// An operation, and the future that waits for its outcome.
pub struct Pending {
    pub operation: Operation,
    pub future: Py<PyAny>,
    progress: Option<Py<PyAny>>,
}

/// The pending operations of a client, by number.
pub struct Operations {
    inbox: Arc<Inbox<ClientEvent>>,
    pending: Mutex<HashMap<u64, Pending>>,
    next: AtomicU64,
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
    pub fn new(inbox: Arc<Inbox<ClientEvent>>) -> Self {
        Self {
            inbox,
            pending: Mutex::default(),
            next: AtomicU64::new(0),
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
        operation: Operation,
        future: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) {
        let pending = Pending {
            operation,
            future,
            progress,
        };
        self.pending().insert(number, pending);
        if let Some(outcome) = self.poll(number) {
            // The outcome was there at once, but earlier progress reports may still be in the inbox.
            self.inbox
                .push(ClientEvent::Outcome(number, Box::new(outcome)));
        }
    }

    /// The outcome, if it is there; otherwise [`ClientEvent::Done`] follows later.
    pub fn poll(&self, number: u64) -> Option<Result<Outcome, RequestError>> {
        let waker = self.waker(Some(number));
        let mut all = self.pending();
        let operation = &mut all.get_mut(&number)?.operation;
        match Pin::new(operation).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
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
            visit.call(&one.progress)
        })
    }

    /// Drops all operations.
    pub fn clear(&self) {
        drop(std::mem::take(&mut *self.pending()));
    }
}
