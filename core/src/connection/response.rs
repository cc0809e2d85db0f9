//! The futures that callers await: for a connection to open, and for the answer to a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use super::queue::Submission;
use super::shared::Shared;
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::mcp::Revision;
use crate::message::Message;

/// Future that completes when the connection is open or has failed. See [`Handle::opened`](super::Handle::opened).
///
/// # Cancel safety
/// May be dropped at any time.
#[derive(Debug)]
pub struct Connecting<'a> {
    shared: &'a Shared,
}

impl<'a> Connecting<'a> {
    pub(super) fn new(shared: &'a Shared) -> Self {
        Self { shared }
    }
}

impl Future for Connecting<'_> {
    type Output = Result<Revision, RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared;
        let mut openers = shared
            .openers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = shared.closed.get() {
            return Poll::Ready(Err(RequestError::Closed(reason.clone())));
        }
        if let Some(revision) = shared.revision() {
            return Poll::Ready(Ok(revision));
        }
        if !openers.iter().any(|waker| waker.will_wake(cx.waker())) {
            openers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Future of the answer to one request. See
/// [`Handle::request`](super::Handle::request).
///
/// # Cancel safety
/// Dropping it cancels the request: the peer is told, and a late answer is discarded.
#[derive(Debug)]
#[must_use = "dropping the response cancels the request"]
pub struct Response {
    shared: Option<Arc<Shared>>,
    key: RequestKey,
}

impl Response {
    pub(super) fn new(shared: Arc<Shared>, key: RequestKey) -> Self {
        let shared = Some(shared);
        Self { shared, key }
    }

    /// The request's id on the wire, for logs.
    pub fn key(&self) -> RequestKey {
        self.key
    }

    /// Cancels the request and tells the peer why. Does nothing if the answer has arrived already.
    pub fn cancel(mut self, reason: Option<&str>) {
        self.give_up(reason);
    }

    fn give_up(&mut self, reason: Option<&str>) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        if shared.outgoing.cancel(self.key) {
            shared.submit(Submission::Cancelled {
                key: self.key,
                reason: reason.map(Box::from),
            });
        }
    }
}

const ENDED: RequestError = RequestError::Misuse("polled after it had ended");

impl Future for Response {
    type Output = Result<Message, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(shared) = self.shared.take() else {
            return Poll::Ready(Err(ENDED));
        };
        match shared.outgoing.poll(self.key, cx) {
            Poll::Ready(Some(outcome)) => Poll::Ready(outcome),
            Poll::Ready(None) => Poll::Ready(Err(ENDED)),
            Poll::Pending => {
                self.shared = Some(shared);
                Poll::Pending
            }
        }
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.give_up(None);
    }
}
