//! Catches panics where the interpreter or the engine calls this package: the current call fails with the
//! panic's text, and the thread goes on.
//!
//! Each guarded place has a name. In builds with debug assertions, `_panic_at(name)` makes the place panic
//! the next time it is passed, for tests.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mcpbolt::connection::{Handle, Replies, ReplyTo};
use mcpbolt::mcp::ErrorKind;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A caught panic, with its text.
#[derive(Debug)]
pub struct Panicked(String);

/// Runs `act` and catches a panic. This package goes on using locks that a panic has poisoned, since every
/// critical section leaves its data consistent.
///
/// # Errors
/// `act` panicked.
pub fn caught<T>(act: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| Panicked::of(&*panic))
}

impl Panicked {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self(text.unwrap_or("no text").to_owned())
    }

    /// Answers a call with the panic as an error.
    pub fn answer(&self, replies: &mut Replies, to: &ReplyTo) {
        replies.error(to, ErrorKind::Internal, &self.to_string(), None);
    }

    /// Answers a call with the panic as an error, and sends the answer at once.
    pub fn answer_now(&self, handle: &Handle, to: &ReplyTo) {
        self.answer(&mut handle.replies(), to);
    }

    /// The panic as an exception of the package.
    pub fn exception(&self, py: Python<'_>) -> PyErr {
        let made = py
            .import("mcpbolt._errors")
            .and_then(|errors| errors.getattr("McpError")?.call1((self.to_string(),)));
        made.map_or_else(
            |_| PyRuntimeError::new_err(self.to_string()),
            PyErr::from_value,
        )
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine panicked: {}", self.0)
    }
}

#[cfg(debug_assertions)]
static ARMED: std::sync::Mutex<Option<String>> = std::sync::Mutex::new(None);

/// Makes the place of that name panic the next time it is passed, once.
#[cfg(debug_assertions)]
#[pyfunction]
pub fn _panic_at(place: String) {
    *ARMED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(place);
}

/// A place that a test can make panic.
#[cfg(debug_assertions)]
pub fn point(place: &str) {
    let mut armed = ARMED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if armed.take_if(|armed| armed == place).is_some() {
        drop(armed);
        panic!("as a test wants, at {place}");
    }
}

/// A place that a test can make panic; it does nothing in this build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_: &str) {}
