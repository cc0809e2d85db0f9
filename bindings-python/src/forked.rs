//! Guards the parent's clients and servers in a forked process, which lacks the threads that drive them.
//!
//! A fork copies only the thread that forks. In the child, waiting for an engine thread of the parent would
//! never end, and a lock that such a thread held stays locked. So in the child the parent's clients and
//! servers fail at once, and none of their parts is dropped.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

/// The number of forks between the process that loaded the package and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Has each forked child count its fork.
///
/// # Errors
/// Any error of the interpreter.
pub fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    // Windows has neither forks nor this function.
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let forked = pyo3::types::PyCFunction::new_closure(py, None, None, |_, _| {
        FORKS.fetch_add(1, Ordering::Relaxed);
    })?;
    let named = pyo3::types::PyDict::new(py);
    named.set_item("after_in_child", forked)?;
    os.call_method("register_at_fork", (), Some(&named))
        .map(drop)
}

/// A part of the engine that is driven by threads of the process that made it.
#[derive(Debug)]
pub struct Here<T> {
    own: Arc<T>,
    forks: u32,
}

impl<T> Here<T> {
    pub fn new(own: T) -> Self {
        Self {
            own: Arc::new(own),
            forks: FORKS.load(Ordering::Relaxed),
        }
    }

    /// Whether this process is a fork of the one that made it.
    pub fn is_forked(&self) -> bool {
        self.forks != FORKS.load(Ordering::Relaxed)
    }

    /// # Errors
    /// This process is a fork of the one that made it.
    pub fn check(&self, py: Python<'_>, what: &str) -> PyResult<()> {
        if !self.is_forked() {
            return Ok(());
        }
        let text = format!(
            "the {what} belongs to the parent of this process, which os.fork() made: its threads are \
             not here; make another {what} in this process"
        );
        let class = py.import("mcpbolt._errors")?.getattr("Misuse")?;
        Err(PyErr::from_value(class.call1((text,))?))
    }
}

impl<T> Deref for Here<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

impl<T> Drop for Here<T> {
    fn drop(&mut self) {
        if self.is_forked() {
            std::mem::forget(self.own.clone());
        }
    }
}
