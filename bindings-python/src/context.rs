//! [`Context`]: the call in progress, as a handler sees it.

use std::sync::{Arc, Weak};

use mcpbolt::connection::Handle;
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::json::{reader, string};
use mcpbolt::mcp::{LogLevel, Method, Side};
use mcpbolt::message::Message;
use mcpbolt::server;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::exceptions::{exception, round_over};
use crate::panics;
use crate::session::{Session, Work};
use crate::settings::seconds;
use crate::{ask, introduction, read, write};

/// The context of a call in progress.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Context {
    /// Weak, so that a context which a program keeps does not keep its server alive.
    session: Weak<Session>,
    /// The session that keeps the values of this call, if it is another one.
    own: Option<Weak<Session>>,
    handle: Handle,
    state: Py<PyAny>,
    pub inner: server::Context,
    /// The request.
    pub message: Message,
}

impl Context {
    /// Makes the context of a call. If the state that the client brings from an earlier round is invalid,
    /// the call is answered here and its function is not called.
    pub fn begin(py: Python<'_>, work: &Work) -> PyResult<Self> {
        let inner = match &work.context {
            Some(inner) => Some((**inner).clone()),
            None => work.session.context(&work.call),
        };
        let session = &work.session;
        Ok(Self {
            session: Arc::downgrade(session),
            own: work.own.as_ref().map(Arc::downgrade),
            handle: session.handle.clone(),
            state: session.hub.interpreter.state_of(py, work.target.owner)?,
            inner: inner.ok_or_else(|| round_over(py))?,
            message: work.call.message.clone(),
        })
    }

    fn log_at(
        &self,
        level: LogLevel,
        data: &Bound<'_, PyAny>,
        logger: Option<&str>,
    ) -> PyResult<()> {
        let data = write::json(data)?;
        self.handle
            .replies()
            .log(self.inner.reply_to(), level, logger, &data);
        Ok(())
    }

    /// The connection of the call.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn session(&self, py: Python<'_>) -> PyResult<Arc<Session>> {
        let closed = || exception(py, &RequestError::Closed(ConnectionError::ClosedLocally));
        self.session.upgrade().ok_or_else(closed)
    }

    /// The session that keeps values for the call.
    ///
    /// # Errors
    /// It has ended.
    pub fn keeper(&self, py: Python<'_>) -> PyResult<Arc<Session>> {
        let closed = || exception(py, &RequestError::Closed(ConnectionError::ClosedLocally));
        let own = self.own.as_ref().unwrap_or(&self.session);
        own.upgrade().ok_or_else(closed)
    }
}

