//! Several futures at once, within one task.

use std::future::poll_fn;
use std::task::Poll;

/// Runs futures at the same time. Returns what they return, in their order.
pub async fn join_all<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut left: Vec<_> = all.map(|one| Some(Box::pin(one))).collect();
    let mut done: Vec<_> = left.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (one, done) in left.iter_mut().zip(&mut done) {
            if let Some(running) = one
                && let Poll::Ready(output) = running.as_mut().poll(cx)
            {
                (*one, *done) = (None, Some(output));
            }
        }
        match left.iter().all(Option::is_none) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
