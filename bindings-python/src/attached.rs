//! What the interpreter keeps for a thread of the engine's.
//!
//! A1: the interpreter counts the users of a thread's state. The count is raised once and lowered once, on
//! that thread, both times while it is attached.

use pyo3::ffi::{PyGILState_Ensure, PyGILState_Release, PyGILState_STATE};
use pyo3::prelude::*;

/// Runs on the interpreter, whose state for this thread stays until the thread ends: made anew for each
/// visit, it took a mapping of memory and its pages with it.
///
/// `None` when the interpreter is shutting down.
pub fn visit<T>(run: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    thread_local!(static STAYS: Stays = Stays::new());
    Python::try_attach(|py| {
        STAYS.with(|_| ());
        run(py)
    })
}

/// One more user of the thread's state than there is code that runs.
struct Stays;

impl Stays {
    /// On a thread that is attached.
    fn new() -> Self {
        // SAFETY: A1, this thread is attached; the count that this raises `drop` lowers again.
        unsafe { PyGILState_Ensure() };
        Self
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        // An interpreter that is shutting down has the states of all threads.
        let _ = Python::try_attach(|_| {
            // SAFETY: A1, as `new` raised the count once, on this thread, which is attached again and
            // stays so until `try_attach` ends.
            unsafe { PyGILState_Release(PyGILState_STATE::PyGILState_LOCKED) };
        });
    }
}
