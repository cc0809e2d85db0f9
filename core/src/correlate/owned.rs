//! Requests of ours where one thread owns the connection and its waiters: no atomics.

use super::arena::Arena;
use super::key::RequestKey;
use super::outgoing::Unregistered;

/// Requests of this side that wait for an outcome, for one owner. Holds what is to happen with
/// the outcome, `W`: a callback, a waker, a place in a queue. Whoever takes the waiter out
/// settles the request, so it ends exactly once.
///
/// Keys and wire ids are those of [`Outgoing`](super::Outgoing). Allocates only while it grows.
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

    /// The waiter, for the outcome that has come: an answer, a cancel, a deadline. `None` when
    /// the key is a stray.
    #[inline]
    pub fn settle(&mut self, key: RequestKey) -> Option<W> {
        self.waiters.remove(key)
    }

    /// The waiter of a pending request.
    #[inline]
    pub fn waiter_mut(&mut self, key: RequestKey) -> Option<&mut W> {
        self.waiters.get_mut(key)
    }

    /// Admits no further request and hands every waiter to `settle`.
    pub fn close(&mut self, mut settle: impl FnMut(RequestKey, W)) {
        self.closed = true;
        for (key, waiter) in self.waiters.drain() {
            settle(key, waiter);
        }
    }

    /// Requests without an outcome.
    pub fn pending_count(&self) -> usize {
        self.waiters.len()
    }
}
