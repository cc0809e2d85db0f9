//! Running tasks of the event loop.

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

/// A running task of the event loop.
pub struct Running {
    pub task: Py<PyAny>,
    /// Whether it belongs to the kernel.
    pub is_kernels: bool,
    /// Reports the cancellation of a call that runs as an MCP task, and is therefore answered already.
    _watch: Option<Cancelled>,
}

impl Running {
    /// Makes the entry for a call; `context` is given if the call may run as an MCP task.
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

    /// Makes the entry for a task of the kernel, which is cancelled only together with its call.
    pub fn of_kernel(task: Py<PyAny>) -> Self {
        Self {
            task,
            is_kernels: true,
            _watch: None,
        }
    }
}

/// Has the event loop told when the call is cancelled; keep the returned future for that. If it is cancelled
/// already, tells it at once and returns `None`.
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

/// The waker that tells the event loop that a call is cancelled.
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
