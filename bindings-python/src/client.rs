//! The client's side of one connection, as the face sees it.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, ClientHost, Interests, Listening, Prepared};
use mcpbolt::connection::{Config, Connection, Framing, Handle, Opening, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::io::{ChildCommand, Hosted, Stderr, Workers, WorkersConfig, join, trace_to, traced};
use mcpbolt::json::reader;
use mcpbolt::mcp::{LogLevel, Method, Revision, Revisions, Root, Side};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::answer::{Answer, exception};
use crate::asked::{Asked, Offers, hand_on};
use crate::catalog::Catalog;
use crate::future::tell;
use crate::inbox::Inbox;
use crate::news::{Ending, News};
use crate::serving::{Serving, shown};
use crate::session::{Bridge, Interpreter, Session};
use crate::work::{Made, Work};
use crate::{future, read, write};

/// News handled in one turn of the event loop.
const DRAIN: usize = 1024;

/// A request that waits for its answer.
struct Waiting {
    work: Work,
    future: Py<PyAny>,
    progress: Option<Py<PyAny>>,
}

/// The client's side of one connection; a thread of the engine's drives it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Link {
    client: Client,
    inbox: Arc<Inbox<News>>,
    asked: Arc<Asked>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    listening: Mutex<HashMap<u64, Listening>>,
    next: AtomicU64,
    ears: Ears,
}

/// Whom the face wants told.
struct Ears {
    opened: Py<PyAny>,
    ended: Py<PyAny>,
    on_notice: Py<PyAny>,
    on_asked: Py<PyAny>,
    on_given_up: Py<PyAny>,
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
            Some(request) => News::Done(request),
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
    on_notice: Py<PyAny>,
    on_asked: Py<PyAny>,
    on_given_up: Py<PyAny>,
    on_stderr: Option<Py<PyAny>>,
    sampling: bool,
    sampling_tools: bool,
    forms: bool,
    pages: bool,
    roots: Option<Vec<(String, Option<String>)>>,
}

/// A client that waits for its connection.
struct Begun {
    config: Arc<Config>,
    prepared: Prepared,
    inbox: Arc<Inbox<News>>,
    asked: Arc<Asked>,
    ears: Ears,
}

impl Setup {
    fn begin(self) -> PyResult<Begun> {
        let inbox = Arc::new(Inbox::new()?);
        let asked = Arc::new(Asked::new(inbox.clone()));
        let offers = Offers {
            sampling: self.sampling,
            sampling_tools: self.sampling_tools,
            forms: self.forms,
            pages: self.pages,
        };
        let ending = Ending(inbox.clone());
        let builder =
            Client::builder(&self.name, &self.version).on_raw_notice(move |method, params| {
                let params = params.unwrap_or("{}").to_owned();
                ending.0.push(News::Notice(method.to_owned(), params));
            });
        let mut builder = hand_on(builder, &offers, &asked);
        builder = builder.opening(match self.opening.as_str() {
            "handshake" => Opening::Handshake,
            "stateless" => Opening::Stateless,
            _ => Opening::Probe,
        });
        if let Some(name) = &self.revision {
            let revision = Revision::parse(name)
                .ok_or_else(|| PyValueError::new_err(format!("there is no revision {name:?}")))?;
            builder = builder.revisions(Revisions::only(revision));
        }
        if let Some(roots) = self.roots {
            builder = builder.roots(roots.into_iter().map(root));
        }
        let (mut config, prepared) = builder.prepare().map_err(value_error)?;
        if let Some(timeout) = self.timeout {
            config.limits.request_timeout = seconds(timeout)?;
        }
        config.trace = self.trace.as_deref().map(trace_to).transpose()?;
        let ears = Ears {
            opened: self.opened,
            ended: self.ended,
            on_notice: self.on_notice,
            on_asked: self.on_asked,
            on_given_up: self.on_given_up,
            on_stderr: self.on_stderr,
        };
        Ok(Begun {
            config: traced(Arc::new(config))?,
            prepared,
            inbox,
            asked,
            ears,
        })
    }
}

impl Begun {
    /// The face's end of a connection, and the host for it.
    fn link(self, handle: Handle) -> (Link, ClientHost) {
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        let (client, host) = self.prepared.connect(handle, workers);
        let link = Link {
            client,
            inbox: self.inbox,
            asked: self.asked,
            waiting: Mutex::default(),
            listening: Mutex::default(),
            next: AtomicU64::new(0),
            ears: self.ears,
        };
        link.look_for_opening();
        (link, host)
    }
}

