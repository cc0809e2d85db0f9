//! The shared state of all connections of a running server, be it one or thousands.
//!
//! ```text
//!   connection ─╮                    ╭─▶ workers: plain functions
//!   connection ─┼─▶ bridge (each) ─▶ hub
//!   connection ─╯                    ╰─▶ inbox: one wakeup for the event loop's thread
//!        ▲                               │
//!        ╰──────── outboxes ◀────────────╯  flushed once a turn, per connection that has answers
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpbolt::connection::{CallKey, ReplyTo};
use mcpbolt::handler::Spawner;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict};

use crate::inbox::Inbox;
use crate::kernel::KernelEvent;
use crate::outbox::Outbox;
use crate::questions::Questions;
use crate::served::Served;
use crate::session::{Session, Work};
use crate::worker::Duty;
use crate::workers::Workers;

/// An event for the event loop's thread.
#[derive(Debug)]
pub enum Event {
    /// Carry out this call, at once or as a task.
    Call(Work),
    /// Cancel the task of this call.
    Cancelled(Arc<Session>, CallKey),
    /// A question of a task may have its answer; its number.
    Asked(u64),
    /// Pass this event of a connection to the kernel.
    Kernel(Arc<Session>, KernelEvent),
    /// Progress of a request that the kernel sent: the progress, the total and a message.
    Progress(Arc<Py<PyAny>>, (f64, Option<f64>, Option<String>)),
    /// A client has finished the handshake.
    Initialized(Arc<Session>),
    /// The roots of a client have changed.
    RootsChanged(Arc<Session>),
    /// A connection has ended, and all its calls: pass on the object that it kept.
    Left(Py<PyAny>),
    /// Notify this object.
    Notified(Arc<dyn Notified>),
    /// No connection is left, and none will come.
    Ended,
}

/// An object that waits for a notification on the event loop's thread.
pub trait Notified: std::fmt::Debug + Send + Sync {
    /// Takes the notification.
    fn notified(&self, py: Python<'_>) -> PyResult<()>;
}

impl Event {
    /// The session and the reply address of the call in this event, which must be answered.
    pub fn owed(&self) -> Option<(Arc<Session>, ReplyTo)> {
        match self {
            Self::Call(work) => Some((work.session.clone(), work.call.reply.clone())),
            Self::Kernel(session, KernelEvent::Request(call)) => {
                Some((session.clone(), call.reply.clone()))
            }
            _ => None,
        }
    }
}

/// The shared state of all connections of a server. Engine threads hold it too: only methods that take a
/// `Python` token need the interpreter.
pub struct Hub {
    pub served: Arc<Served>,
    pub inbox: Inbox<Event>,
    pub workers: Workers<Duty>,
    /// Runs jobs on the thread that drives the network, right after its current turn. Unset without such
    /// a thread.
    pub crew: OnceLock<Arc<dyn Spawner>>,
    /// Answers of the workers.
    pub answered: Outbox,
    /// Answers of the event loop.
    pub settled: Outbox,
    /// The open questions of tasks to their clients.
    pub questions: Questions,
    pub interpreter: Interpreter,
    /// Starts a worker thread; returns whether it could.
    spawn: fn(&Arc<Self>) -> bool,
    /// The number of running tasks of the event loop.
    tasks: AtomicUsize,
    /// The number of connections that keep an object.
    keeping: AtomicUsize,
    over: AtomicBool,
    left: AtomicBool,
    /// Calls [`Self::flush`].
    flush: PyOnceLock<Py<PyAny>>,
    flushing: AtomicBool,
    /// Set while the event loop handles events; answers made meanwhile are handed over after them.
    pub draining: AtomicBool,
    /// Set while a wakeup of the event loop is scheduled.
    announcing: AtomicBool,
}

/// The Python `Interpreter`: the state and functions for running handlers.
#[derive(FromPyObject)]
pub struct Interpreter {
    /// The value that the lifespan yielded.
    pub state: Py<PyAny>,
    /// The values that the lifespans of mounted servers yielded, by [`Target::owner`](crate::target::Target::owner).
    pub states: Py<PyDict>,
    /// The context variables that every call starts with.
    pub context: Py<PyAny>,
    /// `spawn(job, function, arguments)` starts a task.
    pub spawn: Option<Py<PyAny>>,
    /// `call_soon(function)` of the event loop.
    pub call_soon: Option<Py<PyAny>>,
    /// Called on each thread that is about to run functions.
    pub greet: Option<Py<PyAny>>,
    /// `leave(object)` takes the object that a connection kept until its end.
    pub leave: Py<PyAny>,
}

impl Interpreter {
    /// The value that the lifespan of a server yielded: see [`Target::owner`](crate::target::Target::owner).
    pub fn state_of(&self, py: Python<'_>, owner: Option<usize>) -> PyResult<Py<PyAny>> {
        let Some(owner) = owner else {
            return Ok(self.state.clone_ref(py));
        };
        let state = self.states.bind(py).get_item(owner)?;
        Ok(state.map_or_else(|| py.None(), Bound::unbind))
    }
}

impl Hub {
    /// Makes the hub of a server that has no connections yet. `spawn` starts a worker thread.
    pub fn new(
        py: Python<'_>,
        served: Arc<Served>,
        interpreter: Interpreter,
        spawn: fn(&Arc<Self>) -> bool,
    ) -> PyResult<Arc<Self>> {
        let hub = Arc::new(Self {
            served,
            spawn,
            inbox: Inbox::new()?,
            workers: Workers::default(),
            crew: OnceLock::new(),
            answered: Outbox::default(),
            settled: Outbox::default(),
            questions: Questions::default(),
            interpreter,
            tasks: AtomicUsize::new(0),
            keeping: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            left: AtomicBool::new(false),
            flush: PyOnceLock::new(),
            flushing: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            announcing: AtomicBool::new(false),
        });
        if let Some(verifier) = &hub.served.verifier {
            verifier.serves(&hub);
        }
        let weak = Arc::downgrade(&hub);
        let flush = PyCFunction::new_closure(py, None, None, move |_, _| {
            if let Some(hub) = weak.upgrade() {
                hub.flush();
            }
        })?;
        let _ = hub.flush.set(py, flush.into_any().unbind());
        Ok(hub)
    }

