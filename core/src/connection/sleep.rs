//! Waiting for time to pass, on the connection's own timers: for handlers without a runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::handle::Handle;
use super::queue::Submission;

/// Ends after a while. See [`Handle::sleep`].
///
/// # Cancel safety
/// May be dropped at any time: the task is forgotten at once, the timer when its time has come.
#[derive(Debug)]
pub struct Sleep {
    handle: Handle,
    duration: Duration,
    sleeper: Option<Arc<Sleeper>>,
}

#[derive(Debug, Default)]
struct Sleeper(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    over: bool,
    waker: Option<Waker>,
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            let mut state = sleeper.0.lock().unwrap_or_else(PoisonError::into_inner);
            let forgotten = state.waker.take();
            drop(state);
            drop(forgotten);
        }
    }
}

/// What the driver keeps of it: dropped when the time has come, or will not come any more.
#[derive(Debug)]
pub(crate) struct Alarm(Arc<Sleeper>);

impl Drop for Alarm {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.over = true;
        if let Some(waker) = state.waker.take() {
            drop(state);
            waker.wake();
        }
    }
}

impl Handle {
    /// Ends after `duration`, or when the connection does; counted from the first poll, on the
    /// timers of the connection's driver. Needs no runtime.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep {
            handle: self.clone(),
            duration,
            sleeper: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let begin = self.sleeper.is_none();
        let sleeper = self.sleeper.get_or_insert_default().clone();
        {
            let mut state = sleeper.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.over || self.handle.is_closed() {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
        }
        if begin {
            self.handle.submit(Submission::Sleep {
                alarm: Alarm(sleeper),
                duration: self.duration,
            });
        }
        Poll::Pending
    }
}
