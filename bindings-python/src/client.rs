//! [`Link`]: the client's side of one connection, as the Python package sees it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcpbolt::client::Client;
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::json::reader;
use mcpbolt::mcp::{LogLevel, Method, Side};
use mcpbolt::model::Root;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::answer::Answer;
use crate::asked::Asked;
use crate::callbacks::Callbacks;
use crate::client_events::ClientEvent;
use crate::exceptions::exception;
use crate::failures::{self, settled};
use crate::forked::Here;
use crate::future::tell;
use crate::inbox::Inbox;
use crate::operation::{Operation, Outcome};
use crate::operations::Operations;
use crate::panics::{self, Panicked, caught};
use crate::request_options::RequestOptions;
use crate::settings::wrong;
use crate::signal::Wake;
use crate::{future, read, write};

/// The most events handled in one turn of the event loop.
const DRAIN: usize = 1024;

/// The client's side of one connection, which a thread of the engine drives.
#[pyclass(frozen, weakref, module = "mcpbolt._core")]
pub struct Link {
    pub client: Here<Client>,
    inbox: Arc<Inbox<ClientEvent>>,
    asked: Arc<Asked>,
    operations: Operations,
    callbacks: Callbacks,
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
    pub fn new(
        client: Client,
        inbox: Arc<Inbox<ClientEvent>>,
        asked: Arc<Asked>,
        callbacks: Callbacks,
    ) -> Self {
        let is_traced = client.handle().config().observer.is_some();
        let link = Self {
            client: Here::new(client),
            operations: Operations::new(inbox.clone(), is_traced),
            inbox,
            asked,
            callbacks,
        };
        link.look_for_opening();
        link
    }

