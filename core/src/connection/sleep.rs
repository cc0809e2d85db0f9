//! A sleep for handlers that have no async runtime: it runs on the connection's own timers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::handle::Handle;
use super::queue::Submission;
use super::timers::SleepGuard;
use crate::correlate::{CancelToken, Cancelled};

/// Future that completes after a while. See [`Handle::sleep`].
///
/// # Cancel safety
/// May be dropped at any time. The waker is dropped at once; the timer remains until it is due, or until there
/// are more timers of dropped sleeps than others.
#[derive(Debug)]
pub struct Sleep {
    handle: Handle,
    duration: Duration,
    /// Completes when the driver drops the alarm; `None` before the first poll.
    end: Option<(CancelToken, Cancelled)>,
}

impl Handle {
    /// Completes after `duration`, or when the connection ends. The time counts from the first poll and
    /// runs on the timers of the connection's driver; no async runtime is needed. Completes at once if
    /// [`MAX_SLEEPS`](crate::limits::MAX_SLEEPS) sleep already.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep {
            handle: self.clone(),
            duration,
            end: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.handle.is_closed() {
            return Poll::Ready(());
        }
        let this = &mut *self;
        let (_, end) = this.end.get_or_insert_with(|| {
            let token = CancelToken::new();
            let end = token.cancelled();
            let (alarm, duration) = (SleepGuard(token.clone()), this.duration);
            this.handle.submit(Submission::Sleep { alarm, duration });
            (token, end)
        });
        Pin::new(end).poll(cx)
    }
}

/// Tells the timers that nobody waits.
impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((token, end)) = self.end.take() {
            // With its waker, so that the task is not woken.
            drop(end);
            token.cancel(None);
        }
    }
}
