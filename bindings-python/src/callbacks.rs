//! The futures and callbacks of a client.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// The futures and callbacks of a client.
pub struct Callbacks {
    pub opened: Py<PyAny>,
    pub ended: Py<PyAny>,
    pub on_notice: Py<PyAny>,
    pub on_asked: Py<PyAny>,
    pub on_given_up: Py<PyAny>,
    pub on_stderr: Option<Py<PyAny>>,
}

impl Callbacks {
    /// Shows them to the garbage collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Self {
            opened,
            ended,
            on_notice,
            on_asked,
            on_given_up,
            on_stderr,
        } = self;
        for one in [opened, ended, on_notice, on_asked, on_given_up] {
            visit.call(one)?;
        }
        visit.call(on_stderr)
    }
}
