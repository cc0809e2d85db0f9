//! Reports exceptions that no caller can be given: to the log, and to the hooks of the program.

use pyo3::intern;
use pyo3::prelude::*;

use crate::pending::Pending;
use crate::session::Work;

/// Passes an exception to a server's `failed` function: see [`Served::failed`](crate::served::Served::failed).
pub fn report(
    py: Python<'_>,
    failed: &Py<PyAny>,
    error: PyErr,
    what: &str,
    pending: Option<&Bound<'_, Pending>>,
) {
    let value = error.into_value(py);
    let told = failed.bind(py).call1((&value, what, pending));
    if let Err(worse) = told {
        PyErr::from_value(value.into_bound(py).into_any()).display(py);
        worse.display(py);
    }
}

/// Reports the exception of a call.
pub fn of_call(py: Python<'_>, work: &Work, error: &PyErr) {
    let message = work.call.message.as_ref();
    let method = message.method().unwrap_or_default();
    let what = match message.name().or_else(|| message.uri()) {
        Some(name) => format!("{method} {name:?}"),
        None => method.into_owned(),
    };
    let failed = work.target.failed.as_ref();
    let failed = failed.unwrap_or(&work.session.hub.served.failed);
    let hooks = failed.bind(py).getattr(intern!(py, "has_hooks"));
    let has_hooks = hooks.and_then(|has| has.is_truthy()).unwrap_or(true);
    let made = || Bound::new(py, Pending::of(py, work).ok()?).ok();
    let pending = has_hooks.then(made).flatten();
    report(py, failed, error.clone_ref(py), &what, pending.as_ref());
}

/// Logs an exception of a callback of a client.
pub fn of_client(py: Python<'_>, error: PyErr) {
    let value = error.into_value(py);
    let told = py.import("mcpbolt._failures").and_then(|log| {
        log.getattr("logged")?
            .call1(("mcpbolt.client", "a callback", &value))
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
