//! [`Beside`]: a plain function that a task of the event loop has a worker thread call.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::future;
use crate::hub::{Event, Hub, Notified};
use crate::panics::caught;

/// The call of a plain function. Its future gets the outcome, even if the function is never called.
#[derive(Debug)]
pub struct Beside {
    function: Py<PyAny>,
    arguments: Py<PyDict>,
    /// The context variables of the task.
    context: Py<PyAny>,
    answer: Option<Answer>,
}

/// The future of a call, and where its event loop is told.
struct Answer {
    hub: Arc<Hub>,
    future: Py<PyAny>,
}

/// The outcome of a call, for the event loop; `None` if the function was not called.
#[derive(Debug)]
struct Outcome {
    future: Py<PyAny>,
    outcome: Mutex<Option<PyResult<Py<PyAny>>>>,
}

impl Beside {
    pub fn new(
        hub: &Arc<Hub>,
        function: Py<PyAny>,
        arguments: Py<PyDict>,
        context: Py<PyAny>,
        future: Py<PyAny>,
    ) -> Self {
        let hub = hub.clone();
        Self {
            function,
            arguments,
            context,
            answer: Some(Answer { hub, future }),
        }
    }

    /// Calls the function, unless its task was cancelled meanwhile.
    pub fn run(mut self, py: Python<'_>) {
        let Some(answer) = self.answer.take() else {
            return;
        };
        let outcome =
            caught(|| self.called(py, &answer)).unwrap_or_else(|panic| Err(panic.exception(py)));
        answer.give(Some(outcome));
    }

    fn called(&self, py: Python<'_>, answer: &Answer) -> PyResult<Py<PyAny>> {
        if answer
            .future
            .bind(py)
            .call_method0(intern!(py, "done"))?
            .is_truthy()?
        {
            return Ok(py.None());
        }
        let arguments = self.arguments.bind(py);
        let run = (self.function.bind(py),);
        let context = self.context.bind(py);
        let made = context.call_method(intern!(py, "run"), run, Some(arguments));
        match made {
            Ok(value) => Ok(value.unbind()),
            // A future takes any exception but this one.
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                let instead = PyRuntimeError::new_err("the function raised StopIteration");
                instead.set_cause(py, Some(error));
                Err(instead)
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("future", &self.future)
            .finish_non_exhaustive()
    }
}

impl Answer {
    fn give(self, outcome: Option<PyResult<Py<PyAny>>>) {
        let outcome = Outcome {
            future: self.future,
            outcome: Mutex::new(outcome),
        };
        self.hub.inbox.push(Event::Notified(Arc::new(outcome)));
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer.give(None);
        }
    }
}

impl Notified for Outcome {
    fn notified(&self, py: Python<'_>) -> PyResult<()> {
        let outcome = self
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let outcome = outcome.unwrap_or_else(|| {
            let why = "the server has ended, and with it the threads for plain functions";
            Err(PyRuntimeError::new_err(why))
        });
        future::settle(py, &self.future, outcome.map(|value| value.into_bound(py)))
    }
}
