//! Prepares the arguments of one call and calls the function.

use std::sync::atomic::Ordering;

use mcpbolt::connection::Operation;
use mcpbolt::mcp::Method;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::arguments::{fitted, given};
use crate::context::Context;
use crate::pending::Pending;
use crate::read;
use crate::session::Work;

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
    let run = intern!(py, "run");
    match work.span() {
        None => context.call_method(run, (function,), Some(&arguments)),
        Some((telemetry, span)) => {
            context.call_method1(run, (&telemetry.called, span, function, arguments))
        }
    }
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
    if target.is_layered {
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "pending"), Pending::of(py, work)?)?;
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
            given(py, message.arguments().unwrap_or("{}"))?
        }
        _ => PyDict::new(py),
    };
    let arguments = fitted(py, target, arguments)?;
    if let Some(name) = &target.context {
        arguments.set_item(name, Context::begin(py, work)?)?;
    }
    Ok(arguments)
}
