//! What a function knows of its call, and a task of its end.

use std::sync::Arc;

use mcpbolt::connection::{Call, Progress, ReplyTo};
use mcpbolt::correlate::CancelToken;
use mcpbolt::mcp::LogLevel;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::session::Session;
use crate::{call, write};

/// A call under way: progress, log messages, cancellation, and what the lifespan gave.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Context {
    session: Arc<Session>,
    reply: ReplyTo,
    cancel: CancelToken,
}

impl Context {
    pub fn new(session: Arc<Session>, call: &Call) -> Self {
        Self {
            session,
            reply: call.reply.clone(),
            cancel: call.cancel.clone(),
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
            .progress(&self.reply, progress);
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
            .log(&self.reply, level, logger, &data);
        Ok(())
    }

    /// Whether the client gave up, or went away.
    #[getter]
    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Why it gave up, if it said so.
    #[getter]
    fn cancel_reason(&self) -> Option<&str> {
        self.cancel.reason()
    }

    /// The protocol revision that the call is served in.
    #[getter]
    fn revision(&self) -> &'static str {
        self.reply.revision().rules().name
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
}

impl Job {
    pub fn new(session: Arc<Session>, call: Call) -> Self {
        Self { session, call }
    }

    pub fn end(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(target) = self.session.target(&self.call) else {
            return Ok(());
        };
        let last = {
            let mut tasks = self.session.tasks();
            tasks.remove(&self.call.reply.key());
            tasks.is_empty()
        };
        if !self.call.cancel.is_cancelled() {
            call::answer(py, target, &self.call, outcome, &self.session.settled);
        }
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
