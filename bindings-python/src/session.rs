//! One connection of a server: its calls on their way to Python, its answers on their way back.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

use mcpbolt::connection::{Batch, Call, CallKey, Handle, Replies};
use mcpbolt::correlate::Cancelled;
use mcpbolt::handler::{Executor, Operation};
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{self, Registry, ServerHost, TaskCall, View};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;

use crate::ask::Questions;
use crate::catalog::Shared;
use crate::inbox::Inbox;
use crate::target::{Lane, Target, Targets};
use crate::worker;
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
    pub context: Option<server::Context>,
}

impl Work {
    /// The task of the protocol that the call has become, if it has.
    pub fn task(&self) -> Option<&TaskCall> {
        let task = self.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }
}

/// A task of the event loop.
pub struct Running {
    pub task: Py<PyAny>,
    /// Tells when its call is given up although it was answered: that it goes on as a task of the
    /// protocol.
    pub _watch: Option<Cancelled>,
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

    /// What tells the event loop when that call is given up, also after it was answered; `None` when
    /// it is by now, which is told.
    pub fn watch(self: &Arc<Self>, context: &server::Context, key: CallKey) -> Option<Cancelled> {
        let mut cancelled = context.cancel_token().cancelled();
        let session = self.clone();
        let waker = Waker::from(Arc::new(GivenUp { session, key }));
        let polled = Pin::new(&mut cancelled).poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            waker.wake();
            return None;
        }
        Some(cancelled)
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

/// Tells the event loop that a call is given up.
struct GivenUp {
    session: Arc<Session>,
    key: CallKey,
}

impl Wake for GivenUp {
    fn wake(self: Arc<Self>) {
        self.session.inbox.push(Event::Cancelled(self.key));
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

/// Carries operations out by handing them to Python's threads. Runs on the engine's thread and
/// never takes the interpreter.
pub struct Bridge {
    session: Arc<Session>,
    view: View<Targets>,
}

impl Bridge {
    pub fn new(session: Arc<Session>) -> Self {
        let view = View::of(&session.catalog.live);
        Self { session, view }
    }

    /// The host of the session's connection.
    pub fn host(session: Arc<Session>) -> ServerHost<Self> {
        let (live, handle) = (session.catalog.live.clone(), session.handle.clone());
        ServerHost::live(live, handle, Self::new(session))
    }
}

impl Executor for Bridge {
    fn run(&mut self, batch: Batch) {
        let (session, offer) = (&self.session, self.view.offer());
        let (registry, targets) = (&offer.registry, &offer.handlers);
        let (mut work, mut events) = (Vec::new(), Vec::new());
        for call in batch.calls() {
            let Some(target) = targets.get(Operation::from_target(call.target)) else {
                continue;
            };
            let Some(one) = begin(session, registry, target, call) else {
                continue;
            };
            match one.target.lane {
                Lane::Worker => work.push(one),
                Lane::Inline | Lane::Task => events.push(Event::Call(one)),
            }
        }
        if !work.is_empty() {
            session.workers.push(work, || worker::spawn(session));
        }
        session.inbox.extend(events);
    }

    fn cancelled(&mut self, key: CallKey, _reason: Option<&str>) {
        if self.session.catalog.needs_loop {
            self.session.inbox.push(Event::Cancelled(key));
        }
    }

    fn initialized(&mut self) {
        self.session.inbox.push(Event::Initialized);
    }

    fn roots_changed(&mut self) {
        self.session.inbox.push(Event::RootsChanged);
    }
}

/// A call on its way to its function; `None` when it is answered here. One that the client wants
/// as a task of the protocol becomes it now (R-TSK-06).
fn begin(
    session: &Arc<Session>,
    registry: &Arc<Registry>,
    target: &Arc<Target>,
    call: Call,
) -> Option<Work> {
    let mut context = None;
    if let (Operation::CallTool(number), true) =
        (Operation::from_target(call.target), target.takes_tasks)
    {
        let made = session.context(&call)?.with_task(registry, number, &call);
        if made.task().is_some_and(|task| task.is_asked()) && !made.begin_task() {
            let mut replies = session.handle.replies();
            replies.error(&call.reply, ErrorKind::Overloaded, "too many tasks", None);
            return None;
        }
        context = Some(made);
    }
    let target = target.clone();
    Some(Work {
        call,
        target,
        context,
    })
}

/// However the engine's thread ends, the interpreter learns it.
impl Drop for Bridge {
    fn drop(&mut self) {
        self.session.inbox.push(Event::Ended);
    }
}
