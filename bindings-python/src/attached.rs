//! Keeps the interpreter's thread state for a thread of the engine.
//!
//! A1: the interpreter counts the users of a thread state. The count is raised once and lowered once, on
//! that thread, both times while it is attached.

use pyo3::ffi::{PyGILState_Ensure, PyGILState_Release, PyGILState_STATE};
use pyo3::prelude::*;

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