#[pymethods]
impl Context {
    /// Reports progress, if the client asked for it. It must increase from call to call.
    #[pyo3(signature = (progress, total = None, message = None))]
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.inner.progress(progress, total, message);
    }

    /// Sends a part of the result, any JSON-serializable value, to a client of the action dialect that
    /// reads the answer as a stream.
    fn partial(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = write::json(data)?;
        let mut replies = self.handle.replies();
        replies.partial(self.inner.reply_to(), &data);
        Ok(())
    }

    /// Sends a log message, if the client wants messages of that level.
    #[pyo3(signature = (level, data, logger = None))]
    fn log(&self, level: &str, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        panics::point("log");
        let Some(level) = LogLevel::parse(level) else {
            let names: Vec<_> = LogLevel::ALL.iter().map(|level| level.name()).collect();
            let text = format!("the level is one of {}", names.join(", "));
            return Err(PyValueError::new_err(text));
        };
        self.log_at(level, data, logger)
    }

    /// Logs at the level `debug`.
    #[pyo3(signature = (data, logger = None))]
    fn debug(&self, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        self.log_at(LogLevel::Debug, data, logger)
    }

    /// Logs at the level `info`.
    #[pyo3(signature = (data, logger = None))]
    fn info(&self, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        self.log_at(LogLevel::Info, data, logger)
    }

    /// Logs at the level `warning`.
    #[pyo3(signature = (data, logger = None))]
    fn warning(&self, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        self.log_at(LogLevel::Warning, data, logger)
    }

    /// Logs at the level `error`.
    #[pyo3(signature = (data, logger = None))]
    fn error(&self, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        self.log_at(LogLevel::Error, data, logger)
    }

    /// Asks the client's model to continue a conversation.
    #[pyo3(
        signature = (*arguments, **options),
        text_signature = "($self, messages, *, max_tokens, system_prompt=None, temperature=None, stop_sequences=(), model_preferences=None, tools=None, tool_choice=None, metadata=None)"
    )]
    fn sample<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf.as_any(), "sample", arguments, options)
    }

    /// Asks the user to fill in a form.
    #[pyo3(signature = (*arguments, **options), text_signature = "($self, message, form)")]
    fn elicit<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf.as_any(), "elicit", arguments, options)
    }

    /// Asks the user to do something on a web page.
    #[pyo3(
        signature = (*arguments, **options),
        text_signature = "($self, message, url, id=None)"
    )]
    fn elicit_url<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf.as_any(), "elicit_url", arguments, options)
    }

    /// Asks for the folders and files that the client wants servers to keep to.
    fn roots<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf.as_any(), "roots", &PyTuple::empty(slf.py()), None)
    }

    /// Returns this context with a name for the next question that is asked through it.
    fn named(&self, py: Python<'_>, question: &str) -> Self {
        Self {
            session: self.session.clone(),
            own: self.own.clone(),
            handle: self.handle.clone(),
            state: self.state.clone_ref(py),
            inner: self.inner.named(question),
            message: self.message.clone(),
        }
    }

    /// Ends the event stream of this call, if it has one in an HTTP session (2025-11-25). The client
    /// reconnects after `retry` seconds.
    fn release_stream(&self, retry: f64) -> PyResult<()> {
        self.inner.release_stream(seconds(retry)?);
        Ok(())
    }

    /// Continues the call of a tool as a task; returns whether it is a task now.
    fn begin_task(&self) -> bool {
        self.inner.begin_task()
    }

    /// Sets the status message of the task: a sentence on its progress. Does nothing if there is no task.
    fn task_message(&self, message: &str) {
        self.inner.task_message(message);
    }

    /// Notifies the client that the user has done what `elicit_url` asked for, if the revision has this
    /// notification (R-ELI-10).
    fn elicitation_complete(&self, id: &str) {
        let done = Method::ElicitationComplete;
        if done.defined(self.inner.revision(), Side::Server) {
            let mut params = b"{\"elicitationId\":".to_vec();
            string::append(&mut params, id);
            params.push(b'}');
            let params = String::from_utf8_lossy(&params);
            // The params are valid; an error means that the connection has ended.
            let _ = self.handle.notify(done.name(), Some(&params));
        }
    }

    /// Refuses the call unless its client declared a capability.
    #[pyo3(signature = (*capability))]
    fn require(&self, py: Python<'_>, capability: Vec<String>) -> PyResult<()> {
        let path: Vec<_> = capability.iter().map(String::as_str).collect();
        let Err(error) = self.inner.require(&path) else {
            return Ok(());
        };
        let data = error.data().map(|data| read::value(py, data)).transpose()?;
        let class = py.import("mcpbolt._errors")?.getattr("ProtocolError")?;
        let refusal = class.call1(("missing_capability", error.to_string(), data))?;
        Err(PyErr::from_value(refusal))
    }

    /// Returns the settings that the client declared for an extension with this call.
    fn extension<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let settings = self.inner.extension(id);
        settings.map(|json| read::object(py, json)).transpose()
    }

    /// Sends a question; `future` gets the answer. Returns a number to forget the question by.
    fn _ask(
        &self,
        py: Python<'_>,
        what: &str,
        params: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<u64> {
        ask::begin(py, (&self.session(py)?, &self.inner), what, params, future)
    }

    /// Drops a question whose answer is no longer awaited.
    fn _forget(&self, number: u64) {
        if let Some(session) = self.session.upgrade() {
            drop(session.hub.questions.take(number));
        }
    }

    /// Sends a question and blocks this thread until the answer comes.
    fn _wait<'py>(
        &self,
        py: Python<'py>,
        what: &str,
        params: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::wait(py, (&self.session(py)?, &self.inner), what, params)
    }

    /// Whether the call runs as a task.
    #[getter]
    fn is_task(&self) -> bool {
        self.inner.is_task()
    }

    /// The `_meta` of the request.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let params = self.message.as_ref().params().unwrap_or("{}");
        read::object(py, reader::find(params, "_meta").unwrap_or("{}"))
    }

    /// The client's self-description. For display: it is not verified.
    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (handle, request) = (&self.handle, self.message.as_ref());
        introduction::of_request(py, handle, request, self.inner.revision())
    }

    /// Whether the client cancelled the call or disconnected.
    #[getter]
    fn cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    /// The reason for the cancellation, if the client gave one.
    #[getter]
    fn cancel_reason(&self) -> Option<&str> {
        self.inner.cancel_token().reason()
    }

    /// The process or state that the action belongs to, as named by the client.
    #[getter]
    fn action_context(&self) -> Option<String> {
        self.inner.action_context().map(Into::into)
    }

    /// The caller, as verified by the policy; `None` for an unauthenticated caller.
    #[getter]
    fn principal(&self) -> Option<&str> {
        self.inner.principal()
    }

    /// Whether the caller was granted a scope.
    fn has_scope(&self, scope: &str) -> bool {
        let who = self.inner.verified();
        who.is_some_and(|who| who.has_scope(scope))
    }

    /// The protocol revision of the call.
    #[getter]
    fn revision(&self) -> &'static str {
        self.inner.revision().rules().name
    }

    /// The value that the server's lifespan yielded.
    #[getter]
    fn state(&self, py: Python<'_>) -> Py<PyAny> {
        self.state.clone_ref(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.state)
    }
}
