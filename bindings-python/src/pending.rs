//! A call that passes through layers around its function: hooks, middleware, a result cache, `Steps`, dependencies.

use std::sync::Arc;

use mcpbolt::connection::Operation;
use mcpbolt::error::RequestError;
use mcpbolt::json::string;
use mcpbolt::mcp::Method;
use mcpbolt::message::{Field, MessageRef};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments;
use crate::beside::Beside;
use crate::context::Context;
use crate::exceptions::{exception, protocol_error};
use crate::outcome;
use crate::result_cache::{CachedCall, Results};
use crate::session::{Session, Work};
use crate::target::Target;
use crate::tool_answer::{Finished, ToolAnswer};
use crate::worker::Duty;
use crate::{failures, read, worker, write};

/// The call, with its arguments as they came or as a layer replaced them. It does not keep its session: tracebacks and
/// middleware may keep it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Pending {
    target: Arc<Target>,
    operation: Operation,
    context: Py<Context>,
    /// A JSON object: the arguments of a tool or a prompt, the variables of a template, or the params of a
    /// completion.
    arguments: String,
    /// The arguments that the function takes, without the context.
    fitted: Py<PyDict>,
    /// The page of a list, once it was asked for.
    page: PyOnceLock<Py<PyDict>>,
    /// The URI as the mounted server has it that the call has come to.
    local_uri: Option<String>,
}

impl Pending {
    pub fn of(py: Python<'_>, work: &Work) -> PyResult<Self> {
        let message = work.call.message.as_ref();
        let arguments = match work.call.operation {
            Operation::CallTool(_) | Operation::GetPrompt(_) => message.arguments(),
            Operation::Complete => message.params(),
            _ => None,
        };
        let arguments = match work.call.operation {
            Operation::ReadTemplate(_) => variables(&work.target, &message),
            _ => arguments.unwrap_or("{}").to_owned(),
        };
        Ok(Self {
            fitted: fitted(py, &work.target, work.call.operation, &arguments)?,
            target: work.target.clone(),
            operation: work.call.operation,
            context: Py::new(py, Context::begin(py, work)?)?,
            arguments,
            page: PyOnceLock::new(),
            local_uri: None,
        })
    }

    fn with_arguments(&self, py: Python<'_>, arguments: String) -> PyResult<Self> {
        Ok(Self {
            fitted: fitted(py, &self.target, self.operation, &arguments)?,
            target: self.target.clone(),
            operation: self.operation,
            context: self.context.clone_ref(py),
            arguments,
            page: PyOnceLock::new(),
            local_uri: self.local_uri.clone(),
        })
    }

    fn session_of(&self, py: Python<'_>) -> PyResult<Arc<Session>> {
        self.context.get().session(py)
    }

    fn message(&self) -> MessageRef<'_> {
        self.context.get().message.as_ref()
    }

    fn read_page<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let message = self.message();
        let method = message.method().and_then(|name| Method::parse(&name));
        let revision = self.context.get().inner.revision();
        let who = self.context.get().inner.verified();
        let session = self.session_of(py)?;
        let registry = session.hub.served.live.snapshot().registry;
        let cursor = message.raw(Field::Cursor);
        let page = method.and_then(|method| registry.list_page(method, revision, cursor, who));
        match page {
            Some(members) => read::object(py, &format!("{{{members}}}")),
            None => Err(protocol_error(py, "invalid_params", "unknown cursor")?),
        }
    }
}

/// The arguments that the function takes, of those in a request.
fn fitted(
    py: Python<'_>,
    target: &Target,
    operation: Operation,
    given: &str,
) -> PyResult<Py<PyDict>> {
    let mut given = arguments::given(py, given)?;
    if operation == Operation::Complete {
        let request = PyDict::new(py);
        request.set_item("request", given)?;
        given = request;
    }
    Ok(arguments::fitted(py, target, given)?.unbind())
}

/// The variables of a template in the URI of a request, as a JSON object.
fn variables(target: &Target, message: &MessageRef<'_>) -> String {
    let uri = message.uri().unwrap_or_default();
    let template = target.template.as_ref();
    let matched = template.and_then(|template| template.match_uri(&uri));
    let mut out = Vec::new();
    for (name, value) in matched.unwrap_or_default() {
        out.push(if out.is_empty() { b'{' } else { b',' });
        string::append(&mut out, &name);
        out.push(b':');
        string::append(&mut out, &value);
    }
    match String::from_utf8(out) {
        Ok(members) if !members.is_empty() => members + "}",
        _ => "{}".into(),
    }
}

#[pymethods]
impl Pending {
    #[getter]
    fn context(&self, py: Python<'_>) -> Py<Context> {
        self.context.clone_ref(py)
    }

