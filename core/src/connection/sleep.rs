//! A sleep for handlers that have no async runtime: it runs on the connection's own timers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::handle::Handle;
use super::queue::Submission;
use super::timers::{Alarm, Sleeper};

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

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            sleeper.watch(None);
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
        if self.handle.is_closed() || sleeper.watch(Some(cx.waker().clone())) {
            return Poll::Ready(());
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
