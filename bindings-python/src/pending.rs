//! A call of a tool that the program looks at before its function does.

use std::sync::Arc;

use mcpbolt::error::RequestError;
use mcpbolt::handler::Operation;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answer::exception;
use crate::context::Context;
use crate::kept::{Finished, KeptCall, Results};
use crate::outcome::{self, errors};
use crate::session::Work;
use crate::target::Target;
use crate::tool_answer::ToolAnswer;
use crate::{call, write};

/// The call, its arguments as they came or as they were cleaned.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Pending {
    target: Arc<Target>,
    /// That of the tool.
    number: u32,
    context: Py<Context>,
    arguments: String,
}

impl Pending {
    pub fn of(py: Python<'_>, work: &Work, number: u32) -> PyResult<Self> {
        let message = work.call.message.as_ref();
        Ok(Self {
            target: work.target.clone(),
            number,
            context: Py::new(py, Context::begin(py, work)?)?,
            arguments: message.arguments().unwrap_or("{}").to_owned(),
        })
    }
}

#[pymethods]
impl Pending {
    #[getter]
    fn context(&self, py: Python<'_>) -> Py<Context> {
        self.context.clone_ref(py)
    }

    /// The arguments, made anew each time.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        call::given(py, &self.arguments)
    }

    /// The same call with other arguments, which have to fit the tool's schema, too.
    fn cleaned(&self, py: Python<'_>, arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let arguments = write::json(arguments)?;
        let catalog = &self.context.get().session.hub.catalog;
        let registry = catalog.live.offer().registry;
        if let Err(why) = registry.check_arguments(self.number, &arguments) {
            let error = errors(py)?.action_error.bind(py);
            return Err(PyErr::from_value(error.call1(("VALIDATION_ERROR", why))?));
        }
        Ok(Self {
            target: self.target.clone(),
            number: self.number,
            context: self.context.clone_ref(py),
            arguments,
        })
    }

    /// The same call where results are kept, unless that of this one is not to be.
    fn ask(&self, results: &Results) -> Option<KeptCall> {
        let context = self.context.get();
        let name = context.message.as_ref().name()?;
        results.ask(&name, &self.arguments, context.inner.principal())
    }

    /// What the function gave back, as the result of the call.
    fn finished(&self, value: Bound<'_, PyAny>) -> PyResult<Finished> {
        let made = ToolAnswer::of(&self.target, value)?;
        let session = &self.context.get().session;
        let misfit = outcome::misfit(session, &self.target, self.number, &made);
        Ok(Finished {
            is_good: misfit.is_none() && !made.is_error(),
            lowered: made.into_lowered(),
        })
    }

    /// What the function takes of them, unless the call was given up meanwhile.
    fn taken<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.context.get().inner.is_cancelled() {
            return Err(exception(py, &RequestError::Cancelled(None)));
        }
        let arguments = call::taken(py, self.arguments(py)?, &self.target.parameters)?;
        let context = || Ok(self.context.bind(py).clone());
        call::fitted(py, &self.target, arguments, context)
    }
}

/// The number of the tool, where a call of it is looked at first.
pub fn looked_at(work: &Work) -> Option<u32> {
    match Operation::from_target(work.call.target) {
        Operation::CallTool(number) if work.target.is_looked_at => Some(number),
        _ => None,
    }
}
