//! Work that something else ends, and works at once in one task.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::correlate::CancelToken;

/// Resolves to `None` if `end` completes first.
pub(super) async fn unless<T>(
    work: impl Future<Output = T>,
    end: impl Future<Output = ()>,
) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}

/// Resolves to `None` if `end` completes first, unless the work ends at once when `late` is cancelled then.
pub(super) async fn before<T>(
    work: impl Future<Output = T>,
    end: impl Future<Output = ()>,
    late: &CancelToken,
) -> Option<T> {
    let (mut work, mut end) = (pin!(work), pin!(end));
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        std::task::ready!(end.as_mut().poll(cx));
        late.cancel(None);
        match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}

/// A part of work that is done at once.
pub(super) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What all works resolve to, in their order.
pub(super) async fn all<'a, T>(works: impl Iterator<Item = Work<'a, T>>) -> Vec<T> {
    let mut open: Vec<_> = works.map(|work| (work, None)).collect();
    poll_fn(|cx| {
        for (work, done) in &mut open {
            if done.is_none()
                && let Poll::Ready(it) = work.as_mut().poll(cx)
            {
                *done = Some(it);
            }
        }
        match open.iter().all(|(_, done)| done.is_some()) {
            true => Poll::Ready(
                open.iter_mut()
                    .filter_map(|(_, done)| done.take())
                    .collect(),
            ),
            false => Poll::Pending,
        }
    })
    .await
}
