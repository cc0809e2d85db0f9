//! Keeps the interpreter's thread state for a thread of the engine, and tells sub-interpreters.
//!
//! A1: the interpreter counts the users of a thread state. The count is raised once and lowered once, on
//! that thread, both times while it is attached.
//! A2: an attached thread has an interpreter, whose state is valid meanwhile.

use pyo3::exceptions::PyImportError;
use pyo3::ffi::{
    PyGILState_Ensure, PyGILState_Release, PyGILState_STATE, PyInterpreterState_Get,
    PyInterpreterState_GetID,
};
use pyo3::prelude::*;

/// Refuses a sub-interpreter: its threads and objects would be taken for those of the main one. From 3.12 on the
/// interpreter does so itself.
///
/// # Errors
/// `ImportError`.
pub fn check_interpreter(_: Python<'_>) -> PyResult<()> {
    // SAFETY: A2, as the token says that this thread is attached.
    match unsafe { PyInterpreterState_GetID(PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "mcpbolt does not support subinterpreters; import it in the main interpreter",
        )),
    }
}

/// Runs a function attached to the interpreter. The thread state stays until the thread ends; a new one for
/// each visit would cost a memory mapping and its pages each time.
///
/// Returns `None` if the interpreter is shutting down.
pub fn visit<T>(run: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    thread_local!(static STAYS: Stays = Stays::new());
    Python::try_attach(|py| {
        STAYS.with(|_| ());
        run(py)
    })
}

/// An additional user of the thread state, which keeps it alive between visits.
struct Stays;

impl Stays {
    /// Adds the user. The thread must be attached.
    fn new() -> Self {
        // SAFETY: A1, this thread is attached; `drop` lowers the count that this raises.
        unsafe { PyGILState_Ensure() };
        Self
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        // An interpreter that is shutting down frees the states of all threads itself.
        let _ = Python::try_attach(|_| {
            // SAFETY: A1, as `new` raised the count once, on this thread, which is attached again and
            // stays so until `try_attach` ends.
            unsafe { PyGILState_Release(PyGILState_STATE::PyGILState_LOCKED) };
        });
    }
}
