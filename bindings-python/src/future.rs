//! Settles futures of the event loop and calls functions of the program, on the loop's thread.

use pyo3::prelude::*;

use crate::failures;

/// Settles a future, unless it is done: its task may have been cancelled meanwhile.
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

/// Calls a callback of a client; logs any exception it raises.
pub fn tell<'py>(
    py: Python<'py>,
    function: Option<&Py<PyAny>>,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) {
    if let Some(Err(error)) = function.map(|function| function.bind(py).call1(arguments)) {
        failures::of_client(py, error);
    }
}
