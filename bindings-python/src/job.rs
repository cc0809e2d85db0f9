//! [`Job`]: by which a task of the event loop answers its call.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::hub::Event;
use crate::outcome;
use crate::panics::{self, caught};
use crate::session::Work;

/// The obligation of a task to answer its call once, with the function's value or its failure. It is empty afterwards:
/// a traceback that is kept does not keep the session.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Job(Mutex<Option<Work>>);

impl Job {
    pub fn new(work: Work) -> Self {
        Self(Mutex::new(Some(work)))
    }

    /// Answers the call. Does nothing the second time.
    pub fn end(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        let work = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(work) = &work else { return Ok(()) };
        let session = &work.session;
        let hub = &session.hub;
        let last = session.forget_task(&work.call.reply.key()) || !hub.has_tasks();
        if last && hub.is_over() {
            // Wakes the event loop, which may now stop watching this server.
            hub.inbox.push(Event::Ended);
        }
        let answered = caught(|| {
            panics::point("answer");
            outcome::answer(py, work, outcome, &hub.settled)
        });
        if let Err(panic) = answered {
            outcome::panicked(work, &panic, &hub.settled);
        }
        hub.flush_soon(py, last)
    }
}

#[pymethods]
impl Job {
    /// Answers with the function's return value.
    fn settle(&self, py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<()> {
        self.end(py, Ok(value))
    }

    /// Answers with the function's failure.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        self.end(py, Err(PyErr::from_value(error)))
    }
}
