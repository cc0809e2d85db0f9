//! [`Link`]: the client's side of one connection, as the Python package sees it.

mod underway;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use mcpbolt::client::{Client, Interests};
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::json::reader;
use mcpbolt::mcp::{LogLevel, Method, Root, Side};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use serde_json::value::RawValue;

use self::underway::{Waiting, lock};
use crate::answer::exception;
use crate::asked::Asked;
use crate::client_setup::{Ears, value_error};
use crate::forked::Here;
use crate::future::tell;
use crate::inbox::Inbox;
use crate::news::News;
use crate::options::Options;
use crate::panics::{self, Panicked, caught};
use crate::serving::shown;
use crate::settings::{seconds, wrong};
use crate::work::{Made, Work};
use crate::{future, read, write};

/// The most news handled in one turn of the event loop.
const DRAIN: usize = 1024;

/// The client's side of one connection, which a thread of the engine drives.
#[pyclass(frozen, weakref, module = "mcpbolt._core")]
pub struct Link {
    pub client: Here<Client>,
    inbox: Arc<Inbox<News>>,
    asked: Arc<Asked>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next: AtomicU64,
    ears: Ears,
}

/// A server's implementation info, its capabilities, its instructions, and the revision.
type Peer<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<String>,
    Option<&'static str>,
);

impl Link {
    /// Makes the link for the connection of a client.
    pub fn new(client: Client, inbox: Arc<Inbox<News>>, asked: Arc<Asked>, ears: Ears) -> Self {
        let link = Self {
            client: Here::new(client),
            inbox,
            asked,
            waiting: Mutex::default(),
            next: AtomicU64::new(0),
            ears,
        };
        link.look_for_opening();
        link
    }
}

#[pymethods]
impl Link {
    /// Sends a request; `future` gets its answer. Returns a number to cancel it by.
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        future: Py<PyAny>,
        options: Option<Options>,
    ) -> PyResult<u64> {
        panics::point("request");
        let params = params.map(write::json).transpose()?;
        let number = self.number();
        let (options, progress) = options
            .unwrap_or_default()
            .of_request(number, &self.inbox)?;
        let asking = self
            .client
            .request(method, params.as_deref(), options)
            .map_err(|error| exception(py, &error))?;
        self.begin(number, Work::Asking(asking), future, progress);
        Ok(number)
    }

    /// Calls a tool with the knowledge from its list: the result is validated against its output schema,
    /// and it is called as a task if it requires that. `future` gets the answer; with `start`, it gets the
    /// task instead, if the call becomes one.
    fn call_tool(
        &self,
        name: &str,
        arguments: &Bound<'_, PyAny>,
        future: Py<PyAny>,
        options: Option<Options>,
        start: bool,
        ttl: Option<f64>,
    ) -> PyResult<u64> {
        let arguments = RawValue::from_string(write::json(arguments)?);
        let arguments = arguments.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let number = self.number();
        let mut call = self.client.call_tool(name, &arguments);
        if let Some(ttl) = ttl {
            call = call.ttl(seconds(ttl)?);
        }
        let (call, progress) = options
            .unwrap_or_default()
            .of_call(call, number, &self.inbox)?;
        let work = match start {
            true => Work::other(call.start_unread()),
            false => Work::other(call.answer()),
        };
        self.begin(number, work, future, progress);
        Ok(number)
    }

    /// Subscribes to changes of a resource, or unsubscribes; `future` gets `None`.
    fn subscribe(&self, uri: String, wanted: bool, future: Py<PyAny>) -> u64 {
        let client = self.client.clone();
        self.start(future, async move {
            match wanted {
                true => client.subscribe(&uri).await,
                false => client.unsubscribe(&uri).await,
            }
        })
    }

    /// Subscribes to changes; `future` gets the stream of the subscription.
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

    /// Sets the minimum level of log messages. `future` gets `True` if the server keeps it, and `False` in
    /// revisions in which each request must carry it.
    fn set_log_level(&self, level: &str, future: Py<PyAny>) -> PyResult<u64> {
        let level = LogLevel::parse(level)
            .ok_or_else(|| PyValueError::new_err(format!("there is no level {level:?}")))?;
        let client = self.client.clone();
        let defined = |revision| Method::SetLevel.defined(revision, Side::Client);
        let settles = client.revision().is_none_or(defined);
        Ok(self.start(future, async move {
            if settles {
                client.set_log_level(level).await?;
            }
            Ok(Made::Json(settles.to_string()))
        }))
    }

    /// Replaces the roots, a JSON array, and notifies the server.
    fn set_roots(&self, roots: &str) -> PyResult<()> {
        let roots: Vec<Root> = serde_json::from_str(roots).map_err(wrong)?;
        self.client.set_roots(roots).map_err(value_error)
    }

    /// Answers a question of the server.
    fn answer(&self, number: u64, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        self.asked.answer(number, Ok(write::json(answer)?));
        Ok(())
    }

    /// Refuses a question of the server, with a reason.
    fn refuse(&self, number: u64, why: &str) {
        self.asked.answer(number, Err(HandlerError::new(why)));
    }

    /// Cancels a request: the server is notified, and a late answer is discarded.
    fn cancel(&self, number: u64, reason: Option<&str>) {
        let waiting = lock(&self.waiting).remove(&number);
        if let Some(waiting) = waiting {
            waiting.work.cancel(reason);
        }
    }

    /// The object that wakes an event loop when [`drain`](Self::drain) has something to do.
    fn wake(&self) -> Wake {
        Wake(self.inbox.clone())
    }

    /// Handles the news that has come: settles futures and calls callbacks.
    fn drain(&self, py: Python<'_>) {
        for news in self.inbox.take(DRAIN) {
            let number = news.number();
            if let Err(panic) = caught(|| self.take(py, news)) {
                self.panicked(py, number, &panic);
            }
        }
    }

    /// # Errors
    /// This process is a fork of the one that connected it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.client.check(py, "client")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.ears.visit(&visit)?;
        // Only threads attached to the interpreter hold the lock, so it is free while the collector runs.
        let Ok(waiting) = self.waiting.try_lock() else {
            return Ok(());
        };
        waiting.values().try_for_each(|one| {
            visit.call(&one.future)?;
            visit.call(&one.progress)
        })
    }

    fn __clear__(&self) {
        drop(std::mem::take(&mut *lock(&self.waiting)));
    }

    /// The server's implementation info, its capabilities, its instructions, and the revision.
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

    /// Whether the server declared a capability; `True` if its capabilities are not known.
    fn offers(&self, capability: &str) -> bool {
        self.client.handle().peer().is_none_or(|peer| {
            peer.capabilities.is_empty() || reader::find(&peer.capabilities, capability).is_some()
        })
    }

    /// Whether the revision in force has a feature: "completions" or "completion_context".
    fn knows(&self, rule: &str) -> bool {
        let rules = self.client.revision().map(|revision| revision.rules());
        rules.is_some_and(|rules| match rule {
            "completions" => rules.completions,
            _ => rules.completion_context,
        })
    }

    /// The method that serves as a ping in this revision.
    fn ping_method(&self) -> &'static str {
        let defined = |revision| Method::Ping.defined(revision, Side::Client);
        match self.client.handle().revision().is_none_or(defined) {
            true => Method::Ping.name(),
            false => Method::Discover.name(),
        }
    }

    /// The number of answers without a waiting request, and of frames that were not messages.
    fn stray_count(&self) -> u64 {
        self.client.handle().stray_count()
    }

    /// Why the connection ended, if it has.
    fn end(&self, py: Python<'_>) -> Option<PyErr> {
        let reason = self.client.handle().close_reason()?;
        Some(exception(py, &RequestError::Closed(reason.clone())))
    }

    /// Closes the connection.
    fn close(&self) {
        self.client.handle().close();
    }
}

