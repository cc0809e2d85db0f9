//! The client's side of one connection, as the face sees it.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use mcpbolt::connection::{Config, Connection, Framing, Handle, Opening, RequestOptions, Response};
use mcpbolt::error::RequestError;
use mcpbolt::io::{ChildCommand, Hosted, Stderr, join, trace_to, traced};
use mcpbolt::json::reader;
use mcpbolt::mcp::{Method, Revision, Revisions, Side};
use mcpbolt::message::Message;
use mcpbolt::server::ServerHost;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::answer::{Answer, exception};
use crate::catalog::Catalog;
use crate::host::{ClientHost, News};
use crate::inbox::Inbox;
use crate::serving::{Serving, shown};
use crate::session::{Bridge, Interpreter, Session};
use crate::{read, write};

/// News handled in one turn of the event loop.
const DRAIN: usize = 1024;

/// A request that waits for its answer.
struct Waiting {
    response: Response,
    future: Py<PyAny>,
    progress: Option<Py<PyAny>>,
}

/// The client's side of one connection; a thread of the engine's drives it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Link {
    handle: Handle,
    inbox: Arc<Inbox<News>>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next: AtomicU64,
    opened: Py<PyAny>,
    ended: Py<PyAny>,
    on_log: Option<Py<PyAny>>,
    on_stderr: Option<Py<PyAny>>,
}

/// Whose answer is there.
struct Bell {
    inbox: Arc<Inbox<News>>,
    request: Option<u64>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.inbox.push(match self.request {
            Some(request) => News::Answered(request),
            None => News::Opened,
        });
    }
}

/// What a server said of itself, its capabilities, its instructions, and the revision.
type Peer<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<String>,
    Option<&'static str>,
);

/// How a client is set up, as the face describes it.
#[derive(FromPyObject)]
pub struct Setup {
    name: String,
    version: String,
    opening: String,
    revision: Option<String>,
    timeout: Option<f64>,
    trace: Option<PathBuf>,
    opened: Py<PyAny>,
    ended: Py<PyAny>,
    on_log: Option<Py<PyAny>>,
    on_stderr: Option<Py<PyAny>>,
}

impl Setup {
    fn config(&self) -> PyResult<Arc<Config>> {
        let mut config = Config::new(Side::Client, &self.name, &self.version);
        config.opening = match self.opening.as_str() {
            "handshake" => Opening::Handshake,
            "stateless" => Opening::Stateless,
            _ => Opening::Probe,
        };
        if let Some(name) = &self.revision {
            let revision = Revision::parse(name)
                .ok_or_else(|| PyValueError::new_err(format!("there is no revision {name:?}")))?;
            config.revisions = Revisions::only(revision);
        }
        if let Some(timeout) = self.timeout {
            config.limits.request_timeout = seconds(timeout)?;
        }
        config.trace = self.trace.as_deref().map(trace_to).transpose()?;
        Ok(traced(Arc::new(config))?)
    }

    fn link(self, handle: Handle, inbox: Arc<Inbox<News>>) -> Link {
        let link = Link {
            handle,
            inbox,
            waiting: Mutex::default(),
            next: AtomicU64::new(0),
            opened: self.opened,
            ended: self.ended,
            on_log: self.on_log,
            on_stderr: self.on_stderr,
        };
        link.look_for_opening();
        link
    }
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a timeout is a positive number of seconds"))
}

#[pymethods]
impl Link {
    /// To a server that is started as a child process.
    #[staticmethod]
    #[pyo3(signature = (setup, command, cwd, env, inherit))]
    fn child(
        setup: Setup,
        command: Vec<String>,
        cwd: Option<String>,
        env: Vec<(String, String)>,
        inherit: Vec<String>,
    ) -> PyResult<Self> {
        let config = setup.config()?;
        let inbox = Arc::new(Inbox::new()?);
        let mut words = command.into_iter();
        let program = words
            .next()
            .ok_or_else(|| PyValueError::new_err("the command is empty"))?;
        let mut child = ChildCommand::new(program).args(words);
        if let Some(directory) = cwd {
            child = child.cwd(directory);
        }
        child = inherit.into_iter().fold(child, ChildCommand::inherit_env);
        child = env
            .into_iter()
            .fold(child, |child, (name, value)| child.env(name, value));
        if setup.on_stderr.is_some() {
            let inbox = inbox.clone();
            let pass_on = move |line: &str| inbox.push(News::Stderr(line.into()));
            child = child.stderr(Stderr::Lines(Box::new(pass_on)));
        }
        let child = child.spawn()?;
        let mut connection = Connection::new(config, Instant::now());
        connection.set_wake(child.wake().clone());
        let link = setup.link(connection.handle(), inbox.clone());
        std::thread::Builder::new()
            .name("mcpbolt".into())
            .spawn(move || {
                let mut host = ClientHost(inbox);
                // How the child ended is in the connection's reason.
                let _ = child.run(&mut Hosted::new(&mut connection, Framing::Line, &mut host));
            })?;
        Ok(link)
    }

