//! Runs a handler's future so that it may panic or be cancelled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::correlate::Cancelled;
use crate::panics::contain;

/// A handler's future.
pub(crate) type Made<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The end of a handler.
pub(crate) enum Outcome<T> {
    Made(T),
    Panicked,
    Cancelled,
}

const HANDLER: &str = "a handler";

/// Runs the future of `make` until it completes, panics or is cancelled. Panics in `make` count
/// too, and callers do not see the text of a panic. The future is dropped as soon as the call is cancelled.
pub(crate) fn guarded<T>(cancelled: Cancelled, make: impl FnOnce() -> Made<T>) -> Guarded<T> {
    Guarded {
        cancelled,
        state: contain(HANDLER, make).map_or(State::Panicked, State::Running),
    }
}

enum State<T> {
    Running(Made<T>),
    Panicked,
    Over,
}

pub(crate) struct Guarded<T> {
    cancelled: Cancelled,
    state: State<T>,
}

impl<T> Guarded<T> {
    /// Drops the future, which may panic, too.
    fn end(&mut self) {
        if let State::Running(made) = std::mem::replace(&mut self.state, State::Over) {
            contain(HANDLER, || drop(made));
        }
    }
}

impl<T> Future for Guarded<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let this = &mut *self;
        if !this.cancelled.is_over() {
            let made = match &mut this.state {
                State::Running(made) => made,
                State::Panicked => return Poll::Ready(Outcome::Panicked),
                State::Over => return Poll::Ready(Outcome::Cancelled),
            };
            match contain(HANDLER, || made.as_mut().poll(cx)) {
                Some(Poll::Ready(made)) => return Poll::Ready(Outcome::Made(made)),
                Some(Poll::Pending) => {}
                None => return Poll::Ready(Outcome::Panicked),
            }
        }
        // A handler that completes at once never registers for cancellation, which takes a slot.
        std::task::ready!(Pin::new(&mut this.cancelled).poll(cx));
        this.end();
        Poll::Ready(Outcome::Cancelled)
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        self.end();
    }
}