impl Link {
    /// Handles one piece of news.
    fn take(&self, py: Python<'_>, news: News) {
        panics::point("news");
        match news {
            News::Opened => shown(py, self.settle_opening(py)),
            News::Done(number) => match self.poll(number) {
                // Settled only after the progress reports that are still in the inbox.
                Some(outcome) if self.report(py, number).is_some() => {
                    self.inbox.push(News::Outcome(number, Box::new(outcome)))
                }
                Some(outcome) => self.settle(py, number, outcome),
                None => {}
            },
            News::Outcome(number, outcome) => self.settle(py, number, *outcome),
            News::Progress(number, progress, total, message) => {
                let report = self.report(py, number);
                tell(py, report.as_ref(), (progress, total, message));
            }
            News::State(number, json) => {
                if let Ok(state) = read::value(py, &json) {
                    tell(py, self.report(py, number).as_ref(), (state,));
                }
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

    /// Fails the request that the news belongs to with a panic's error; prints the error if there is none.
    fn panicked(&self, py: Python<'_>, number: Option<u64>, panic: &Panicked) {
        let error = panic.exception(py);
        let waiting = number.and_then(|number| lock(&self.waiting).remove(&number));
        match waiting {
            Some(waiting) => shown(py, future::settle(py, &waiting.future, Err(error))),
            None => error.display(py),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The program has no access to the connection any more.
        if !self.client.is_forked() {
            self.inbox.close();
            self.client.handle().close();
        }
    }
}

/// The wakeup descriptor of a link. It may outlive the link, so that an event loop can stop watching the
/// descriptor before it is closed.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Wake(Arc<Inbox<News>>);

#[pymethods]
impl Wake {
    /// The descriptor that is readable when there is something to drain.
    fn fileno(&self) -> i32 {
        self.0.signal().fd()
    }
}
