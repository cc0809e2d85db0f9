//! A running server, as the Python package sees it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcpbolt::connection::{Connection, Framing};
use mcpbolt::io::{self, Metrics, Stdio, StdioOptions, serve_with, traced};
use mcpbolt::server::Hosting;
use mcpbolt::settings::{Seconds, ServeSettings};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::ask;
use crate::bridge::Bridge;
use crate::catalog::Catalog;
use crate::forked::Here;
use crate::hosted::Hosted;
use crate::hub::{Ending, Event, Hub, Interpreter};
use crate::job::Job;
use crate::panics::{self, caught};
use crate::session::{RunningTask, Session, Work};
use crate::settings::{read, seconds, unusable, wrong};
use crate::signal::Wake;
use crate::supervise;
use crate::target::Lane;
use crate::termination::Termination;
use crate::{call, cancellation, failures, introduction, kernel_calls, outcome, worker};

/// The most events handled in one turn of the event loop.
const DRAIN: usize = 256;
/// How long answers wait for those of other calls of the same turn.
const GATHER: Duration = Duration::from_micros(200);
/// How long the interpreter has to end after handlers were abandoned.
const LAST: Duration = Duration::from_millis(60);
/// How long the interpreter has to notice the end of a server on the network.
const WEDGED: Duration = Duration::from_secs(1);
/// How long the calls of connections that have ended may keep them, and how often that is looked at.
const LEAVING: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(1);
/// How long idle workers have to end.
const WORKERS_END: Duration = Duration::from_millis(50);

/// A running server, on one connection or many.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Serving {
    hub: Here<Arc<Hub>>,
    stop: Here<Box<dyn Fn() + Send + Sync>>,
    address: String,
    /// The counters of the network.
    metrics: Option<Arc<Metrics>>,
    ended: AtomicBool,
}

impl Serving {
    /// Makes the object for connections that other threads drive; `stop` shuts them down gracefully.
    pub fn new(hub: Arc<Hub>, address: String, stop: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            hub: Here::new(hub),
            address,
            metrics: None,
            stop: Here::new(Box::new(stop)),
            ended: AtomicBool::new(false),
        }
    }
}

/// Checks options, which are JSON, for an address.
#[pyfunction]
pub fn check_options(address: &str, options: &str) -> PyResult<()> {
    let address = address.parse().map_err(wrong)?;
    let options = read::<ServeSettings<Seconds>>(options)?.serve(&address);
    options.map(drop).map_err(unusable)
}

#[pymethods]
impl Serving {
    /// Takes stdin and stdout and serves on them. `own` says that the process runs only this server:
    /// signals end it, and so does the end of the input even if a handler never returns.
    #[staticmethod]
    fn stdio(
        py: Python<'_>,
        catalog: &Catalog,
        interpreter: Interpreter,
        grace: f64,
        own: bool,
    ) -> PyResult<Self> {
        let options = StdioOptions {
            grace: seconds(grace)?,
            signals: own,
            ..StdioOptions::default()
        };
        let config = traced(catalog.shared.config.clone())?;
        let stdio = Stdio::take(options)?;
        let stop = stdio.stop();
        let hub = Hub::new(py, catalog.shared.clone(), interpreter, worker::spawn)?;
        let serving = Self::new(hub.clone(), "stdio:".into(), move || stop.stop());
        std::thread::Builder::new()
            .name("mcpbolt".into())
            .spawn(move || {
                let connection = Connection::new(config, Instant::now());
                connection.set_wake(stdio.wake().clone());
                let host = Bridge::host(&hub, connection.handle());
                let mut machine = io::Hosted::new(connection, Framing::Detect, host);
                let ending = Ending(hub);
                let report = stdio.run(&mut machine);
                // What the connection kept comes before the end.
                drop(machine);
                drop(ending);
                if own && report.map_or(true, |report| report.unanswered > 0) {
                    std::thread::sleep(LAST);
                    std::process::exit(1);
                }
            })?;
        Ok(serving)
    }

