//! The client's side of one connection, as the face sees it.

mod underway;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use mcpbolt::client::{Client, Interests};
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::json::reader;
use mcpbolt::mcp::{LogLevel, Method, Side};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::value::RawValue;

use self::underway::{Waiting, lock};
use crate::answer::exception;
use crate::asked::Asked;
use crate::client_setup::{Ears, root, seconds, value_error};
use crate::future::tell;
use crate::inbox::Inbox;
use crate::news::News;
use crate::options::Options;
use crate::serving::shown;
use crate::work::{Made, Work};
use crate::{future, read, write};

/// News handled in one turn of the event loop.
const DRAIN: usize = 1024;

/// The client's side of one connection; a thread of the engine's drives it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Link {
    pub client: Client,
    inbox: Arc<Inbox<News>>,
    asked: Arc<Asked>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    next: AtomicU64,
    ears: Ears,
}

/// What a server said of itself, its capabilities, its instructions, and the revision.
type Peer<'py> = (
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<String>,
    Option<&'static str>,
);

impl Link {
    /// On the connection of that client.
    pub fn new(client: Client, inbox: Arc<Inbox<News>>, asked: Arc<Asked>, ears: Ears) -> Self {
        let link = Self {
            client,
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
    /// Sends a request; `future` gets its answer. Gives a number to cancel it by.
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        future: Py<PyAny>,
        options: Option<Options>,
    ) -> PyResult<u64> {
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

    /// Calls a tool of which something is known: its result is held against its schema, and it is
    /// called by way of a task where it must be; `future` gets its answer. With `start`, it gets the
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

    /// Asks to be told of changes; `future` gets the stream on which that happens.
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

    /// Sets how severe a log message must be; `future` gets whether it is settled so: where it is
    /// not, each request says it.
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
                News::Done(number) => match self.poll(number) {
                    // Behind what it has just told.
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
