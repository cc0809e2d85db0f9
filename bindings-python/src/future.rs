//! Futures of the event loop, and functions of the user's, called from its thread.

use pyo3::prelude::*;

/// Gives a future its outcome, unless it has one: its task may have been cancelled meanwhile.
pub fn settle(
    py: Python<'_>,
    future: &Py<PyAny>,
    outcome: PyResult<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let future = future.bind(py);
    if !future.call_method0("done")?.is_truthy()? {
        match outcome {
            Ok(value) => future.call_method1("set_result", (value,))?,
            Err(error) => future.call_method1("set_exception", (error.into_value(py),))?,
        };
    }
    Ok(())
}

/// Calls a function of the user's; what it raises is shown and goes no further.
pub fn tell<'py>(
    py: Python<'py>,
    function: Option<&Py<PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) {
    if let Some(Err(error)) = function.map(|function| function.bind(py).call1(arguments)) {
        error.display(py);
    }
}
