//! Converts the arguments of a call to those that its function takes.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::exceptions::errors;
use crate::read;
use crate::target::Target;

/// Parses the arguments of a tool or a prompt.
pub fn given<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyDict>> {
    let invalid = |error: PyErr| invalid(py, &format!("invalid arguments: {}", error.value(py)));
    read::object(py, json).map_err(invalid)
}

/// Makes the arguments that the function is called with, without the context.
///
/// # Errors
/// `InvalidArguments`, whose text the caller may see.
pub fn fitted<'py>(
    py: Python<'py>,
    target: &Target,
    given: Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    match (&target.plain, &target.prepare) {
        (Some(plain), _) if plain.take(&given) => Ok(given),
        (_, Some(prepare)) => Ok(prepare.bind(py).call1((given,))?.cast_into()?),
        (_, None) => taken(py, given, &target.parameters),
    }
}

/// The arguments that the function has parameters for; others, if the schema allows them, are dropped.
fn taken<'py>(
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

/// `InvalidArguments` with that text.
pub fn invalid(py: Python<'_>, why: &str) -> PyErr {
    match errors(py).and_then(|errors| errors.invalid_arguments.bind(py).call1((why,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
