//! What a function knows of its call, and a task of its end.

use std::sync::Arc;

use mcpbolt::json::{reader, string};
use mcpbolt::mcp::{LogLevel, Method, Side};
use mcpbolt::message::Message;
use mcpbolt::server;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::client_setup::seconds;
use crate::hub::Event;
use crate::session::{Session, Work};
use crate::{ask, introduction, outcome, read, write};

/// A call under way: progress, log messages, questions, cancellation, and what the lifespan gave.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Context {
    pub session: Arc<Session>,
    pub inner: server::Context,
    /// The request.
    pub message: Message,
}

impl Context {
    /// That of a call. When what the client brings from an earlier round is wrong, the call is
    /// answered here and its function is not called.
    pub fn begin(py: Python<'_>, work: &Work) -> PyResult<Self> {
        let inner = match &work.context {
            Some(inner) => Some((**inner).clone()),
            None => work.session.context(&work.call),
        };
        Ok(Self {
            session: work.session.clone(),
            inner: inner.ok_or_else(|| ask::round_over(py))?,
            message: work.call.message.clone(),
        })
    }
}

#[pymethods]
impl Context {
    /// Reports progress, if the client asked for it. It must increase from call to call.
    #[pyo3(signature = (progress, total = None, message = None))]
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.inner.progress(progress, total, message);
    }

    /// Hands on a part of the result, to a client that reads the answer of an action as a stream.
    fn partial(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = write::json(data)?;
        let mut replies = self.session.handle.replies();
        replies.partial(self.inner.reply_to(), &data);
        Ok(())
    }

    /// Sends a log message, if the client wants messages of that level.
    #[pyo3(signature = (level, data, logger = None))]
    fn log(&self, level: &str, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        let Some(level) = LogLevel::parse(level) else {
            let names: Vec<_> = LogLevel::ALL.iter().map(|level| level.name()).collect();
            let text = format!("the level is one of {}", names.join(", "));
            return Err(PyValueError::new_err(text));
        };
        let data = write::json(data)?;
        self.session
            .handle
            .replies()
            .log(self.inner.reply_to(), level, logger, &data);
        Ok(())
    }

    /// Asks the client's model to go on with a conversation.
    #[pyo3(signature = (*arguments, **options))]
    fn sample<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf, "sample", arguments, options)
    }

    /// Asks the user to fill in a form.
    #[pyo3(signature = (*arguments, **options))]
    fn elicit<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf, "elicit", arguments, options)
    }

    /// Asks the user to do something at a web page.
    #[pyo3(signature = (*arguments, **options))]
    fn elicit_url<'py>(
        slf: &Bound<'py, Self>,
        arguments: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf, "elicit_url", arguments, options)
    }

    /// Asks for the folders and files that the client wants servers to keep to.
    fn roots<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        ask::asked(slf, "roots", &PyTuple::empty(slf.py()), None)
    }

    /// This context, with a name for the next question that is asked through it.
    fn named(&self, question: &str) -> Self {
        Self {
            session: self.session.clone(),
            inner: self.inner.named(question),
            message: self.message.clone(),
        }
    }

    /// Ends the stream of events on which this call is answered; its client comes back after so
    /// many seconds.
    fn release_stream(&self, retry: f64) -> PyResult<()> {
        self.inner.release_stream(seconds(retry)?);
        Ok(())
    }

    /// Has the call go on as a task of the protocol, if its client can follow; whether it does.
    fn begin_task(&self) -> bool {
        self.inner.begin_task()
    }

    /// Says in a sentence how far the task is, to who looks; does nothing where there is none.
    fn task_message(&self, message: &str) {
        self.inner.task_message(message);
    }

    /// Tells the client that the user has done what `elicit_url` asked for, where the revision
    /// has a word for it (R-ELI-10).
    fn elicitation_complete(&self, id: &str) {
        let done = Method::ElicitationComplete;
        if done.defined(self.inner.revision(), Side::Server) {
            let mut params = b"{\"elicitationId\":".to_vec();
            string::append(&mut params, id);
            params.push(b'}');
            let params = String::from_utf8_lossy(&params);
            // The params are an object; a connection that has ended tells nobody anything.
            let _ = self.session.handle.notify(done.name(), Some(&params));
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

    /// The settings that the client declared with this call for an extension.
    fn extension<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let settings = self.inner.extension(id);
        settings.map(|json| read::object(py, json)).transpose()
    }

    /// Asks; `future` gets the answer. Gives a number to forget it by.
    fn _ask(
        &self,
        py: Python<'_>,
        what: &str,
        params: &Bound<'_, PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<u64> {
        ask::begin(py, self, what, params, future)
    }

    /// Nobody waits for that answer any more.
    fn _forget(&self, number: u64) {
        self.session.hub.questions.forget(number);
    }

    /// Asks and waits for the answer on this thread.
    fn _wait<'py>(
        &self,
        py: Python<'py>,
        what: &str,
        params: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        ask::wait(py, self, what, params)
    }

    /// Whether the call goes on as a task of the protocol.
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

    /// What the client said of itself.
    #[getter]
    fn client<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (handle, request) = (&self.session.handle, self.message.as_ref());
        introduction::of_request(py, handle, request, self.inner.revision())
    }

    /// Whether the client gave up, or went away.
    #[getter]
    fn cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    /// Why it gave up, if it said so.
    #[getter]
    fn cancel_reason(&self) -> Option<&str> {
        self.inner.cancel_token().reason()
    }

    /// The process or state that an action belongs to, as its client names it.
    #[getter]
    fn action_context(&self) -> Option<String> {
        self.inner.action_context().map(Into::into)
    }

    /// Who calls, as the policy has verified; `None` where nobody knows.
    #[getter]
    fn principal(&self) -> Option<&str> {
        self.inner.principal()
    }

    /// Whether that was granted to who calls.
    fn has_scope(&self, scope: &str) -> bool {
        let who = self.inner.verified();
        who.is_some_and(|who| who.has_scope(scope))
    }

    /// The protocol revision that the call is served in.
    #[getter]
    fn revision(&self) -> &'static str {
        self.inner.revision().rules().name
    }

    /// What the server's lifespan gave.
    #[getter]
    fn state(&self, py: Python<'_>) -> Py<PyAny> {
        self.session.hub.interpreter.state.clone_ref(py)
    }
}

/// The debt of one task: it answers once, with what it made or why it failed.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Job(pub Work);

impl Job {
    pub fn end(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        let (work, session) = (&self.0, &self.0.session);
        let hub = &session.hub;
        let last = session.forget_task(&work.call.reply.key()) || !hub.has_tasks();
        if last && hub.is_over() {
            // Who still looks, looks no longer.
            hub.inbox.push(Event::Ended);
        }
        outcome::answer(py, work, outcome, &hub.settled);
        hub.flush_soon(py, last)
    }
}

#[pymethods]
impl Job {
    /// Answers with what the function gave back.
    fn settle(&self, py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<()> {
        self.end(py, Ok(value))
    }

    /// Answers with the function's failure.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        self.end(py, Err(PyErr::from_value(error)))
    }
}