    /// Listens at an address and serves on threads of the engine. `own` says that the process runs only
    /// this server: a signal noted there ends it, even if a handler never returns. `options` is JSON. If `worker` is set, this
    /// process serves as a worker of its supervisor.
    #[staticmethod]
    fn network(
        py: Python<'_>,
        catalog: &Catalog,
        interpreter: Interpreter,
        address: &str,
        options: &str,
        own: Option<Bound<'_, Termination>>,
        worker: bool,
    ) -> PyResult<Self> {
        let address = address.parse().map_err(wrong)?;
        let options = read::<ServeSettings<Seconds>>(options)?.serve(&address);
        let mut options = options.map_err(unusable)?;
        supervise::take_place(&mut options, worker)?;
        let hub = Hub::new(py, catalog.shared.clone(), interpreter, worker::spawn)?;
        let has_crew = options.threads.is_none();
        let host = |spawner| {
            if has_crew {
                let _ = hub.crew.set(spawner);
            }
            Arc::new(Hosted(hub.clone())) as Arc<dyn Hosting>
        };
        let serving = Arc::new(py.detach(|| serve_with(host, &address, options))?);
        let address = serving.address().to_string();
        let stopped = serving.clone();
        if let Some(own) = &own {
            let serving = serving.clone();
            own.get().watch(move || serving.stop())?;
        }
        let own = own.is_some();
        let mut made = Self::new(hub.clone(), address, move || stopped.stop());
        made.metrics = Some(serving.metrics().clone());
        std::thread::Builder::new()
            .name("mcpbolt".into())
            .spawn(move || {
                let ending = Ending(hub.clone());
                serving.wait();
                drop(ending);
                if own {
                    std::thread::sleep(WEDGED);
                    if !hub.is_left() {
                        std::process::exit(1);
                    }
                }
            })?;
        Ok(made)
    }

    /// Runs a server that is reached from within this process alone, as the end of a chain.
    #[staticmethod]
    fn within(py: Python<'_>, catalog: &Catalog, interpreter: Interpreter) -> PyResult<Self> {
        let hub = Hub::new(py, catalog.shared.clone(), interpreter, worker::spawn)?;
        let ending = Mutex::new(Some(Ending(hub.clone())));
        let stop = move || {
            let mut ending = ending.lock().unwrap_or_else(PoisonError::into_inner);
            drop(ending.take());
        };
        Ok(Self::new(hub, "within:".into(), stop))
    }

    /// The address that the server listens on.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// The counters of the server.
    fn counter(&self) -> Counter {
        Counter(self.metrics.clone())
    }

    /// The wakeup that is raised when [`drain`](Self::drain) has something to do.
    fn wake(&self) -> Wake {
        Wake(self.hub.inbox.signal().clone())
    }

    /// Handles the events for this thread. `False` when there are no connections any more.
    fn drain(&self, py: Python<'_>) -> PyResult<bool> {
        self.hub.check(py, "server")?;
        let mut gathered_since = Instant::now();
        self.hub.draining.store(true, Ordering::Release);
        for event in self.hub.inbox.take(DRAIN) {
            let owed = event.owed();
            if let Err(panic) = caught(|| self.take(py, event)) {
                match owed {
                    Some((session, to)) => {
                        let settled = &self.hub.settled;
                        settled.put(&session, |replies| panic.answer(replies, &to));
                    }
                    None => self.shown(py, Err(panic.exception(py))),
                }
            }
            if gathered_since.elapsed() > GATHER {
                self.hub.hand_over(&self.hub.settled);
                gathered_since = Instant::now();
            }
        }
        self.hub.draining.store(false, Ordering::Release);
        self.hub.hand_over(&self.hub.settled);
        Ok(!self.ended.load(Ordering::Acquire))
    }

    /// Whether tasks are running, which may outlive their connections.
    #[getter]
    fn has_tasks(&self) -> bool {
        self.hub.has_tasks()
    }

    /// Whether connections keep objects that have not been passed on yet.
    #[getter]
    fn keeps_some(&self) -> bool {
        self.hub.keeps_some()
    }

    /// Serves on this thread, without an event loop, until there are no connections any more.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while self.drain(py)? {
            py.detach(|| self.hub.inbox.signal().wait());
            py.check_signals()?;
        }
        // The last call of a connection may let go of it a little after its answer.
        let end = Instant::now() + LEAVING;
        while self.hub.keeps_some() && Instant::now() < end {
            py.detach(|| std::thread::sleep(TURN));
            self.drain(py)?;
        }
        Ok(())
    }

    /// Shuts down gracefully: calls in flight are answered within the grace period.
    fn stop(&self) {
        if !self.stop.is_forked() {
            (self.stop)();
        }
    }

    /// Lets the worker threads end.
    fn close(&self, py: Python<'_>) {
        if !self.hub.is_forked() {
            py.detach(|| self.hub.leave(WORKERS_END));
        }
    }
}

impl Serving {
    pub fn hub(&self) -> Arc<Hub> {
        self.hub.clone()
    }