fn root((uri, name): (String, Option<String>)) -> Root {
    match name {
        Some(name) => Root::new(uri).name(name),
        None => Root::new(uri),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as it is mapped")]
fn value_error(error: RequestError) -> PyErr {
    PyValueError::new_err(error.to_string())
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
        let begun = setup.begin()?;
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
        if begun.ears.on_stderr.is_some() {
            let inbox = begun.inbox.clone();
            let pass_on = move |line: &str| inbox.push(News::Stderr(line.into()));
            child = child.stderr(Stderr::Lines(Box::new(pass_on)));
        }
        let child = child.spawn()?;
        let mut connection = Connection::new(begun.config.clone(), Instant::now());
        connection.set_wake(child.wake().clone());
        let (link, mut host) = begun.link(connection.handle());
        std::thread::Builder::new()
            .name("mcpbolt".into())
            .spawn(move || {
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
        let begun = setup.begin()?;
        let now = Instant::now();
        let near = Connection::new(begun.config.clone(), now);
        let far = Connection::new(traced(catalog.shared.config.clone())?, now);
        let interpreter = Interpreter {
            state,
            context,
            spawn,
            call_soon,
        };
        let session = Session::new(py, catalog.shared.clone(), far.handle(), interpreter)?;
        let (link, host) = begun.link(near.handle());
        let serving = Serving::new(session.clone(), None);
        join((near, host), (far, Bridge::host(session)))?;
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
        let asking = self
            .client
            .request(method, params.as_deref(), options)
            .map_err(|error| exception(py, &error))?;
        self.begin(number, Work::Asking(asking), future, progress);
        Ok(number)
    }

    /// Asks to be told when a resource changes, or no longer; `future` gets `None`.
    fn subscribe(&self, uri: String, wanted: bool, future: Py<PyAny>) -> u64 {
        let client = self.client.clone();
        self.start(future, async move {
            match wanted {
                true => client.subscribe(&uri).await,
                false => client.unsubscribe(&uri).await,
            }
        })
    }

    /// Asks to be told of changes; `future` gets a number to end that by.
    fn listen(
        &self,
        tools: bool,
        prompts: bool,
        resources: bool,
        uris: Vec<String>,
        future: Py<PyAny>,
    ) -> u64 {
        let client = self.client.clone();
        let interests = Interests {
            tools,
            prompts,
            resources,
            uris,
        };
        self.start(future, async move { client.listen(interests).await })
    }

    /// Asks to be told no more.
    fn unlisten(&self, number: u64) {
        let gone = lock(&self.listening).remove(&number);
        drop(gone);
    }

    /// Sets how severe a log message must be; `future` gets `None`.
    fn set_log_level(&self, level: &str, future: Py<PyAny>) -> PyResult<u64> {
        let level = LogLevel::parse(level)
            .ok_or_else(|| PyValueError::new_err(format!("there is no level {level:?}")))?;
        let client = self.client.clone();
        Ok(self.start(future, async move { client.set_log_level(level).await }))
    }

    /// Replaces the roots that the server may see.
    fn set_roots(&self, roots: Vec<(String, Option<String>)>) -> PyResult<()> {
        let set = self.client.set_roots(roots.into_iter().map(root));
        set.map_err(value_error)
    }

    /// Answers what the server asked.
    fn answer(&self, number: u64, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        self.asked.answer(number, Ok(write::json(answer)?));
        Ok(())
    }

    /// Refuses it, with a sentence for the server.
    fn refuse(&self, number: u64, why: &str) {
        self.asked.answer(number, Err(HandlerError::new(why)));
    }

    /// Gives up on a request: the server is told, a late answer is discarded.
    fn cancel(&self, number: u64, reason: Option<&str>) {
        let waiting = lock(&self.waiting).remove(&number);
        if let Some(waiting) = waiting {
            waiting.work.cancel(reason);
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
                News::Done(number) => {
                    if let Some(outcome) = self.poll(number) {
                        self.settle(py, number, outcome);
                    }
                }
                News::Outcome(number, outcome) => self.settle(py, number, *outcome),
                News::Progress(number, progress, total, message) => {
                    let report = {
                        let waiting = lock(&self.waiting);
                        let report = waiting.get(&number).and_then(|one| one.progress.as_ref());
                        report.map(|report| report.clone_ref(py))
                    };
                    tell(py, report.as_ref(), (progress, total, message));
                }
                News::Notice(method, params) => {
                    if let Ok(params) = read::value(py, &params) {
                        tell(py, Some(&self.ears.on_notice), (method, params));
                    }
                }
                News::Asked(number, what, params) => match read::value(py, &params) {
                    Ok(params) => tell(py, Some(&self.ears.on_asked), (number, what, params)),
                    Err(error) => self.refuse(number, &error.to_string()),
                },
                News::GivenUp(number) => tell(py, Some(&self.ears.on_given_up), (number,)),
                News::Stderr(line) => tell(py, self.ears.on_stderr.as_ref(), (line,)),
                News::Ended => {
                    shown(
                        py,
                        future::settle(py, &self.ears.ended, Ok(py.None().into_bound(py))),
                    );
                }
            }
        }
    }

    /// The server's name, version and more; its capabilities; its instructions; the revision.
    fn peer<'py>(&self, py: Python<'py>) -> PyResult<Peer<'py>> {
        let peer = self.client.handle().peer().cloned().unwrap_or_default();
        let object = |json: &str| read::value(py, if json.is_empty() { "{}" } else { json });
        let revision = self
            .client
            .handle()
            .revision()
            .map(|revision| revision.rules().name);
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
        self.client.handle().peer().is_none_or(|peer| {
            peer.capabilities.is_empty() || reader::find(&peer.capabilities, capability).is_some()
        })
    }

    /// Whether the revision in force has this.
    fn knows(&self, rule: &str) -> bool {
        let rules = self.client.revision().map(|revision| revision.rules());
        rules.is_some_and(|rules| match rule {
            "completions" => rules.completions,
            _ => rules.completion_context,
        })
    }

    /// What asks for a sign of life in this revision.
    fn ping_method(&self) -> &'static str {
        let defined = |revision| Method::Ping.defined(revision, Side::Client);
        match self.client.handle().revision().is_none_or(defined) {
            true => Method::Ping.name(),
            false => Method::Discover.name(),
        }
    }

    /// Answers nobody waited for, and frames that were no messages.
    fn stray_count(&self) -> u64 {
        self.client.handle().stray_count()
    }

    /// Closes the connection.
    fn close(&self) {
        self.client.handle().close();
    }
}

