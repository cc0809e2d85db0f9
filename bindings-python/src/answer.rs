//! The result of a client's request, parsed when it is accessed.

use mcpbolt::message::Message;
use pyo3::prelude::*;

use crate::read;

/// The result of a client's request.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Answer(pub Message);

#[pymethods]
impl Answer {
    /// Parses the result into Python objects, anew on each call.
    fn parse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        read::value(py, self.0.as_ref().result().unwrap_or("{}"))
    }

    /// Returns the result as JSON text, as it came.
    fn json(&self) -> &str {
        self.0.as_ref().result().unwrap_or("{}")
    }
}
