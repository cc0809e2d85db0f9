//! The messages of chains that middleware of the program sees: each crosses to the event loop as a dict, and what becomes of
//! it comes back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::chain::{
    Approval, ChainNotification, ChainRequest, ChainResponse, Handoff, HandoffEvent,
    HandoffInterests, RelayDirection, refusal,
};
use mcpbolt::error::{PeerError, RequestError};
use mcpbolt::mcp::code::INTERNAL_ERROR;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::approvals::{Approvals, Needed};
use crate::exceptions::exception;
use crate::failures;
use crate::future::tell;
use crate::inbox::Inbox;
use crate::outcome::refused;
use crate::panics::{self, caught};
use crate::signal::Wake;
use crate::{read, write};

/// The text for the sender of a request in place of that of an unexpected exception, which is logged.
const FAILED: &str = "the middleware failed unexpectedly";

/// Why a call is refused whose approval has failed unexpectedly.
const UNDECIDED: &str = "the approval failed unexpectedly";

/// The most events handled in one turn of the event loop.
const DRAIN: usize = 256;

/// The Python callbacks. Each gets the number of the middleware, and that of the message there.
#[derive(FromPyObject)]
struct Callbacks {
    on_request: Py<PyAny>,
    on_response: Py<PyAny>,
    on_given_up: Py<PyAny>,
    on_notification: Py<PyAny>,
    on_behind: Py<PyAny>,
    on_approval: Py<PyAny>,
    on_no_approval: Py<PyAny>,
}

/// What the event loop is told.
pub enum Event {
    /// A message, for the middleware of that number.
    Message(usize, HandoffEvent),
    /// A call needs approval.
    Needed(Needed),
    /// The call of that number needs none any more.
    NotNeeded(u64),
}

/// A message, by the number of the middleware that has it and its own.
type Key = (usize, u64);

/// The place where messages wait for middleware of the program.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Handoffs {
    inbox: Arc<Inbox<Event>>,
    middleware: Mutex<Vec<Arc<Handoff>>>,
    requests: Mutex<HashMap<Key, Held>>,
    notifications: Mutex<HashMap<Key, ChainNotification>>,
    approvals: Arc<Approvals>,
}

/// A request that the program has.
struct Held {
    request: ChainRequest,
    answer: Option<Result<ChainResponse, RequestError>>,
    /// The exception that the program got for the answer.
    failure: Option<Py<PyAny>>,
}

impl Handoffs {
    /// Adds middleware of the program; returns its number too.
    pub fn add(&self, interests: HandoffInterests) -> (usize, Arc<Handoff>) {
        let mut all = lock(&self.middleware);
        let (number, inbox) = (all.len(), self.inbox.clone());
        let report = move |event| inbox.push(Event::Message(number, event));
        let handoff = Arc::new(Handoff::new(interests, report));
        all.push(handoff.clone());
        (number, handoff)
    }

    /// Middleware by which the program approves calls of tools, as its `Approval` of that number.
    pub fn approval(
        &self,
        needs: impl Fn(&str) -> bool + Send + Sync + 'static,
        number: usize,
    ) -> Approval {
        self.approvals.rule(self.inbox.clone(), needs, number)
    }

    fn handoff(&self, middleware: usize) -> PyResult<Arc<Handoff>> {
        let handoff = lock(&self.middleware).get(middleware).cloned();
        handoff.ok_or_else(|| PyValueError::new_err("there is no such middleware"))
    }
}