    /// Handles one event.
    fn take(&self, py: Python<'_>, event: Event) {
        panics::point("event");
        let served = &self.hub.served;
        match event {
            Event::Call(work) => self.shown(py, start(py, work)),
            Event::Asked(number) => self.shown(py, ask::settle(py, &self.hub, number)),
            Event::Left(kept) => {
                self.hub.keeps_one_less();
                let leave = self.hub.interpreter.leave.bind(py);
                self.shown(py, leave.call1((kept,)).map(drop));
            }
            Event::Notified(object) => self.shown(py, object.notified(py)),
            Event::Cancelled(session, key) => self.shown(py, session.cancel_task(py, &key)),
            Event::Kernel(session, event) => {
                self.shown(py, kernel_calls::tell(py, &session, event));
            }
            Event::Progress(report, far) => {
                self.shown(py, report.bind(py).call1(far).map(drop));
            }
            Event::Initialized(session) => {
                self.shown(py, introduce(py, &session, &served.on_initialized));
            }
            Event::RootsChanged(session) => {
                self.shown(py, introduce(py, &session, &served.on_roots_changed));
            }
            Event::Ended => self.ended.store(true, Ordering::Release),
        }
    }

    /// Logs an error instead of raising it, so that one failed event does not stop the others of its batch.
    fn shown(&self, py: Python<'_>, outcome: PyResult<()>) {
        if let Err(error) = outcome {
            failures::report(
                py,
                &self.hub.served.failed,
                error,
                "a callback failed",
                None,
            );
        }
    }
}

/// The counters of an address. It does not keep the server alive.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Counter(Option<Arc<Metrics>>);

impl Counter {
    pub fn of(metrics: Arc<Metrics>) -> Self {
        Self(Some(metrics))
    }
}

#[pymethods]
impl Counter {
    /// The counters in the order of Python's `Counts`; all 0 if the server is not on the network.
    fn counts(&self) -> [u64; 11] {
        let counts = self.0.as_ref().map(|metrics| metrics.counts());
        let counts = counts.unwrap_or_default();
        [
            counts.open_connections,
            counts.connections,
            counts.websockets,
            counts.http_requests,
            counts.http_errors,
            counts.open_sessions,
            counts.sessions,
            counts.open_calls,
            counts.calls,
            counts.bytes_read,
            counts.bytes_written,
        ]
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Nobody drains the inbox any more.
        if !self.hub.is_forked() {
            self.hub.inbox.close();
        }
    }
}

fn start(py: Python<'_>, work: Work) -> PyResult<()> {
    let hub = work.session.hub.clone();
    if work.call.cancel.is_cancelled() {
        return Ok(());
    }
    if let (Lane::Task, Some(spawn)) = (work.target.lane, &hub.interpreter.spawn) {
        let arguments = match call::arguments(py, &work) {
            Ok(arguments) => arguments,
            Err(error) => {
                outcome::answer(py, &work, Err(error), &hub.settled);
                return Ok(());
            }
        };
        let key = work.call.reply.key();
        let session = work.session.clone();
        let context = work.context.clone();
        let (function, arguments) = match work.span() {
            None => (work.function().clone_ref(py), arguments),
            Some((telemetry, span)) => {
                let within = PyDict::new(py);
                within.set_item(intern!(py, "wire"), span)?;
                within.set_item(intern!(py, "function"), work.function())?;
                within.set_item(intern!(py, "arguments"), arguments)?;
                (telemetry.awaited.clone_ref(py), within)
            }
        };
        let job = Bound::new(py, Job::new(work))?;
        match spawn.bind(py).call1((&job, function, arguments)) {
            // `None` means that the call has ended already. A call cancelled by now is still kept: its
            // `Cancelled` event comes after this one.
            Ok(task) if task.is_none() => {}
            Ok(task) => {
                let cancellation =
                    context.and_then(|context| cancellation::watch(&session, key, &context));
                let running = RunningTask::of_call(task.unbind(), cancellation);
                session.keep_task(key, running);
            }
            Err(error) => job.get().end(py, Err(error))?,
        }
        return Ok(());
    }
    let outcome = call::invoke(py, &work);
    outcome::answer(py, &work, outcome, &hub.settled);
    Ok(())
}

/// Calls a callback of the program with a client's `ClientInfo`.
fn introduce(py: Python<'_>, session: &Session, hook: &Option<Py<PyAny>>) -> PyResult<()> {
    let Some(hook) = hook else { return Ok(()) };
    let client = introduction::of_connection(py, &session.handle)?;
    hook.bind(py).call1((client,)).map(drop)
}