    /// The method of the request, as MCP names it.
    #[getter]
    fn method(&self) -> String {
        let own = match self.operation {
            // In the action dialect the request's own method is the name of the action.
            Operation::CallTool(_) => Some("tools/call".into()),
            _ => self.message().method(),
        };
        own.unwrap_or_default().into_owned()
    }

    /// The name in the request.
    #[getter]
    fn name(&self) -> Option<String> {
        Some(self.message().name()?.into_owned())
    }

    /// The URI in the request.
    #[getter]
    fn uri(&self) -> Option<String> {
        Some(self.message().uri()?.into_owned())
    }

    /// The URI as the server has it that the call has come to.
    #[getter]
    fn local_uri(&self) -> Option<String> {
        self.local_uri.clone().or_else(|| self.uri())
    }

    /// Returns the same call in a mounted server, which has another URI for it.
    fn at(&self, py: Python<'_>, uri: String) -> PyResult<Self> {
        Ok(Self {
            local_uri: Some(uri),
            ..self.with_arguments(py, self.arguments.clone())?
        })
    }

    /// Parses the arguments, anew on each call.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        arguments::given(py, &self.arguments)
    }

    /// Returns the same call with other arguments, which must be valid too.
    fn cleaned(&self, py: Python<'_>, arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let arguments = write::json(arguments)?;
        if let (Operation::CallTool(number), None) = (self.operation, &self.target.prepare) {
            let session = self.session_of(py)?;
            let registry = session.hub.served.live.snapshot().registry;
            if let Err(why) = registry.check_arguments(number, &arguments) {
                return Err(arguments::invalid(py, &why));
            }
        }
        self.with_arguments(py, arguments)
    }

    /// The parts of the result that a tool's return value stands for: see [`Finished::parts`].
    fn parts<'py>(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = value.py();
        let lowered = ToolAnswer::of(&self.target, value)?.into_lowered();
        Finished::cached(lowered).parts(py)
    }

    /// Looks up the call in a result cache; `None` if its result is not to be cached.
    fn ask(&self, results: &Results) -> Option<CachedCall> {
        let context = self.context.get();
        let name = self.message().name()?;
        let budget = &context.inner.connection().config().budget;
        let asked = (&*name, &*self.arguments);
        results.ask(asked, context.inner.principal(), budget)
    }

    /// Converts the return value of a tool's function to the result of the call.
    fn finished(&self, value: Bound<'_, PyAny>) -> PyResult<Finished> {
        let session = self.session_of(value.py())?;
        let made = ToolAnswer::of(&self.target, value)?;
        let misfit = match self.operation {
            Operation::CallTool(number) => outcome::misfit(&session, &self.target, number, &made),
            _ => None,
        };
        Ok(Finished {
            is_good: misfit.is_none() && !made.is_error(),
            lowered: made.into_lowered(),
        })
    }

    /// The page of a list that the request asks for; the same object each time.
    fn page<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        let page = || self.read_page(py).map(Bound::unbind);
        Ok(self.page.get_or_try_init(py, page)?.bind(py))
    }

    /// The object that the connection keeps until it has ended and its last call too; `make` makes it.
    fn session<'py>(&self, make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.context.get().keeper(make.py())?.kept(make)
    }

    /// Reports an exception that no client is told about. `what` says what failed.
    fn failed(slf: &Bound<'_, Self>, error: Bound<'_, PyAny>, what: &str) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let session = this.session_of(py)?;
        let failed = this.target.failed.as_ref();
        let failed = failed.unwrap_or(&session.hub.served.failed);
        failures::report(py, failed, PyErr::from_value(error), what, Some(slf));
        Ok(())
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

    /// Has a worker thread call a plain function for a task of the event loop; `future` gets the outcome.
    fn beside(
        &self,
        py: Python<'_>,
        function: Py<PyAny>,
        arguments: Py<PyDict>,
        context: Py<PyAny>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let session = self.session_of(py)?;
        let hub = &session.hub;
        let duty = Duty::Beside(Beside::new(hub, function, arguments, context, future));
        let tag = session.tag();
        let nobody = None::<fn()>;
        hub.workers
            .push(tag, vec![duty], nobody, || worker::spawn(hub));
        Ok(())
    }

    /// Runs `wait`, which waits for another call. If a worker thread calls this, another one takes its place meanwhile.
    fn aside(&self, wait: &Bound<'_, PyAny>) -> PyResult<()> {
        let session = self.session_of(wait.py())?;
        let hub = &session.hub;
        hub.hand_over(&hub.answered);
        hub.workers
            .aside(|| hub.spawn_worker(), || wait.call0())
            .map(drop)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.context)?;
        visit.call(&self.fitted)
    }
}
