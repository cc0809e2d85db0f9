//! Tasks of the event loop, under way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use mcpbolt::connection::CallKey;
use mcpbolt::correlate::Cancelled;
use mcpbolt::server;
use pyo3::prelude::*;

use crate::hub::Event;
use crate::session::Session;

/// A task of the event loop.
pub struct Running {
    pub task: Py<PyAny>,
    /// Whether it is the kernel's.
    pub is_kernels: bool,
    /// Tells when its call is given up although it was answered: that it goes on as a task of the
    /// protocol.
    _watch: Option<Cancelled>,
}

impl Running {
    /// That of a call; `context` is there when it may go on as a task of the protocol.
    pub fn new(
        session: &Arc<Session>,
        key: CallKey,
        task: Py<PyAny>,
        context: Option<&server::Context>,
    ) -> Self {
        let _watch = context.and_then(|context| watch(session, key, context));
        Self {
            task,
            is_kernels: false,
            _watch,
        }
    }

    /// One of the kernel's, which is given up with its call and at no other time.
    pub fn of_kernel(task: Py<PyAny>) -> Self {
        Self {
            task,
            is_kernels: true,
            _watch: None,
        }
    }
}

/// What tells the event loop when that call is given up; `None` when it is by now, which is told.
fn watch(session: &Arc<Session>, key: CallKey, context: &server::Context) -> Option<Cancelled> {
    let mut cancelled = context.cancel_token().cancelled();
    let session = session.clone();
    let waker = Waker::from(Arc::new(GivenUp { session, key }));
    let polled = Pin::new(&mut cancelled).poll(&mut Context::from_waker(&waker));
    if polled.is_ready() {
        waker.wake();
        return None;
    }
    Some(cancelled)
}

/// Tells the event loop that a call is given up.
struct GivenUp {
    session: Arc<Session>,
    key: CallKey,
}

impl Wake for GivenUp {
    fn wake(self: Arc<Self>) {
        let hub = &self.session.hub;
        hub.inbox
            .push(Event::Cancelled(self.session.clone(), self.key));
    }
}