    fn look_for_opening(&self) {
        let waker = self.operations.waker(None);
        let mut opened = self.client.handle().opened();
        if Pin::new(&mut opened)
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            self.inbox.push(ClientEvent::Opened);
        }
    }

    /// Starts an operation that is not a plain request; returns its number.
    pub fn start<T: Into<Outcome>>(
        &self,
        future: Py<PyAny>,
        work: impl Future<Output = Result<T, RequestError>> + Send + 'static,
    ) -> u64 {
        self.start_watched(future, None, |_, _| work)
    }

    /// Starts an operation with a callback for its progress, which `work` reports as events with the number
    /// that it is given.
    pub fn start_watched<T: Into<Outcome>, F>(
        &self,
        future: Py<PyAny>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(u64, Arc<Inbox<ClientEvent>>) -> F,
    ) -> u64
    where
        F: Future<Output = Result<T, RequestError>> + Send + 'static,
    {
        let number = self.operations.number();
        let operation = Operation::other(work(number, self.inbox.clone()));
        self.operations.begin(number, operation, future, progress);
        number
    }

    /// Starts the operation that `make` makes of its number, with its progress callback; returns the number.
    pub fn begin(
        &self,
        future: Py<PyAny>,
        make: impl FnOnce(u64, &Arc<Inbox<ClientEvent>>) -> PyResult<(Operation, Option<Py<PyAny>>)>,
    ) -> PyResult<u64> {
        let number = self.operations.number();
        let (operation, progress) = make(number, &self.inbox)?;
        self.operations.begin(number, operation, future, progress);
        Ok(number)
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
        options: Option<RequestOptions>,
    ) -> PyResult<u64> {
        panics::point("request");
        let params = params.map(write::json).transpose()?;
        self.begin(future, |number, inbox| {
            let (options, progress) = options.unwrap_or_default().of_request(number, inbox)?;
            let send = || self.client.request(method, params.as_deref(), options);
            let asking = self.operations.sending(send);
            let asking = asking.map_err(|error| exception(py, &error))?;
            Ok((Operation::Request(asking), progress))
        })
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
            Ok(Outcome::Json(settles.to_string()))
        }))
    }

    /// Replaces the roots, a JSON array, and notifies the server.
    fn set_roots(&self, roots: &str) -> PyResult<()> {
        let roots: Vec<Root> = serde_json::from_str(roots).map_err(wrong)?;
        self.client.set_roots(roots).map_err(wrong)
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
        if let Some(pending) = self.operations.remove(number) {
            pending.operation.cancel(reason);
        }
    }

    /// The object that wakes an event loop when [`drain`](Self::drain) has something to do.
    fn wake(&self) -> Wake {
        Wake(self.inbox.signal().clone())
    }

    /// Handles the events that have come: settles futures and calls callbacks.
    fn drain(&self, py: Python<'_>) {
        for event in self.inbox.take(DRAIN) {
            let number = event.number();
            if let Err(panic) = caught(|| self.take(py, event)) {
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
        self.callbacks.visit(&visit)?;
        self.operations.visit(&visit)
    }

    fn __clear__(&self) {
        self.operations.clear();
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

    /// Whether it has subscriptions, or listens.
    fn has_subscriptions(&self) -> bool {
        self.client.has_subscriptions()
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
    /// Handles one event.
    fn take(&self, py: Python<'_>, event: ClientEvent) {
        panics::point("news");
        match event {
            ClientEvent::Opened => settled(py, self.settle_opening(py)),
            ClientEvent::Done(number) => match self.operations.poll(number) {
                // Settled only after the progress reports that are still in the inbox.
                Some(outcome) if self.operations.progress(py, number).is_some() => self
                    .inbox
                    .push(ClientEvent::Outcome(number, Box::new(outcome))),
                Some(outcome) => self.settle(py, number, outcome),
                None => {}
            },
            ClientEvent::Outcome(number, outcome) => self.settle(py, number, *outcome),
            ClientEvent::Progress(number, progress, total, message) => {
                let report = self.operations.progress(py, number);
                tell(py, report.as_ref(), (progress, total, message));
            }
            ClientEvent::State(number, json) => {
                if let Ok(state) = read::value(py, &json) {
                    tell(py, self.operations.progress(py, number).as_ref(), (state,));
                }
            }
            ClientEvent::Notice(method, params) => {
                if let Ok(params) = read::value(py, &params) {
                    tell(py, Some(&self.callbacks.on_notice), (method, params));
                }
            }
            ClientEvent::Asked(number, what, params) => match read::value(py, &params) {
                Ok(params) => tell(py, Some(&self.callbacks.on_asked), (number, what, params)),
                Err(error) => self.refuse(number, &error.to_string()),
            },
            ClientEvent::GivenUp(number) => tell(py, Some(&self.callbacks.on_given_up), (number,)),
            ClientEvent::Stderr(line) => tell(py, self.callbacks.on_stderr.as_ref(), (line,)),
            ClientEvent::Ended => {
                settled(
                    py,
                    future::settle(py, &self.callbacks.ended, Ok(py.None().into_bound(py))),
                );
            }
        }
    }

    /// Settles the future of an operation, unless the operation was cancelled meanwhile.
    fn settle(&self, py: Python<'_>, number: u64, outcome: Result<Outcome, RequestError>) {
        let Some(pending) = self.operations.remove(number) else {
            return;
        };
        let outcome = match outcome {
            Ok(Outcome::Answer(message)) => Bound::new(py, Answer(message)).map(Bound::into_any),
            Ok(Outcome::Json(json)) => read::value(py, &json),
            Ok(Outcome::Bytes(bytes)) => Ok(PyBytes::new(py, &bytes).into_any()),
            Ok(Outcome::Object(make)) => make(py),
            Ok(Outcome::Nothing) => Ok(py.None().into_bound(py)),
            Err(error) => Err(exception(py, &error)),
        };
        settled(py, future::settle(py, &pending.future, outcome));
    }

    fn settle_opening(&self, py: Python<'_>) -> PyResult<()> {
        let mut opened = self.client.handle().opened();
        let outcome = match Pin::new(&mut opened).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(_)) => Ok(py.None().into_bound(py)),
            Poll::Ready(Err(error)) => Err(exception(py, &error)),
            Poll::Pending => return Ok(()),
        };
        future::settle(py, &self.callbacks.opened, outcome)
    }

    /// Fails the request that an event belongs to with a panic's error; prints the error if there is none.
    fn panicked(&self, py: Python<'_>, number: Option<u64>, panic: &Panicked) {
        let error = panic.exception(py);
        match number.and_then(|number| self.operations.remove(number)) {
            Some(pending) => settled(py, future::settle(py, &pending.future, Err(error))),
            None => failures::of_client(py, error),
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
