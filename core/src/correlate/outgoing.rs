//! Requests of this side that wait for an outcome, shared between threads.
//!
//! A lock is as fast here as a lock-free table: measured with register, submit, poll, complete and take
//! on one to eight threads, both took the same time, and the threads meet at the submission queue anyway.

use std::fmt;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::arena::Arena;
use super::key::RequestKey;
use crate::sync::{Mutex, MutexGuard};

/// Why a request was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unregistered {
    /// The table's limit of pending requests is reached.
    Full,
    /// The table was closed.
    Closed,
}

impl fmt::Display for Unregistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many requests are pending",
            Self::Closed => "the connection is closed",
        })
    }
}

impl std::error::Error for Unregistered {}

/// Requests of this side that wait for an outcome `T`.
///
/// Each registered request ends exactly once: by the first [`complete`](Self::complete) (an answer,
/// a deadline, a cancellation by another thread), by its waiter's [`cancel`](Self::cancel), or by
/// [`close`](Self::close). Later calls learn that they are late. All methods may be called from any
/// thread. They hold a lock for a few instructions; no waker is woken and no outcome dropped under it.
/// Allocates only while the table grows to its largest number of simultaneous requests.
pub struct PendingRequests<T> {
    table: Mutex<Table<T>>,
}

struct Table<T> {
    requests: Arena<Request<T>>,
    /// Requests without an outcome.
    pending: usize,
    is_closed: bool,
}

struct Request<T> {
    /// `None` while the request is pending.
    outcome: Option<T>,
    /// Waits for the outcome.
    waker: Option<Waker>,
}

impl<T> PendingRequests<T> {
    /// An empty table for at most `max_pending` simultaneous requests (and at most 2^20 − 1).
    /// Allocates nothing yet.
    pub fn new(max_pending: usize) -> Self {
        Self {
            table: Mutex::new(Table {
                requests: Arena::new(max_pending),
                pending: 0,
                is_closed: false,
            }),
        }
    }

    /// Has the ids of requests begin at a random place, so that they differ from those of a table that takes this one's
    /// answers by mistake. For a table without requests. `chance` is random.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub(crate) fn number_apart(&self, chance: u32) {
        self.lock().requests.begin_with(chance.into());
    }

    /// Starts a request. The number of its key is the id on the wire. The caller becomes the
    /// waiter: it must [`poll`](Self::poll) until the outcome is there, or
    /// [`cancel`](Self::cancel).
    ///
    /// # Errors
    ///
    /// [`Unregistered`] when the table is full or closed.
    #[inline]
    pub fn register(&self) -> Result<RequestKey, Unregistered> {
        let mut table = self.lock();
        if table.is_closed {
            return Err(Unregistered::Closed);
        }
        let registered = table.requests.insert(|| Request {
            outcome: None,
            waker: None,
        });
        let key = registered.ok_or(Unregistered::Full)?;
        table.pending += 1;
        Ok(key)
    }

    /// Settles a request and wakes its waiter.
    ///
    /// # Errors
    ///
    /// Returns `outcome` if the key is stray: never registered, cancelled, already settled, or of
    /// an earlier use of its slot.
    #[inline]
    pub fn complete(&self, key: RequestKey, outcome: T) -> Result<(), T> {
        let mut table = self.lock();
        let request = table.requests.get_mut(key);
        let Some(request) = request.filter(|request| request.outcome.is_none()) else {
            return Err(outcome);
        };
        request.outcome = Some(outcome);
        let waker = request.waker.take();
        table.pending -= 1;
        drop(table);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Ends a request for its waiter. `true`: the request was still pending, so the peer should be
    /// notified; `false`: it was settled, and its outcome is dropped. In both cases the key becomes
    /// invalid.
    ///
    /// Only the waiter may call this: a waiter cancelled by another thread is not woken. To end a
    /// request from elsewhere, [`complete`](Self::complete) it with an error.
    #[inline]
    pub fn cancel(&self, key: RequestKey) -> bool {
        let mut table = self.lock();
        let removed = table.requests.remove(key);
        let was_pending = removed.as_ref().is_some_and(|it| it.outcome.is_none());
        table.pending -= usize::from(was_pending);
        drop(table);
        drop(removed);
        was_pending
    }

    /// Returns the outcome, once; the key is invalid after that. Until the outcome is there,
    /// returns `Pending` and wakes `cx` when it comes. Any [`Waker`](std::task::Waker) will do:
    /// that of a task, of a parked thread, or one that posts to a queue.
    ///
    /// `Ready(None)` means that nothing waits under this key.
    #[inline]
    pub fn poll(&self, key: RequestKey, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut table = self.lock();
        let Some(request) = table.requests.get_mut(key) else {
            return Poll::Ready(None);
        };
        if request.outcome.is_some() {
            let settled = table.requests.remove(key);
            drop(table);
            return Poll::Ready(settled.and_then(|request| request.outcome));
        }
        let old = match &mut request.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            waker => waker.replace(cx.waker().clone()),
        };
        drop(table);
        drop(old);
        Poll::Pending
    }

    /// Accepts no more requests, and settles every pending one with a value made by `outcome`.
    pub fn close(&self, outcome: impl Fn() -> T) {
        let mut table = self.lock();
        table.is_closed = true;
        table.pending = 0;
        let mut wakers = Vec::new();
        for request in table.requests.values_mut() {
            if request.outcome.is_none() {
                wakers.extend(request.waker.take());
                request.outcome = Some(outcome());
            }
        }
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The number of requests without an outcome.
    pub fn pending_count(&self) -> usize {
        self.lock().pending
    }

    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for PendingRequests<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests")
            .field("pending_count", &self.pending_count())
            .finish_non_exhaustive()
    }
}
