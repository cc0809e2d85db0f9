//! Stops panics where JavaScript or the engine calls this package: the current call fails with the panic's
//! text, and its thread continues.
//!
//! Functions that JavaScript calls are guarded by `#[napi(catch_unwind)]`, which throws the panic, or by
//! [`quietly`] if no caller could catch it. In builds with debug assertions, `panicAt(name)` makes the place
//! with that name panic the next time it is passed, for tests.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mcpbolt::connection::{Handle, Replies, ReplyTo};
use mcpbolt::mcp::ErrorKind;

/// A panic that was stopped, with its text.
#[derive(Debug)]
pub struct Panicked(String);

/// Runs `act`, and stops a panic. Locks that a panic poisons stay in use everywhere in this package: every
/// critical section leaves what it guards consistent.
///
/// # Errors
/// `act` panicked.
pub fn caught<T>(act: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| Panicked::of(&*panic))
}

/// Runs something whose result nothing awaits: a panic is printed to stderr and otherwise ignored.
pub fn quietly(act: impl FnOnce()) {
    let _ = caught(act);
}

impl Panicked {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self(text.unwrap_or("no text").to_owned())
    }

    /// Answers a call with the panic.
    pub fn answer(&self, replies: &mut Replies, to: &ReplyTo) {
        replies.error(to, ErrorKind::Internal, &self.to_string(), None);
    }

    /// Answers a call with the panic, at once.
    pub fn answer_now(&self, handle: &Handle, to: &ReplyTo) {
        self.answer(&mut handle.replies(), to);
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine panicked: {}", self.0)
    }
}

impl From<Panicked> for std::io::Error {
    fn from(panic: Panicked) -> Self {
        Self::other(panic.to_string())
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::{Mutex, PoisonError};

    use napi_derive::napi;

    static ARMED: Mutex<Option<String>> = Mutex::new(None);

    /// Makes the place with that name panic the next time it is passed, once.
    #[napi(catch_unwind)]
    pub fn panic_at(place: String) {
        *ARMED.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }

    /// A place that a test can make panic.
    pub fn point(place: &str) {
        let mut armed = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        if armed.take_if(|armed| armed == place).is_some() {
            drop(armed);
            panic!("as a test wants, at {place}");
        }
    }
}
#[cfg(debug_assertions)]
pub use armed::point;

/// A place that a test can make panic; does nothing in this build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_: &str) {}