impl Link {
    fn waker(&self, request: Option<u64>) -> Waker {
        Waker::from(Arc::new(Bell {
            inbox: self.inbox.clone(),
            request,
        }))
    }

    fn look_for_opening(&self) {
        let waker = self.waker(None);
        let mut opened = self.client.handle().opened();
        if Pin::new(&mut opened)
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            self.inbox.push(News::Opened);
        }
    }

    fn settle_opening(&self, py: Python<'_>) -> PyResult<()> {
        let mut opened = self.client.handle().opened();
        match Pin::new(&mut opened).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(_)) => {
                future::settle(py, &self.ears.opened, Ok(py.None().into_bound(py)))
            }
            Poll::Ready(Err(error)) => {
                future::settle(py, &self.ears.opened, Err(exception(py, &error)))
            }
            Poll::Pending => Ok(()),
        }
    }

    /// Begins what is no request.
    fn start<T: Into<Made>>(
        &self,
        future: Py<PyAny>,
        work: impl Future<Output = Result<T, RequestError>> + Send + 'static,
    ) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.begin(number, Work::other(work), future, None);
        number
    }

    fn begin(&self, number: u64, work: Work, future: Py<PyAny>, progress: Option<Py<PyAny>>) {
        let waiting = Waiting {
            work,
            future,
            progress,
        };
        lock(&self.waiting).insert(number, waiting);
        if let Some(outcome) = self.poll(number) {
            // It was there at once; reports of progress before it may be yet to be told.
            self.inbox.push(News::Outcome(number, Box::new(outcome)));
        }
    }

    /// The outcome if it is there; else it will be news.
    fn poll(&self, number: u64) -> Option<Result<Made, RequestError>> {
        let waker = self.waker(Some(number));
        let mut all = lock(&self.waiting);
        let work = &mut all.get_mut(&number)?.work;
        match Pin::new(work).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Hands an outcome over, unless it was given up meanwhile.
    fn settle(&self, py: Python<'_>, number: u64, outcome: Result<Made, RequestError>) {
        let Some(waiting) = lock(&self.waiting).remove(&number) else {
            return;
        };
        let outcome = match outcome {
            Ok(Made::Answer(message)) => Bound::new(py, Answer(message)).map(Bound::into_any),
            Ok(Made::Nothing) => Ok(py.None().into_bound(py)),
            Ok(Made::Listening(listening)) => {
                lock(&self.listening).insert(number, listening);
                number.into_bound_py_any(py)
            }
            Err(error) => Err(exception(py, &error)),
        };
        shown(py, future::settle(py, &waiting.future, outcome));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