#[pymethods]
impl Handoffs {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self {
            inbox: Arc::new(Inbox::new()?),
            middleware: Mutex::default(),
            requests: Mutex::default(),
            notifications: Mutex::default(),
            approvals: Arc::default(),
        })
    }

    /// The wakeup that is raised when [`drain`](Self::drain) has something to do.
    fn wake(&self) -> Wake {
        Wake(self.inbox.signal().clone())
    }

    /// Passes what has come to the callbacks.
    #[expect(clippy::needless_pass_by_value, reason = "as pyo3 extracts it")]
    fn drain(&self, py: Python<'_>, callbacks: Callbacks) {
        for event in self.inbox.take(DRAIN) {
            let refuse = self.refusal_of(&event);
            let outcome = caught(|| self.take(py, &callbacks, event));
            let error = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(panic) => panic.exception(py),
            };
            failures::of_client(py, error);
            refuse();
        }
    }

    /// Gives the verdict on a call that needs approval: `why` it is refused, or `None` to pass it on.
    fn decide(&self, number: u64, why: Option<String>) {
        self.approvals.decide(number, why);
    }

    /// Passes a request on, a dict. Its answer follows.
    fn pass_on(
        &self,
        py: Python<'_>,
        middleware: usize,
        number: u64,
        message: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        panics::point("pass on");
        let key = (middleware, number);
        let request = lock(&self.requests)
            .get(&key)
            .map(|held| held.request.clone());
        let Some(mut request) = request else {
            return Err(exception(py, &RequestError::Cancelled(None)));
        };
        check_method(message, &request.method())?;
        if let Some(params) = changed(py, request.params(), &params(message)?)? {
            request
                .set_params(&params)
                .map_err(|error| exception(py, &error))?;
        }
        let passed = self.handoff(middleware)?.pass(number, request);
        passed.map_err(|error| exception(py, &error))
    }

    /// Answers a request with a response, a dict.
    fn settle(
        &self,
        py: Python<'_>,
        middleware: usize,
        number: u64,
        message: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let before = lock(&self.requests)
            .get(&(middleware, number))
            .and_then(|held| held.answer.clone());
        let outcome = answer(py, message, before)?;
        self.finish(middleware, number, outcome)
    }

    /// Answers a request with the error that an exception stands for. `text` is for the sender, if it may be told one.
    fn fail(
        &self,
        py: Python<'_>,
        middleware: usize,
        number: u64,
        error: Bound<'_, PyAny>,
        text: Option<&str>,
    ) -> PyResult<()> {
        let (given, revision) = {
            let requests = lock(&self.requests);
            let Some(held) = requests.get(&(middleware, number)) else {
                return Ok(());
            };
            let is_own = held.failure.as_ref().is_some_and(|own| own.is(&error));
            let given = held.answer.as_ref().filter(|_| is_own);
            (
                given.and_then(|answer| answer.as_ref().err().cloned()),
                held.request.revision(),
            )
        };
        let outcome = given.unwrap_or_else(|| {
            let error = PyErr::from_value(error);
            refused(py, &error, revision)
                .unwrap_or_else(|| refusal(INTERNAL_ERROR, text.unwrap_or(FAILED)))
        });
        self.finish(middleware, number, Err(outcome))
    }

    /// Answers a request with an error of that text.
    fn refuse(&self, middleware: usize, number: u64, why: String) -> PyResult<()> {
        self.finish(middleware, number, Err(refusal(INTERNAL_ERROR, why)))
    }

    /// Passes a notification on, a dict, or drops it.
    fn let_go(
        &self,
        py: Python<'_>,
        middleware: usize,
        number: u64,
        message: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let held = lock(&self.notifications)
            .get(&(middleware, number))
            .cloned();
        let Some(mut notification) = held else {
            return Ok(());
        };
        let passed = match message {
            None => None,
            Some(message) => {
                if let Some(method) = message.get_item(intern!(py, "method"))? {
                    notification.method = method.extract()?;
                }
                let before = notification.params.as_deref().unwrap_or("{}");
                if let Some(params) = changed(py, before, &params(message)?)? {
                    notification.params = Some(params);
                }
                Some(notification)
            }
        };
        lock(&self.notifications).remove(&(middleware, number));
        self.handoff(middleware)?.let_go(number, passed);
        Ok(())
    }

    /// Says that an answer that came after notifications may go on.
    fn reached(&self, middleware: usize, number: u64) -> PyResult<()> {
        self.handoff(middleware)?.reached(number);
        Ok(())
    }

    /// Ends it: what waits is refused.
    fn close(&self) {
        let middleware = lock(&self.middleware).clone();
        middleware.iter().for_each(|one| one.close());
        self.inbox.close();
        self.approvals.close();
        lock(&self.requests).clear();
        lock(&self.notifications).clear();
    }
}

