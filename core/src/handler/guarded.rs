//! Runs a handler's future so that it may panic or be cancelled.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::correlate::Cancelled;

/// A handler's future.
pub(crate) type Made<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The end of a handler.
pub(crate) enum Outcome<T> {
    Made(T),
    Panicked,
    Cancelled,
}

/// Runs the future of `make` until it completes, panics or is cancelled. Panics in `make` count
/// too.
pub(crate) fn guarded<T>(cancelled: Cancelled, make: impl FnOnce() -> Made<T>) -> Guarded<T> {
    let made = catch_unwind(AssertUnwindSafe(make));
    Guarded {
        cancelled,
        made: Some(made),
    }
}

/// Logs a panic, whose text callers do not see. The panic hook has written it to stderr, with the
/// backtrace that `RUST_BACKTRACE` asks for.
fn panicked<T>(panic: &(dyn Any + Send)) -> Outcome<T> {
    #[cfg(feature = "tracing")]
    {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(panic = text.unwrap_or("not a text"), "a handler panicked");
    }
    let _ = panic;
    Outcome::Panicked
}

pub(crate) struct Guarded<T> {
    cancelled: Cancelled,
    made: Option<Result<Made<T>, Box<dyn Any + Send>>>,
}

impl<T> Future for Guarded<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let this = &mut *self;
        if !this.cancelled.is_over() {
            let made = match &mut this.made {
                Some(Ok(made)) => made,
                Some(Err(panic)) => return Poll::Ready(panicked(&**panic)),
                None => return Poll::Ready(Outcome::Cancelled),
            };
            match catch_unwind(AssertUnwindSafe(|| made.as_mut().poll(cx))) {
                Ok(Poll::Ready(made)) => return Poll::Ready(Outcome::Made(made)),
                Ok(Poll::Pending) => {}
                Err(panic) => return Poll::Ready(panicked(&*panic)),
            }
        }
        // A handler that completes at once never registers for cancellation, which takes a slot.
        std::task::ready!(Pin::new(&mut this.cancelled).poll(cx));
        this.made = None;
        Poll::Ready(Outcome::Cancelled)
    }
}
