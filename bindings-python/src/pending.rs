//! A tool call that passes through hooks, a result cache or `Steps` around its function.

use std::sync::Arc;

use mcpbolt::connection::Operation;
use mcpbolt::error::RequestError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments;
use crate::context::Context;
use crate::exceptions::exception;
use crate::outcome;
use crate::result_cache::{CachedCall, Results};
use crate::session::{Session, Work};
use crate::target::Target;
use crate::tool_answer::{Finished, ToolAnswer};
use crate::write;

/// The call, with its arguments as they came or as a `sanitise` hook returned them.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Pending {
    target: Arc<Target>,
    session: Arc<Session>,
    /// The number of the tool.
    number: u32,
    context: Py<Context>,
    arguments: String,
    /// The arguments that the function takes, without the context.
    fitted: Py<PyDict>,
}

impl Pending {
    pub fn of(py: Python<'_>, work: &Work, number: u32) -> PyResult<Self> {
        let arguments = work.call.message.as_ref().arguments().unwrap_or("{}");
        let given = arguments::given(py, arguments)?;
        Ok(Self {
            fitted: arguments::fitted(py, &work.target, given)?.unbind(),
            target: work.target.clone(),
            session: work.session.clone(),
            number,
            context: Py::new(py, Context::begin(py, work)?)?,
            arguments: arguments.to_owned(),
        })
    }
}

#[pymethods]
impl Pending {
    #[getter]
    fn context(&self, py: Python<'_>) -> Py<Context> {
        self.context.clone_ref(py)
    }

    /// Parses the arguments, anew on each call.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        arguments::given(py, &self.arguments)
    }

    /// Returns the same call with other arguments, which must be valid too.
    fn cleaned(&self, py: Python<'_>, arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let arguments = write::json(arguments)?;
        if self.target.prepare.is_none() {
            let catalog = &self.session.hub.served;
            let registry = catalog.live.snapshot().registry;
            if let Err(why) = registry.check_arguments(self.number, &arguments) {
                return Err(arguments::invalid(py, &why));
            }
        }
        let given = arguments::given(py, &arguments)?;
        Ok(Self {
            fitted: arguments::fitted(py, &self.target, given)?.unbind(),
            target: self.target.clone(),
            session: self.session.clone(),
            number: self.number,
            context: self.context.clone_ref(py),
            arguments,
        })
    }

    /// Looks up the call in a result cache; `None` if its result is not to be cached.
    fn ask(&self, results: &Results) -> Option<CachedCall> {
        let context = self.context.get();
        let name = context.message.as_ref().name()?;
        let budget = &context.inner.connection().config().budget;
        let asked = (&*name, &*self.arguments);
        results.ask(asked, context.inner.principal(), budget)
    }

    /// Converts the function's return value to the result of the call.
    fn finished(&self, value: Bound<'_, PyAny>) -> PyResult<Finished> {
        let made = ToolAnswer::of(&self.target, value)?;
        let misfit = outcome::misfit(&self.session, &self.target, self.number, &made);
        Ok(Finished {
            is_good: misfit.is_none() && !made.is_error(),
            lowered: made.into_lowered(),
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.context)?;
        visit.call(&self.fitted)
    }

    /// The arguments that the function takes. Raises `RequestCancelled` if the call was cancelled
    /// meanwhile.
    fn taken<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.context.get().inner.is_cancelled() {
            return Err(exception(py, &RequestError::Cancelled(None)));
        }
        let arguments = self.fitted.bind(py).copy()?;
        if let Some(name) = &self.target.context {
            arguments.set_item(name, &self.context)?;
        }
        Ok(arguments)
    }
}

/// The number of the tool, if its calls pass through a `Pending`.
pub fn looked_at(work: &Work) -> Option<u32> {
    match work.call.operation {
        Operation::CallTool(number) if work.target.is_looked_at => Some(number),
        _ => None,
    }
}
