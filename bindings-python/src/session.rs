//! One connection of a server: its calls on their way to Python, its answers on their way back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::connection::{Call, CallKey, Handle, Replies};
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{self, TaskCall};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;

use crate::ask::Questions;
use crate::catalog::Shared;
use crate::inbox::Inbox;
use crate::running::Running;
use crate::target::Target;
use crate::workers::Workers;

/// What the thread of the event loop is told.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are calls")]
pub enum Event {
    /// Carry this out, at once or as a task.
    Call(Work),
    /// Cancel its task.
    Cancelled(CallKey),
    /// Something that a task asked has its answer.
    Asked(u64),
    /// The client has finished the handshake.
    Initialized,
    /// The client has other roots now.
    RootsChanged,
    /// The connection has ended.
    Ended,
}

/// A call and the function for it.
#[derive(Debug)]
pub struct Work {
    pub call: Call,
    pub target: Arc<Target>,
    /// That of a call which may go on as a task of the protocol.
    pub context: Option<Box<server::Context>>,
}

impl Work {
    /// The task of the protocol that the call has become, if it has.
    pub fn task(&self) -> Option<&TaskCall> {
        let task = self.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }
}

/// One connection. Engine threads hold it too: nothing here needs the interpreter but what says
/// so.
pub struct Session {
    pub catalog: Arc<Shared>,
    pub handle: Handle,
    pub inbox: Inbox<Event>,
    pub workers: Workers<Work>,
    /// Answers of the workers.
    pub answered: Outbox,
    /// Answers of the event loop.
    pub settled: Outbox,
    /// Tasks under way.
    pub tasks: Mutex<HashMap<CallKey, Running>>,
    /// What tasks have asked the client.
    pub questions: Questions,
    pub interpreter: Interpreter,
    /// Calls [`Self::flush`].
    flush: PyOnceLock<Py<PyAny>>,
    flushing: AtomicBool,
}

/// The interpreter's part of a session.
pub struct Interpreter {
    /// What the lifespan gave.
    pub state: Py<PyAny>,
    /// The variables that every call starts with.
    pub context: Py<PyAny>,
    /// `spawn(job, function, arguments)` starts a task.
    pub spawn: Option<Py<PyAny>>,
    /// `call_soon(function)` of the event loop.
    pub call_soon: Option<Py<PyAny>>,
}

impl Session {
    /// Of the connection of `handle`.
    pub fn new(
        py: Python<'_>,
        catalog: Arc<Shared>,
        handle: Handle,
        interpreter: Interpreter,
    ) -> PyResult<Arc<Self>> {
        let session = Arc::new(Self {
            catalog,
            inbox: Inbox::new()?,
            workers: Workers::default(),
            answered: Outbox::new(&handle),
            settled: Outbox::new(&handle),
            handle,
            tasks: Mutex::default(),
            questions: Questions::default(),
            interpreter,
            flush: PyOnceLock::new(),
            flushing: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&session);
        let flush = PyCFunction::new_closure(py, None, None, move |_, _| {
            if let Some(session) = weak.upgrade() {
                session.flush();
            }
        })?;
        let _ = session.flush.set(py, flush.into_any().unbind());
        Ok(session)
    }

    /// The engine's context of a call. When what the client brings from an earlier round is wrong,
    /// there is none: the call is answered here.
    pub fn context(&self, call: &Call) -> Option<server::Context> {
        let seal = self.catalog.seal.as_ref();
        match server::Context::new(self.handle.clone(), call, seal) {
            Ok(context) => Some(context),
            Err(why) => {
                let mut replies = self.handle.replies();
                replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
                call.cancel.cancel(None);
                None
            }
        }
    }

    /// Hands over the event loop's answers: now, or at the end of the loop's turn so that
    /// those of other tasks can go with them.
    pub fn flush_soon(&self, py: Python<'_>, now: bool) -> PyResult<()> {
        match (&self.interpreter.call_soon, self.flush.get(py)) {
            (Some(call_soon), Some(flush)) if !now => {
                if !self.flushing.swap(true, Ordering::AcqRel) {
                    call_soon.bind(py).call1((flush,))?;
                }
            }
            _ => self.settled.flush(),
        }
        Ok(())
    }

    /// The loop's turn is at its end.
    fn flush(&self) {
        self.flushing.store(false, Ordering::Release);
        self.settled.flush();
    }

    /// The tasks under way.
    pub fn tasks(&self) -> MutexGuard<'_, HashMap<CallKey, Running>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the task of a call, if there is one.
    pub fn cancel_task(&self, py: Python<'_>, key: &CallKey) -> PyResult<()> {
        let running = self.tasks().remove(key);
        match running {
            Some(running) => running.task.bind(py).call_method0("cancel").map(drop),
            None => Ok(()),
        }
    }
}

/// Answers that are handed over together.
pub struct Outbox(Mutex<Replies>);

impl Outbox {
    fn new(handle: &Handle) -> Self {
        Self(Mutex::new(handle.replies()))
    }

    /// Adds an answer; gives the bytes that wait now.
    pub fn put(&self, write: impl FnOnce(&mut Replies)) -> usize {
        let mut replies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mut replies);
        replies.len()
    }

    /// Hands over what waits.
    pub fn flush(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .submit();
    }
}
