//! What a function knows of its call, and a task of its end.

use std::sync::Arc;

use mcpbolt::connection::{Call, Progress};
use mcpbolt::mcp::{ErrorKind, LogLevel};
use mcpbolt::server;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::catalog::Target;
use crate::session::Session;
use crate::{ask, call, write};

/// A call under way: progress, log messages, questions, cancellation, and what the lifespan gave.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Context {
    pub session: Arc<Session>,
    pub inner: server::Context,
}

impl Context {
    /// That of a call. When what the client brings from an earlier round is wrong, the call is
    /// answered here and its function is not called.
    pub fn begin(py: Python<'_>, session: &Arc<Session>, call: &Call) -> PyResult<Self> {
        let seal = session.catalog.seal.as_ref();
        match server::Context::new(session.handle.clone(), call, seal) {
            Ok(inner) => Ok(Self {
                session: session.clone(),
                inner,
            }),
            Err(why) => {
                let mut replies = session.handle.replies();
                replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
                call.cancel.cancel(None);
                Err(ask::round_over(py))
            }
        }
    }
}

#[pymethods]
impl Context {
    /// Reports progress, if the client asked for it. It must increase from call to call.
    #[pyo3(signature = (progress, total = None, message = None))]
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let progress = Progress {
            progress,
            total,
            message,
        };
        self.session
            .handle
            .replies()
            .progress(self.inner.reply_to(), progress);
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
        self.session.questions.forget(number);
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

    /// The protocol revision that the call is served in.
    #[getter]
    fn revision(&self) -> &'static str {
        self.inner.revision().rules().name
    }

    /// What the server's lifespan gave.
    #[getter]
    fn state(&self, py: Python<'_>) -> Py<PyAny> {
        self.session.interpreter.state.clone_ref(py)
    }
}

/// The debt of one task: it answers once, with what it made or why it failed.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Job {
    session: Arc<Session>,
    call: Call,
    target: Arc<Target>,
}

impl Job {
    pub fn new(session: Arc<Session>, call: Call, target: Arc<Target>) -> Self {
        Self {
            session,
            call,
            target,
        }
    }

    pub fn end(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        let last = {
            let mut tasks = self.session.tasks();
            tasks.remove(&self.call.reply.key());
            tasks.is_empty()
        };
        call::answer(py, &self.target, &self.call, outcome, &self.session.settled);
        self.session.flush_soon(py, last)
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