impl Handoffs {
    fn finish(
        &self,
        middleware: usize,
        number: u64,
        outcome: Result<ChainResponse, RequestError>,
    ) -> PyResult<()> {
        let gone = lock(&self.requests).remove(&(middleware, number));
        drop(gone);
        self.handoff(middleware)?.settle(number, outcome);
        Ok(())
    }

    /// What refuses the message or call of an event, if it waits for the program.
    fn refusal_of(&self, event: &Event) -> Box<dyn FnOnce() + '_> {
        match event {
            Event::Message(
                middleware,
                HandoffEvent::Request(number, _) | HandoffEvent::Response(number, _),
            ) => {
                let (middleware, number) = (*middleware, *number);
                Box::new(move || {
                    let failed = Err(refusal(INTERNAL_ERROR, FAILED));
                    // Fails only for middleware that does not exist.
                    let _ = self.finish(middleware, number, failed);
                })
            }
            Event::Needed(needed) => {
                let number = needed.number;
                Box::new(move || self.approvals.decide(number, Some(UNDECIDED.to_owned())))
            }
            _ => Box::new(|| ()),
        }
    }

    /// Handles one event.
    fn take(&self, py: Python<'_>, callbacks: &Callbacks, event: Event) -> PyResult<()> {
        match event {
            Event::Message(middleware, event) => self.pass(py, callbacks, middleware, event),
            Event::Needed(needed) => self.approvals.take(py, needed, &callbacks.on_approval),
            Event::NotNeeded(number) => {
                self.approvals.decide(number, None);
                tell(py, Some(&callbacks.on_no_approval), (number,));
                Ok(())
            }
        }
    }

    /// Passes a message to the program.
    fn pass(
        &self,
        py: Python<'_>,
        callbacks: &Callbacks,
        middleware: usize,
        event: HandoffEvent,
    ) -> PyResult<()> {
        panics::point("handoff");
        match event {
            HandoffEvent::Request(number, request) => {
                let message = envelope(py, Some(request.id()))?;
                message.set_item(intern!(py, "method"), request.method())?;
                message.set_item(intern!(py, "params"), read::value(py, request.params())?)?;
                let principal = request.principal().map(|it| it.as_str().to_owned());
                let about = (
                    direction(request.direction()),
                    request.revision().name(),
                    principal,
                );
                let held = Held {
                    request,
                    answer: None,
                    failure: None,
                };
                lock(&self.requests).insert((middleware, number), held);
                callbacks
                    .on_request
                    .bind(py)
                    .call1((middleware, number, message, about))?;
            }
            HandoffEvent::Response(number, outcome) => {
                let id = lock(&self.requests)
                    .get(&(middleware, number))
                    .map(|held| held.request.id().to_owned());
                let Some(id) = id else { return Ok(()) };
                let (message, failure) = match &outcome {
                    Ok(response) => {
                        let message = envelope(py, Some(&id))?;
                        let result = read::value(py, response.result())?;
                        message.set_item(intern!(py, "result"), result)?;
                        (Some(message), None)
                    }
                    Err(RequestError::Peer(error)) => {
                        let message = envelope(py, Some(&id))?;
                        message.set_item(intern!(py, "error"), error_of(py, error)?)?;
                        (Some(message), None)
                    }
                    Err(error) => (None, Some(exception(py, error).into_value(py).into_any())),
                };
                if let Some(held) = lock(&self.requests).get_mut(&(middleware, number)) {
                    held.answer = Some(outcome);
                    held.failure = failure.as_ref().map(|it| it.clone_ref(py));
                }
                callbacks
                    .on_response
                    .bind(py)
                    .call1((middleware, number, message, failure))?;
            }
            HandoffEvent::GivenUp(number) => {
                lock(&self.notifications).remove(&(middleware, number));
                let gone = lock(&self.requests).remove(&(middleware, number));
                drop(gone);
                tell(py, Some(&callbacks.on_given_up), (middleware, number));
            }
            HandoffEvent::Notification(number, notification) => {
                let message = envelope(py, None)?;
                message.set_item(intern!(py, "method"), &notification.method)?;
                if let Some(params) = &notification.params {
                    message.set_item(intern!(py, "params"), read::value(py, params)?)?;
                }
                let direction = direction(notification.direction);
                lock(&self.notifications).insert((middleware, number), notification);
                callbacks
                    .on_notification
                    .bind(py)
                    .call1((middleware, number, message, direction))?;
            }
            HandoffEvent::Behind(number) => {
                tell(py, Some(&callbacks.on_behind), (middleware, number))
            }
        }
        Ok(())
    }
}

