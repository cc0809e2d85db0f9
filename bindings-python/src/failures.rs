//! Reports exceptions of the program: to its log, and to its hooks.

use mcpbolt::connection::Operation;
use pyo3::intern;
use pyo3::prelude::*;

use crate::pending::Pending;
use crate::session::Work;

/// Passes an exception to a server's `failed` function: see [`Served::failed`](crate::served::Served::failed).
/// Returns the text for the client.
pub fn report(
    py: Python<'_>,
    failed: &Py<PyAny>,
    error: PyErr,
    what: &str,
    pending: Option<&Bound<'_, Pending>>,
) -> Option<String> {
    let value = error.into_value(py);
    let told = failed.bind(py).call1((&value, what, pending));
    match told.and_then(|text| text.extract()) {
        Ok(text) => text,
        Err(worse) => {
            PyErr::from_value(value.into_bound(py).into_any()).display(py);
            worse.display(py);
            None
        }
    }
}

/// Reports the unexpected exception of a call; returns the text for the client, if it may be told one.
pub fn of_call(py: Python<'_>, work: &Work, error: &PyErr) -> Option<String> {
    let failed = failed_of(work);
    let hooks = failed.bind(py).getattr(intern!(py, "has_hooks"));
    let has_hooks = hooks.and_then(|has| has.is_truthy()).unwrap_or(true);
    let made = || Bound::new(py, Pending::of(py, work).ok()?).ok();
    let pending = has_hooks.then(made).flatten();
    let (what, _) = said(work);
    report(py, failed, error.clone_ref(py), &what, pending.as_ref())
}

/// Logs the `ToolError` of a call.
pub fn expected(py: Python<'_>, work: &Work, error: &PyErr) {
    let (what, name) = said(work);
    let expected = intern!(py, "expected");
    let told = failed_of(work)
        .bind(py)
        .call_method1(expected, (error.value(py), what, name));
    if let Err(worse) = told {
        worse.display(py);
    }
}

fn failed_of(work: &Work) -> &Py<PyAny> {
    let failed = work.target.failed.as_ref();
    failed.unwrap_or(&work.session.hub.served.failed)
}

/// Describes the failed call for the log, `Error calling tool 'add'`, and names its tool, prompt or resource.
fn said(work: &Work) -> (String, String) {
    let message = work.call.message.as_ref();
    let method = message.method().unwrap_or_default();
    let doing = match work.call.operation {
        Operation::CallTool(_) => "calling tool",
        Operation::ReadResource(_) | Operation::ReadTemplate(_) => "reading resource",
        Operation::GetPrompt(_) => "rendering prompt",
        _ => &format!("in {method}"),
    };
    match message.name().or_else(|| message.uri()) {
        Some(name) => (
            format!("Error {doing} '{}'", name.escape_debug()),
            name.into_owned(),
        ),
        None => (format!("Error in {method}"), String::new()),
    }
}

/// Logs an exception of a callback of a client.
pub fn of_client(py: Python<'_>, error: PyErr) {
    let value = error.into_value(py);
    let told = py.import("mcpbolt._failures").and_then(|log| {
        log.getattr("logged")?
            .call1(("mcpbolt.client", "a callback failed", &value))
    });
    if let Err(worse) = told {
        PyErr::from_value(value.into_bound(py).into_any()).display(py);
        worse.display(py);
    }
}

/// Logs the error of an event of a client instead of raising it, so that the other events are handled too.
pub fn settled(py: Python<'_>, outcome: PyResult<()>) {
    if let Err(error) = outcome {
        of_client(py, error);
    }
}
