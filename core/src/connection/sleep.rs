//! A sleep for handlers that have no async runtime: it runs on the connection's own timers.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::handle::Handle;
use super::queue::Submission;

/// Future that completes after a while. See [`Handle::sleep`].
///
/// # Cancel safety
/// May be dropped at any time. The waker is dropped at once; the timer remains until it is due.
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

/// The driver's half of a sleep. Dropping it ends the sleep, whether the timer fired or the connection
/// was dropped.
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
    /// Completes after `duration`, or when the connection ends. The time counts from the first poll and
    /// runs on the timers of the connection's driver; no async runtime is needed.
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
