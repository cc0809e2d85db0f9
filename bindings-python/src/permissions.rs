//! Permissions on their own, for programs that check names and URIs themselves.

use mcpbolt::policy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The engine's part of a `PermissionManager`.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Permissions(policy::Permissions);

#[pymethods]
impl Permissions {
    #[new]
    fn new(json: &str) -> PyResult<Self> {
        let read = serde_json::from_str(json);
        let wrong = |why: serde_json::Error| PyValueError::new_err(format!("permissions: {why}"));
        read.map(Self).map_err(wrong)
    }

    fn may_read(&self, uri: &str) -> bool {
        self.0.may_read(uri)
    }

    fn may_call(&self, tool: &str) -> bool {
        self.0.may_call(tool)
    }
}
