//! A server at work on one connection, as the face sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mcpbolt::connection::Connection;
use mcpbolt::io::{Stdio, StdioOptions, Stop, traced};
use pyo3::prelude::*;

use crate::ask;
use crate::bridge::Bridge;
use crate::catalog::Catalog;
use crate::context::Job;
use crate::future::tell;
use crate::running::Running;
use crate::session::{Event, Interpreter, Session, Work};
use crate::target::Lane;
use crate::{call, introduction, outcome};

/// Calls started in one turn of the event loop before anything else there has its turn.
const DRAIN: usize = 256;
/// How long the interpreter has to end after handlers were given up.
const LAST: Duration = Duration::from_millis(60);
/// How long workers that are idle have to end.
const WORKERS_END: Duration = Duration::from_millis(50);

/// A server at work on one connection.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Serving {
    session: Arc<Session>,
    stop: Option<Stop>,
    ended: AtomicBool,
}

impl Serving {
    /// On a connection that another thread drives.
    pub fn new(session: Arc<Session>, stop: Option<Stop>) -> Self {
        Self {
            session,
            stop,
            ended: AtomicBool::new(false),
        }
    }
}

#[pymethods]
impl Serving {
    /// Takes stdin and stdout and serves on them. `own` says that the process is there for this
    /// alone: signals end it, and so does the end of the wire when a handler is wedged.
    #[staticmethod]
    #[pyo3(signature = (catalog, grace, own, state, context, spawn = None, call_soon = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "called from one place in the face"
    )]
    fn stdio(
        py: Python<'_>,
        catalog: &Catalog,
        grace: f64,
        own: bool,
        state: Py<PyAny>,
        context: Py<PyAny>,
        spawn: Option<Py<PyAny>>,
        call_soon: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let options = StdioOptions {
            grace: Duration::try_from_secs_f64(grace).unwrap_or_default(),
            signals: own,
            ..StdioOptions::default()
        };
        let interpreter = Interpreter {
            state,
            context,
            spawn,
            call_soon,
        };
        let config = traced(catalog.shared.config.clone())?;
        let stdio = Stdio::take(options)?;
        let mut connection = Connection::new(config, Instant::now());
        let handle = connection.handle();
        let session = Session::new(py, catalog.shared.clone(), handle, interpreter)?;
        let serving = Self::new(session.clone(), Some(stdio.stop()));
        std::thread::Builder::new()
            .name("mcpbolt".into())
            .spawn(move || {
                let mut host = Bridge::host(session);
                let report = stdio.drive(&mut connection, &mut host);
                drop(host);
                if own && report.map_or(true, |report| report.unanswered > 0) {
                    std::thread::sleep(LAST);
                    std::process::exit(1);
                }
            })?;
        Ok(serving)
    }

    /// The descriptor that is readable when [`drain`](Self::drain) has something to do.
    fn fileno(&self) -> i32 {
        self.session.inbox.signal().fd()
    }

    /// Starts what has come for this thread. `False` when the connection has ended.
    fn drain(&self, py: Python<'_>) -> PyResult<bool> {
        let catalog = &self.session.catalog;
        for event in self.session.inbox.take(DRAIN) {
            match event {
                Event::Call(work) => shown(py, self.start(py, work)),
                Event::Asked(number) => shown(py, ask::settle(py, &self.session, number)),
                Event::Cancelled(key) => shown(py, self.session.cancel_task(py, &key)),
                Event::Initialized => self.introduce(py, &catalog.on_initialized),
                Event::RootsChanged => self.introduce(py, &catalog.on_roots_changed),
                Event::Ended => self.ended.store(true, Ordering::Release),
            }
        }
        self.session.settled.flush();
        Ok(!self.ended.load(Ordering::Acquire))
    }

    /// Whether tasks are under way, which may outlive the connection.
    #[getter]
    fn has_tasks(&self) -> bool {
        !self.session.tasks().is_empty()
    }

    /// Serves on this thread, without an event loop, until the connection has ended.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while self.drain(py)? {
            py.detach(|| self.session.inbox.signal().wait());
            py.check_signals()?;
        }
        Ok(())
    }

    /// Ends it in good order: what is in flight is answered within the grace period.
    fn stop(&self) {
        match &self.stop {
            Some(stop) => stop.stop(),
            None => self.session.handle.close(),
        }
    }

    /// Lets the worker threads end.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.session.workers.close(WORKERS_END));
    }
}

impl Serving {
    fn start(&self, py: Python<'_>, work: Work) -> PyResult<()> {
        let session = &self.session;
        if work.call.cancel.is_cancelled() {
            return Ok(());
        }
        if let (Lane::Task, Some(spawn)) = (work.target.lane, &session.interpreter.spawn) {
            let arguments = match call::arguments(py, session, &work) {
                Ok(arguments) => arguments,
                Err(error) => {
                    outcome::answer(py, session, &work, Err(error), &session.settled);
                    return Ok(());
                }
            };
            let key = work.call.reply.key();
            let (target, context) = (work.target.clone(), work.context.clone());
            let job = Bound::new(py, Job::new(session.clone(), work))?;
            let function = target.function.bind(py);
            match spawn.bind(py).call1((&job, function, arguments)) {
                // Where tasks start eagerly it may have ended already. One that is cancelled by
                // now is kept: the event that says so comes behind this one.
                Ok(task) if is_done(&task) => {}
                Ok(task) => {
                    let running = Running::new(session, key, task.unbind(), context.as_deref());
                    session.tasks().insert(key, running);
                }
                Err(error) => job.get().end(py, Err(error))?,
            }
            return Ok(());
        }
        let outcome = call::invoke(py, session, &work);
        outcome::answer(py, session, &work, outcome, &session.settled);
        Ok(())
    }

    /// Tells a function of the user's about the client.
    fn introduce(&self, py: Python<'_>, hook: &Option<Py<PyAny>>) {
        if hook.is_some() {
            match introduction::of_connection(py, &self.session.handle) {
                Ok(client) => tell(py, hook.as_ref(), (client,)),
                Err(error) => error.display(py),
            }
        }
    }
}

fn is_done(task: &Bound<'_, PyAny>) -> bool {
    let done = task.call_method0("done");
    done.is_ok_and(|done| done.is_truthy().unwrap_or(false))
}

/// One call's misfortune must not take the others of its batch along.
pub fn shown(py: Python<'_>, outcome: PyResult<()>) {
    if let Err(error) = outcome {
        error.display(py);
    }
}
