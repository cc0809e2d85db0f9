//! Converts the arguments of a call to those that its function takes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};

use crate::exceptions::errors;
use crate::read;
use crate::target::Target;

/// Parses the arguments of a tool or a prompt.
pub fn given<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyDict>> {
    read::object(py, json).map_err(|error| invalid(py, &error))
}

/// Converts arguments to the types of the function's parameters, and adds the context.
pub fn fitted<'py>(
    py: Python<'py>,
    target: &Target,
    mut arguments: Bound<'py, PyDict>,
    context: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
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
