//! Passes audit events to Python, on a separate thread, so that no engine thread waits for the interpreter.

use mcpbolt::policy::Policy;
use pyo3::prelude::*;

use crate::{failures, read};

/// Has each event passed to `report` as a dict, in order, through the policy's queue. `failed` gets its exceptions.
///
/// # Errors
/// The thread cannot be started.
pub fn reported(policy: Policy, report: Py<PyAny>, failed: Py<PyAny>) -> PyResult<Policy> {
    // A thread that waits for room in the queue releases the interpreter, which `report` needs.
    let queue = policy.audit_queue().wait_by(|wait| {
        let attached = Python::try_attach(|py| py.detach(wait));
        if attached.is_none() {
            wait();
        }
    });
    let closing = queue.clone();
    let policy = policy.audit_queued(queue, move |event| {
        let told = Python::try_attach(|py| {
            let told = read::value(py, event).and_then(|event| report.call1(py, (event,)));
            if let Err(error) = told {
                failures::report(py, &failed, error, "the audit failed", None);
            }
        });
        // The interpreter has ended, so no more events can be passed on.
        if told.is_none() {
            closing.close();
        }
    })?;
    Ok(policy)
}
