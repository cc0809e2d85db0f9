//! Runs handlers within what the observer of their request puts around them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::connection::RequestScope;

/// Runs `future` with each of its polls within `scope`.
pub(crate) async fn scoped<F: Future<Output = ()>>(scope: RequestScope, future: F) {
    let mut future = pin!(future);
    poll_fn(move |cx| {
        let mut polled = Poll::Pending;
        scope.enter(&mut || polled = future.as_mut().poll(cx));
        polled
    })
    .await;
}

/// Calls `run` within `scope`, if there is one.
pub(crate) fn within<T>(scope: Option<RequestScope>, run: impl FnOnce() -> T) -> Option<T> {
    let Some(scope) = scope else {
        return Some(run());
    };
    let (mut run, mut made) = (Some(run), None);
    scope.enter(&mut || made = run.take().map(|run| run()));
    made
}
