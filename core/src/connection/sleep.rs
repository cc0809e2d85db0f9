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
/// May be dropped at any time. The waker is dropped at once; the timer remains until it is due.
#[derive(Debug)]
pub struct Sleep {
    handle: Handle,
    duration: Duration,
    /// Completes when the driver drops the alarm; `None` before the first poll.
    end: Option<Cancelled>,
}

impl Handle {
    /// Completes after `duration`, or when the connection ends. The time counts from the first poll and
    /// runs on the timers of the connection's driver; no async runtime is needed.
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
        let end = this.end.get_or_insert_with(|| {
            let token = CancelToken::new();
            let end = token.cancelled();
            let (alarm, duration) = (SleepGuard(token), this.duration);
            this.handle.submit(Submission::Sleep { alarm, duration });
            end
        });
        Pin::new(end).poll(cx)
    }
}