    /// Hands over the event loop's answers: now, or at the end of the loop's turn together with those of
    /// other tasks.
    pub fn flush_soon(&self, py: Python<'_>, now: bool) -> PyResult<()> {
        if self.draining.load(Ordering::Acquire) {
            return Ok(());
        }
        match (&self.interpreter.call_soon, self.flush.get(py)) {
            (Some(call_soon), Some(flush)) if !now => {
                if !self.flushing.swap(true, Ordering::AcqRel) {
                    call_soon.bind(py).call1((flush,))?;
                }
            }
            _ => self.hand_over(&self.settled),
        }
        Ok(())
    }

    /// Called at the end of the loop's turn.
    fn flush(&self) {
        self.flushing.store(false, Ordering::Release);
        self.hand_over(&self.settled);
    }

    /// Hands over answers, with one wakeup of the network's thread for all of them.
    pub fn hand_over(&self, outbox: &Outbox) {
        match self.crew.get() {
            Some(crew) => crew.together(&mut || outbox.flush()),
            None => outbox.flush(),
        }
    }

    /// Passes events from the network to the event loop, with one wakeup for all events of one turn.
    pub fn announce(self: &Arc<Self>, events: Vec<Event>) {
        let Some(crew) = self.crew.get() else {
            return self.inbox.extend(events);
        };
        if self.inbox.add(events) && !self.announcing.swap(true, Ordering::AcqRel) {
            let hub = self.clone();
            crew.spawn(Box::pin(async move {
                hub.announcing.store(false, Ordering::Release);
                hub.inbox.signal().raise();
            }));
        }
    }

    /// Starts one more worker thread; returns whether it could.
    pub fn spawn_worker(self: &Arc<Self>) -> bool {
        (self.spawn)(self)
    }

    pub fn task_begins(&self) {
        self.tasks.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a task has ended; returns whether it was the last one.
    pub fn task_ends(&self) -> bool {
        self.tasks.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that a connection keeps an object.
    pub fn keeps_one(&self) {
        self.keeping.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that the object of a connection was passed on.
    pub fn keeps_one_less(&self) {
        self.keeping.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether connections keep objects.
    pub fn keeps_some(&self) -> bool {
        self.keeping.load(Ordering::Acquire) > 0
    }

    /// Whether tasks are running, which may outlive their connections.
    pub fn has_tasks(&self) -> bool {
        self.tasks.load(Ordering::Acquire) > 0
    }

    /// Called when the Python package is done with the server. Waits at most for `patience` until the
    /// worker threads have ended.
    pub fn leave(&self, patience: Duration) {
        self.left.store(true, Ordering::Release);
        self.workers.close(patience);
    }

    /// Whether [`leave`](Self::leave) was called.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Whether no connection is left, and none will come.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// Reports [`Event::Ended`] when dropped. Its holder ends right after the last connection, so that the event
/// loop learns of the end even if a thread panics.
pub struct Ending(pub Arc<Hub>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.inbox.push(Event::Ended);
    }
}
