//! Work that a cancellation ends.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::correlate::Cancelled;

/// Resolves to `None` if `cancelled` completes first.
pub(super) async fn unless<T>(
    work: impl Future<Output = T>,
    mut cancelled: Cancelled,
) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Pin::new(&mut cancelled).poll(cx).map(|()| None),
    })
    .await
}
