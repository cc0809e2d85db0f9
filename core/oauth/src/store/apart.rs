//! Blocking work on a thread of its own, awaited without a runtime.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

/// The result of work on another thread. Dropping it does not stop the work; the result is dropped on
/// that thread.
pub struct Apart<T>(Arc<Mutex<State<T>>>);

enum State<T> {
    Running(Option<Waker>),
    Done(io::Result<T>),
    Taken,
}

/// Runs `work` on a thread of its own. Stores do so a few times an hour, so threads are not kept.
pub fn apart<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<Apart<T>> {
    let state = Arc::new(Mutex::new(State::Running(None)));
    let report = Report(Some(Arc::clone(&state)));
    thread::Builder::new()
        .name("mcpbolt-store".into())
        .spawn(move || report.done(work()))?;
    Ok(Apart(state))
}

impl<T> Future for Apart<T> {
    type Output = io::Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Running(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Done(_) | State::Taken => match std::mem::replace(&mut *state, State::Taken) {
                State::Done(result) => Poll::Ready(result),
                _ => Poll::Ready(Err(io::Error::other("polled again after its end"))),
            },
        }
    }
}

/// Tells the waiting future how the work ended, also when it panics.
struct Report<T>(Option<Arc<Mutex<State<T>>>>);

impl<T> Report<T> {
    fn done(mut self, result: io::Result<T>) {
        self.tell(result);
    }

    fn tell(&mut self, result: io::Result<T>) {
        let Some(state) = self.0.take() else { return };
        let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, State::Done(result));
        drop(held);
        if let State::Running(Some(waker)) = before {
            waker.wake();
        }
    }
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        self.tell(Err(io::Error::other(
            "the credential store's thread panicked",
        )));
    }
}
