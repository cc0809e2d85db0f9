//! Outgoing requests for a single thread that owns the connection and its waiters: no atomics.

use super::arena::Arena;
use super::key::RequestKey;
use super::outgoing::Unregistered;

/// Outgoing requests that wait for an outcome, for a single owner. Stores a waiter `W` for each: a
/// callback, a waker, a place in a queue. Removing the waiter settles the request, so each request
/// ends exactly once.
///
/// Keys and wire ids are those of [`Outgoing`](super::PendingRequests). Allocates only while it grows.
#[derive(Debug)]
pub struct OwnedOutgoing<W> {
    waiters: Arena<W>,
    closed: bool,
}

impl<W> OwnedOutgoing<W> {
    /// An empty table for at most `max_pending` simultaneous requests (and at most 2^20 − 1).
    pub fn new(max_pending: usize) -> Self {
        Self {
            waiters: Arena::new(max_pending),
            closed: false,
        }
    }

    /// Starts a request.
    ///
    /// # Errors
    ///
    /// [`Unregistered`] when the table is full or closed.
    #[inline]
    pub fn register(&mut self, waiter: W) -> Result<RequestKey, Unregistered> {
        if self.closed {
            return Err(Unregistered::Closed);
        }
        self.waiters.insert(waiter).map_err(|_| Unregistered::Full)
    }

    /// Removes and returns the waiter, because the outcome has come: an answer, a cancellation or a
    /// deadline. `None` if the key is stray.
    #[inline]
    pub fn settle(&mut self, key: RequestKey) -> Option<W> {
        self.waiters.remove(key)
    }

    /// The waiter of a pending request.
    #[inline]
    pub fn waiter_mut(&mut self, key: RequestKey) -> Option<&mut W> {
        self.waiters.get_mut(key)
    }

    /// Accepts no more requests, and passes every waiter to `settle`.
    pub fn close(&mut self, mut settle: impl FnMut(RequestKey, W)) {
        self.closed = true;
        for (key, waiter) in self.waiters.drain() {
            settle(key, waiter);
        }
    }

    /// The number of requests without an outcome.
    pub fn pending_count(&self) -> usize {
        self.waiters.len()
    }
}