    /// To a server of this process; gives the server's side too.
    #[staticmethod]
    #[pyo3(signature = (setup, catalog, state, context, spawn = None, call_soon = None))]
    fn pair(
        py: Python<'_>,
        setup: Setup,
        catalog: &Catalog,
        state: Py<PyAny>,
        context: Py<PyAny>,
        spawn: Option<Py<PyAny>>,
        call_soon: Option<Py<PyAny>>,
    ) -> PyResult<(Self, Serving)> {
        let inbox = Arc::new(Inbox::new()?);
        let now = Instant::now();
        let near = Connection::new(setup.config()?, now);
        let far = Connection::new(traced(catalog.shared.config.clone())?, now);
        let interpreter = Interpreter {
            state,
            context,
            spawn,
            call_soon,
        };
        let session = Session::new(py, catalog.shared.clone(), far.handle(), interpreter)?;
        let link = setup.link(near.handle(), inbox.clone());
        let serving = Serving::new(session.clone(), None);
        let registry = catalog.shared.registry.clone();
        let server = ServerHost::new(registry, far.handle(), Bridge(session));
        join((near, ClientHost(inbox)), (far, server))?;
        Ok((link, serving))
    }

    /// Sends a request; `future` gets its answer. Gives a number to cancel it by.
    #[pyo3(signature = (method, params, future, timeout = None, progress = None))]
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        future: Py<PyAny>,
        timeout: Option<f64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let params = params.map(write::json).transpose()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut options = RequestOptions {
            timeout: timeout.map(seconds).transpose()?,
            ..Default::default()
        };
        if progress.is_some() {
            let inbox = self.inbox.clone();
            options.progress = Some(Arc::new(move |news| {
                let sentence = news.message.map(str::to_owned);
                inbox.push(News::Progress(number, news.progress, news.total, sentence));
            }));
        }
        let response = self
            .handle
            .request(method, params.as_deref(), options)
            .map_err(|error| exception(py, &error))?;
        self.waiting().insert(
            number,
            Waiting {
                response,
                future,
                progress,
            },
        );
        if let Some(outcome) = self.poll_answer(number) {
            // It was there at once; reports of progress before it may be yet to be told.
            self.inbox.push(News::Outcome(number, outcome));
        }
        Ok(number)
    }

    /// Gives up on a request: the server is told, a late answer is discarded.
    fn cancel(&self, number: u64, reason: Option<&str>) {
        let waiting = self.waiting().remove(&number);
        if let Some(waiting) = waiting {
            waiting.response.cancel(reason);
        }
    }

    /// The descriptor that is readable when [`drain`](Self::drain) has something to do.
    fn fileno(&self) -> i32 {
        self.inbox.signal().fd()
    }

    /// Hands what has come to who waits for it.
    fn drain(&self, py: Python<'_>) {
        for news in self.inbox.take(DRAIN) {
            match news {
                News::Opened => shown(py, self.settle_opening(py)),
                News::Answered(number) => {
                    if let Some(outcome) = self.poll_answer(number) {
                        self.settle_answer(py, number, outcome);
                    }
                }
                News::Outcome(number, outcome) => self.settle_answer(py, number, outcome),
                News::Progress(number, progress, total, message) => {
                    let report = {
                        let waiting = self.waiting();
                        let report = waiting.get(&number).and_then(|one| one.progress.as_ref());
                        report.map(|report| report.clone_ref(py))
                    };
                    tell(py, report.as_ref(), (progress, total, message));
                }
                News::Log(message) => {
                    let params = message.as_ref().params().unwrap_or("{}");
                    if let (Some(log), Ok(params)) = (&self.on_log, read::value(py, params)) {
                        tell(py, Some(log), (params,));
                    }
                }
                News::Stderr(line) => tell(py, self.on_stderr.as_ref(), (line,)),
                News::Ended => {
                    shown(py, settle(py, &self.ended, Ok(py.None().into_bound(py))));
                }
            }
        }
    }

    /// The server's name, version and more; its capabilities; its instructions; the revision.
    fn peer<'py>(&self, py: Python<'py>) -> PyResult<Peer<'py>> {
        let peer = self.handle.peer().cloned().unwrap_or_default();
        let object = |json: &str| read::value(py, if json.is_empty() { "{}" } else { json });
        let revision = self.handle.revision().map(|revision| revision.rules().name);
        let instructions = peer.instructions.map(String::from);
        Ok((
            object(&peer.implementation)?,
            object(&peer.capabilities)?,
            instructions,
            revision,
        ))
    }

    /// Whether the server has said that it offers this; a server that was not asked may.
    fn offers(&self, capability: &str) -> bool {
        self.handle.peer().is_none_or(|peer| {
            peer.capabilities.is_empty() || reader::find(&peer.capabilities, capability).is_some()
        })
    }

    /// What asks for a sign of life in this revision.
    fn ping_method(&self) -> &'static str {
        let defined = |revision| Method::Ping.defined(revision, Side::Client);
        match self.handle.revision().is_none_or(defined) {
            true => Method::Ping.name(),
            false => Method::Discover.name(),
        }
    }

    /// Answers nobody waited for, and frames that were no messages.
    fn stray_count(&self) -> u64 {
        self.handle.stray_count()
    }

    /// Closes the connection.
    fn close(&self) {
        self.handle.close();
    }
}

