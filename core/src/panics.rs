//! Functions of the program that may panic: the panic ends there, and the operator learns of it.
//!
//! The program's panic hook runs first: unless the program replaced it, it writes the panic to stderr, with a
//! backtrace if `RUST_BACKTRACE` asks for one. With the feature `tracing` the panic is an event, too, with its
//! place and a backtrace. A backtrace can only be taken in a panic hook. So the first function that is run here
//! adds a hook, which takes it for these functions alone and then calls the hook that was there before.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a function of the program; `None` if it panics. `what` names it in the log.
pub(crate) fn contain<T>(what: &'static str, run: impl FnOnce() -> T) -> Option<T> {
    #[cfg(feature = "tracing")]
    let watch = watch::Watch::begin();
    let outcome = catch_unwind(AssertUnwindSafe(run));
    #[cfg(feature = "tracing")]
    let note = watch.end();
    match outcome {
        Ok(value) => Some(value),
        Err(panic) => {
            #[cfg(feature = "tracing")]
            watch::log(what, &*panic, note);
            #[cfg(not(feature = "tracing"))]
            let _ = what;
            discard(panic);
            None
        }
    }
}

/// Drops what a panic carries, which may panic itself.
pub(crate) fn discard(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}

#[cfg(feature = "tracing")]
mod watch {
    use std::any::Any;
    use std::backtrace::Backtrace;
    use std::cell::{Cell, RefCell};
    use std::sync::Once;
    use std::{panic, thread};

    /// What a hook knows about a panic.
    pub struct Note {
        place: String,
        backtrace: Backtrace,
    }

    thread_local! {
        static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
        static LAST: RefCell<Option<Box<Note>>> = const { RefCell::new(None) };
    }

    /// A function that runs. Others may run within it, even while it unwinds.
    pub struct Watch {
        was_watched: bool,
        outer: Option<Box<Note>>,
    }

    impl Watch {
        pub fn begin() -> Self {
            static HOOK: Once = Once::new();
            // A thread that unwinds cannot replace the hook.
            if !HOOK.is_completed() && !thread::panicking() {
                HOOK.call_once(add_hook);
            }
            Self {
                was_watched: IS_WATCHED.replace(true),
                outer: LAST.try_with(RefCell::take).ok().flatten(),
            }
        }

        pub fn end(self) -> Option<Box<Note>> {
            IS_WATCHED.set(self.was_watched);
            // A thread that ends may have none any more.
            let last = LAST.try_with(|last| last.replace(self.outer));
            last.ok().flatten()
        }
    }

    fn add_hook() {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if IS_WATCHED.get() {
                let place = panic.location();
                let note = Note {
                    place: place.map(ToString::to_string).unwrap_or_default(),
                    backtrace: Backtrace::force_capture(),
                };
                let _ = LAST.try_with(|last| last.replace(Some(Box::new(note))));
            }
            before(panic);
        }));
    }

    pub fn log(what: &'static str, panic: &(dyn Any + Send), note: Option<Box<Note>>) {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("not a text");
        match note {
            Some(note) => {
                let Note { place, backtrace } = *note;
                tracing::error!(panic = text, %place, %backtrace, "{what} panicked");
            }
            // It was resumed from another thread, or the program has replaced the hook.
            None => tracing::error!(panic = text, "{what} panicked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            std::panic::panic_any("again");
        }
    }

    #[test]
    fn a_panic_ends_where_it_is_contained_whatever_it_carries() {
        assert_eq!(contain("a test", || 7), Some(7));
        let panics = || -> u8 { panic!("no") };
        assert_eq!(contain("a test", panics), None);
        let carries = || -> u8 { std::panic::panic_any(PanicsWhenDropped) };
        assert_eq!(contain("a test", carries), None);
        let nested = || contain("a test", || -> u8 { panic!("within") });
        assert_eq!(contain("a test", nested), Some(None));
    }
}
