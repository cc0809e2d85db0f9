//! Prepares the arguments of one call and calls the function.

use std::sync::atomic::Ordering;

use mcpbolt::connection::Operation;
use mcpbolt::mcp::Method;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyString};

use crate::context::Context;
use crate::outcome::errors;
use crate::pending::{self, Pending};
use crate::read;
use crate::session::Work;
use crate::target::Target;

/// Calls the function in its own copy of the context variables.
pub fn invoke<'py>(py: Python<'py>, work: &Work) -> PyResult<Bound<'py, PyAny>> {
    let arguments = arguments(py, work)?;
    let function = work.function().bind(py);
    let context = work
        .session
        .hub
        .interpreter
        .context
        .bind(py)
        .call_method0(intern!(py, "copy"))?;
    context.call_method(intern!(py, "run"), (function,), Some(&arguments))
}

/// Makes the arguments by name. [`Work::function`] is valid only after this.
pub fn arguments<'py>(py: Python<'py>, work: &Work) -> PyResult<Bound<'py, PyDict>> {
    let Work { call, target, .. } = work;
    let message = call.message.as_ref();
    if target.is_native {
        let json = message.arguments().unwrap_or("{}");
        let straight = target.straight.as_ref();
        if let Some(arguments) = straight.and_then(|straight| straight.arguments(py, json)) {
            work.is_straight.store(true, Ordering::Relaxed);
            return Ok(arguments);
        }
        let arguments = PyDict::new(py);
        if call.method == Some(Method::ReadResource) {
            arguments.set_item(intern!(py, "uri"), message.uri().unwrap_or_default())?;
        } else {
            arguments.set_item(intern!(py, "arguments"), PyBytes::new(py, json.as_bytes()))?;
        }
        let revision = call.reply.revision().rules().name;
        arguments.set_item(intern!(py, "revision"), PyString::intern(py, revision))?;
        return Ok(arguments);
    }
    if let Some(number) = pending::looked_at(work) {
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "pending"), Pending::of(py, work, number)?)?;
        return Ok(arguments);
    }
    let arguments = match call.operation {
        Operation::Complete => {
            let arguments = PyDict::new(py);
            let params = message.params().unwrap_or("{}");
            arguments.set_item("request", read::object(py, params)?)?;
            arguments
        }
        Operation::ReadTemplate(_) => {
            let uri = message.uri().unwrap_or_default();
            let template = target.template.as_ref();
            let matched = template.and_then(|template| template.match_uri(&uri));
            let variables = PyDict::new(py);
            for (name, value) in matched.unwrap_or_default() {
                variables.set_item(name, value)?;
            }
            variables
        }
        Operation::CallTool(_) | Operation::GetPrompt(_) => {
            let given = given(py, message.arguments().unwrap_or("{}"))?;
            taken(py, given, &target.parameters)?
        }
        _ => PyDict::new(py),
    };
    fitted(py, target, arguments, || {
        Bound::new(py, Context::begin(py, work)?)
    })
}

/// Parses the arguments of a tool or a prompt.
pub fn given<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyDict>> {
    read::object(py, json).map_err(|error| invalid(py, &error))
}

/// Converts arguments to the types of the function's parameters, and adds the context.
pub fn fitted<'py>(
    py: Python<'py>,
    target: &Target,
    mut arguments: Bound<'py, PyDict>,
    context: impl FnOnce() -> PyResult<Bound<'py, Context>>,
) -> PyResult<Bound<'py, PyDict>> {
    for name in &target.integers {
        // In JSON Schema and JavaScript, 1.0 is an integer.
        if let Some(value) = arguments
            .get_item(name)?
            .filter(|v| v.is_exact_instance_of::<PyFloat>())
        {
            arguments.set_item(name, value.call_method0(intern!(py, "__int__"))?)?;
        }
    }
    if let Some(prepare) = &target.prepare {
        arguments = prepare.bind(py).call1((arguments,))?.cast_into()?;
    }
    if let Some(name) = &target.context {
        arguments.set_item(name.bind(py), context()?)?;
    }
    Ok(arguments)
}

/// The arguments that the function has parameters for; others, if the schema allows them, are dropped.
pub fn taken<'py>(
    py: Python<'py>,
    given: Bound<'py, PyDict>,
    parameters: &[Py<PyString>],
) -> PyResult<Bound<'py, PyDict>> {
    let mut count = 0;
    for name in parameters {
        count += usize::from(given.contains(name)?);
    }
    if count == given.len() {
        return Ok(given);
    }
    let taken = PyDict::new(py);
    for name in parameters {
        if let Some(value) = given.get_item(name)? {
            taken.set_item(name, value)?;
        }
    }
    Ok(taken)
}

fn invalid(py: Python<'_>, error: &PyErr) -> PyErr {
    match errors(py) {
        Ok(errors) => {
            let text = format!("invalid arguments: {}", error.value(py));
            match errors.tool_error.bind(py).call1((text,)) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            }
        }
        Err(error) => error,
    }
}