impl Link {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waker(&self, request: Option<u64>) -> Waker {
        Waker::from(Arc::new(Bell {
            inbox: self.inbox.clone(),
            request,
        }))
    }

    fn look_for_opening(&self) {
        let waker = self.waker(None);
        let mut opened = self.handle.opened();
        if Pin::new(&mut opened)
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            self.inbox.push(News::Opened);
        }
    }

    fn settle_opening(&self, py: Python<'_>) -> PyResult<()> {
        let mut opened = self.handle.opened();
        match Pin::new(&mut opened).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(_)) => settle(py, &self.opened, Ok(py.None().into_bound(py))),
            Poll::Ready(Err(error)) => settle(py, &self.opened, Err(exception(py, &error))),
            Poll::Pending => Ok(()),
        }
    }

    /// The answer if it is there; else it will be news.
    fn poll_answer(&self, number: u64) -> Option<Result<Message, RequestError>> {
        let waker = self.waker(Some(number));
        let mut all = self.waiting();
        let response = &mut all.get_mut(&number)?.response;
        match Pin::new(response).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Hands an answer over, unless its request was given up meanwhile.
    fn settle_answer(&self, py: Python<'_>, number: u64, outcome: Result<Message, RequestError>) {
        let waiting = self.waiting().remove(&number);
        let outcome = match outcome.and_then(complete) {
            Ok(message) => Bound::new(py, Answer(message)).map(Bound::into_any),
            Err(error) => Err(exception(py, &error)),
        };
        if let Some(waiting) = waiting {
            shown(py, settle(py, &waiting.future, outcome));
        }
    }
}

/// Refuses a result that is not complete (R-RPC-19).
fn complete(message: Message) -> Result<Message, RequestError> {
    match message.as_ref().result_type().as_deref() {
        None | Some("complete") => Ok(message),
        Some("input_required") => Err(RequestError::BadAnswer(
            "the server asks for input, which this client does not give",
        )),
        Some(_) => Err(RequestError::BadAnswer("an unknown resultType")),
    }
}

/// Gives a future its outcome, unless it has one: its task may have been cancelled meanwhile.
fn settle(py: Python<'_>, future: &Py<PyAny>, outcome: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
    let future = future.bind(py);
    if !future.call_method0("done")?.is_truthy()? {
        match outcome {
            Ok(value) => future.call_method1("set_result", (value,))?,
            Err(error) => future.call_method1("set_exception", (error.into_value(py),))?,
        };
    }
    Ok(())
}

/// Calls a function of the user's; what it raises is shown and goes no further.
fn tell<'py>(
    py: Python<'py>,
    function: Option<&Py<PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) {
    if let Some(Err(error)) = function.map(|function| function.bind(py).call1(arguments)) {
        error.display(py);
    }
}
