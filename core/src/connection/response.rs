//! The future of the answer to a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::queue::Submission;
use super::shared::Shared;
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::message::Message;

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
