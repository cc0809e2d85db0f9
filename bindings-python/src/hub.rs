//! A server at work: what its connections share, be it one or thousands.
//!
//! ```text
//!   connection ─╮                    ╭─▶ workers: plain functions
//!   connection ─┼─▶ bridge (each) ─▶ hub
//!   connection ─╯                    ╰─▶ inbox: one wake for the thread of the event loop
//!        ▲                               │
//!        ╰──────── outboxes ◀────────────╯  flushed once a turn, per connection that has answers
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpbolt::connection::CallKey;
use mcpbolt::handler::Spawner;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;

use crate::ask::Questions;
use crate::catalog::Shared;
use crate::exchange::Bell;
use crate::inbox::Inbox;
use crate::kernel::News;
use crate::outbox::Outbox;
use crate::session::{Session, Work};
use crate::workers::Workers;

/// What the thread of the event loop is told.
#[derive(Debug)]
pub enum Event {
    /// Carry this out, at once or as a task.
    Call(Work),
    /// Cancel its task.
    Cancelled(Arc<Session>, CallKey),
    /// Something that a task asked has its answer.
    Asked(u64),
    /// Tell the kernel of a connection.
    Kernel(Arc<Session>, News),
    /// Something that the kernel asked makes progress: how far, of how much, and a sentence.
    Progress(Arc<Py<PyAny>>, (f64, Option<f64>, Option<String>)),
    /// A client has finished the handshake.
    Initialized(Arc<Session>),
    /// A client has other roots now.
    RootsChanged(Arc<Session>),
    /// There is more of an answer to be had.
    Rung(Arc<Bell>),
    /// No connection is left, and none will come.
    Ended,
}

/// What all connections of a server share. Engine threads hold it too: nothing here needs the
/// interpreter but what says so.
pub struct Hub {
    pub catalog: Arc<Shared>,
    pub inbox: Inbox<Event>,
    pub workers: Workers<Work>,
    /// Runs jobs right behind the turn of the network that they are spawned in, where there is
    /// one.
    pub crew: OnceLock<Arc<dyn Spawner>>,
    /// Answers of the workers.
    pub answered: Outbox,
    /// Answers of the event loop.
    pub settled: Outbox,
    /// What tasks have asked their clients.
    pub questions: Questions,
    pub interpreter: Interpreter,
    /// Tasks of the event loop under way.
    tasks: AtomicUsize,
    over: AtomicBool,
    left: AtomicBool,
    /// Calls [`Self::flush`].
    flush: PyOnceLock<Py<PyAny>>,
    flushing: AtomicBool,
    /// The event loop is being told of events; what is answered meanwhile is handed over behind them.
    pub draining: AtomicBool,
    /// The event loop is going to be told of events.
    announcing: AtomicBool,
}

/// The interpreter's part of it, as the face gives it.
#[derive(FromPyObject)]
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

impl Hub {
    /// Of a server that has no connections yet.
    pub fn new(
        py: Python<'_>,
        catalog: Arc<Shared>,
        interpreter: Interpreter,
    ) -> PyResult<Arc<Self>> {
        let hub = Arc::new(Self {
            catalog,
            inbox: Inbox::new()?,
            workers: Workers::default(),
            crew: OnceLock::new(),
            answered: Outbox::default(),
            settled: Outbox::default(),
            questions: Questions::default(),
            interpreter,
            tasks: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            left: AtomicBool::new(false),
            flush: PyOnceLock::new(),
            flushing: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            announcing: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&hub);
        let flush = PyCFunction::new_closure(py, None, None, move |_, _| {
            if let Some(hub) = weak.upgrade() {
                hub.flush();
            }
        })?;
        let _ = hub.flush.set(py, flush.into_any().unbind());
        Ok(hub)
    }

    /// Hands over the event loop's answers: now, or at the end of the loop's turn so that
    /// those of other tasks can go with them.
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

    /// The loop's turn is at its end.
    fn flush(&self) {
        self.flushing.store(false, Ordering::Release);
        self.hand_over(&self.settled);
    }

    /// Hands over answers: who drives the network is woken once for all of them.
    pub fn hand_over(&self, outbox: &Outbox) {
        match self.crew.get() {
            Some(crew) => crew.together(&mut || outbox.flush()),
            None => outbox.flush(),
        }
    }

    /// Tells the event loop of what has come from the network: once for all that comes in one turn.
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

    pub fn task_begins(&self) {
        self.tasks.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it was the last one.
    pub fn task_ends(&self) -> bool {
        self.tasks.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether tasks are under way, which may outlive their connections.
    pub fn has_tasks(&self) -> bool {
        self.tasks.load(Ordering::Acquire) > 0
    }

    /// The face has done with it.
    pub fn leave(&self, patience: Duration) {
        self.left.store(true, Ordering::Release);
        self.workers.close(patience);
    }

    /// Whether it has.
    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Whether no connection is left, and none will come.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

/// However the threads of the connections end, the interpreter learns it: held by what ends with
/// the last of them.
pub struct Ending(pub Arc<Hub>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.inbox.push(Event::Ended);
    }
}