impl Drop for Handoffs {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn direction(direction: RelayDirection) -> &'static str {
    match direction {
        RelayDirection::ToServer => "to_server",
        RelayDirection::ToClient => "to_client",
    }
}

/// A message without its content.
fn envelope<'py>(py: Python<'py>, id: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let message = PyDict::new(py);
    message.set_item(intern!(py, "jsonrpc"), "2.0")?;
    if let Some(id) = id {
        message.set_item(intern!(py, "id"), read::value(py, id)?)?;
    }
    Ok(message)
}

fn error_of<'py>(py: Python<'py>, error: &PeerError) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item(intern!(py, "code"), error.code)?;
    made.set_item(intern!(py, "message"), &*error.message)?;
    if let Some(data) = &error.data {
        made.set_item(intern!(py, "data"), read::value(py, data)?)?;
    }
    Ok(made)
}

/// The params of a message; an empty object if it has none.
fn params<'py>(message: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let py = message.py();
    let params = message.get_item(intern!(py, "params"))?;
    let params = params.filter(|params| !params.is_none());
    Ok(params.unwrap_or_else(|| PyDict::new(py).into_any()))
}

fn check_method(message: &Bound<'_, PyDict>, method: &str) -> PyResult<()> {
    let given = message.get_item(intern!(message.py(), "method"))?;
    let given = given.map(|given| given.extract::<String>()).transpose()?;
    match given {
        Some(given) if given != method => Err(PyValueError::new_err(format!(
            "the method of a request stays as it is: {method:?}, not {given:?}"
        ))),
        _ => Ok(()),
    }
}

/// The JSON text of an object; `None` if it says the same as the text before, which is then passed on byte for byte.
fn changed(py: Python<'_>, before: &str, after: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let mut text = Vec::new();
    write::append_object(&mut text, after)?;
    let mut same = Vec::new();
    write::append(&mut same, &read::value(py, before)?)?;
    if text == same {
        return Ok(None);
    }
    let text = String::from_utf8(text);
    text.map(Some)
        .map_err(|_| PyValueError::new_err("not Unicode"))
}

/// The outcome that a response stands for; `before` is the one that the program got.
fn answer(
    py: Python<'_>,
    message: &Bound<'_, PyAny>,
    before: Option<Result<ChainResponse, RequestError>>,
) -> PyResult<Result<ChainResponse, RequestError>> {
    let Ok(message) = message.cast::<PyDict>() else {
        let kind = message.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!(
            "`request` of middleware returns a response, a dict, which `await next(message)` gives; not {kind}"
        )));
    };
    if let Some(error) = message.get_item(intern!(py, "error"))?
        && !error.is_none()
    {
        let error = error.cast_into::<PyDict>()?;
        let member = |name: &str| {
            let missing = || PyValueError::new_err(format!("the error has no {name:?}"));
            error.get_item(name)?.ok_or_else(missing)
        };
        let text: String = member("message")?.extract()?;
        let data = error.get_item(intern!(py, "data"))?;
        let code = member("code")?.extract()?;
        let data = data.map(|data| write::json(&data)).transpose()?;
        let made = PeerError {
            code,
            message: text.into(),
            data: data.map(Into::into),
        };
        return Ok(Err(RequestError::Peer(made)));
    }
    let result = message.get_item(intern!(py, "result"))?;
    let result = result.ok_or_else(|| {
        PyValueError::new_err("a response has a member \"result\" or \"error\"; this one has none")
    })?;
    if let Some(Ok(before)) = before {
        return Ok(Ok(match changed(py, before.result(), &result)? {
            None => before,
            Some(text) => ChainResponse::new(text),
        }));
    }
    let mut text = Vec::new();
    write::append_object(&mut text, &result)?;
    let text = String::from_utf8(text).map_err(|_| PyValueError::new_err("not Unicode"))?;
    Ok(Ok(ChainResponse::new(text)))
}
