//! Cancellation of requests: whether an answer is still wanted.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::arena::Arena;
use super::key::{MAX_SLOTS, RequestKey};
use crate::sync::{Mutex, MutexGuard};

/// Tells a handler, and the work it started, that its request was cancelled.
///
/// A token is one pointer; cloning it increments a reference count, and asking is one atomic load.
/// A token allocates once, and again only for waiters and children. Once cancelled, it stays
/// cancelled, with the first reason (R-CAN-13).
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    node: Arc<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Set once, under the lock of `waiting`; holds the reason, if one was given.
    cancelled: OnceLock<Option<Arc<str>>>,
    /// Created by the first waiter or child: most requests have none and are never cancelled.
    waiting: Mutex<Option<Box<Waiting>>>,
    /// Keeps the ancestors alive, so that a cancellation of any of them reaches this node.
    parent: Option<Arc<Node>>,
}

/// Waiters and children of a token. Removed, and not created again, once the token is cancelled.
#[derive(Debug)]
struct Waiting {
    wakers: Arena<Waker>,
    children: Vec<Weak<Node>>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            wakers: Arena::new(MAX_SLOTS as usize),
            children: Vec::new(),
        }
    }
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the token was cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.node.cancelled.get().is_some()
    }

    /// The reason, if the token was cancelled with one.
    pub fn reason(&self) -> Option<&str> {
        self.node.cancelled.get()?.as_deref()
    }

    /// Cancels this token and all its descendants, and wakes their waiters. Returns `false` if the
    /// token was already cancelled; the first reason is kept.
    pub fn cancel(&self, reason: Option<&str>) -> bool {
        let reason = reason.map(Arc::from);
        let Some(waiting) = self.node.set(&reason) else {
            return false;
        };
        let mut left = Vec::from_iter(waiting);
        while let Some(mut waiting) = left.pop() {
            for (_, waker) in waiting.wakers.drain() {
                waker.wake();
            }
            let alive = waiting.children.iter().filter_map(Weak::upgrade);
            left.extend(alive.filter_map(|child| child.set(&reason)?));
        }
        true
    }

    /// A child token: cancelled when this one is, and can be cancelled on its own.
    pub fn child(&self) -> Self {
        let child = Self {
            node: Arc::new(Node {
                parent: Some(self.node.clone()),
                cancelled: OnceLock::new(),
                waiting: Mutex::default(),
            }),
        };
        let mut guard = self.node.lock();
        if let Some(reason) = self.node.cancelled.get() {
            drop(guard);
            child.node.set(reason);
            return child;
        }
        let waiting = guard.get_or_insert_default();
        if waiting.children.len() == waiting.children.capacity() {
            waiting.children.retain(|child| child.strong_count() > 0);
        }
        waiting.children.push(Arc::downgrade(&child.node));
        drop(guard);
        child
    }

    #[cfg(test)]
    pub(super) fn children_len(&self) -> usize {
        let waiting = self.node.lock();
        waiting.as_ref().map_or(0, |waiting| waiting.children.len())
    }

    /// Completes when the token is cancelled.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; dropping removes its waker.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            token: self.clone(),
            place: None,
            waker: None,
        }
    }
}

impl Node {
    /// Marks the node as cancelled and returns its waiters; `None` if it was already marked.
    fn set(&self, reason: &Option<Arc<str>>) -> Option<Option<Box<Waiting>>> {
        let mut waiting = self.lock();
        self.cancelled.set(reason.clone()).ok()?;
        Some(waiting.take())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Waiting>>> {
        // Every critical section keeps the lists consistent, even if it panics.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Node {
    /// Iterative, because a long chain of children would recurse deeply.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.parent.take();
        }
    }
}

/// Future of [`CancelToken::cancelled`]. It is `Unpin`, so it can be polled without pinning.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Cancelled {
    token: CancelToken,
    /// The key of the waker in the token.
    place: Option<RequestKey>,
    /// That waker. A task that polls again costs no lock.
    waker: Option<Waker>,
}

#[cfg(any(feature = "server", feature = "client"))]
impl Cancelled {
    /// Whether the token is cancelled, without waiting for it.
    pub(crate) fn is_over(&self) -> bool {
        self.token.is_cancelled()
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.token.is_cancelled() {
            return Poll::Ready(());
        }
        let is_same = |waker: &Waker| waker.will_wake(cx.waker());
        if this.place.is_some() && this.waker.as_ref().is_some_and(is_same) {
            return Poll::Pending;
        }
        let fresh = cx.waker().clone();
        this.waker = Some(fresh.clone());
        let node = &this.token.node;
        let mut guard = node.lock();
        if node.cancelled.get().is_some() {
            return Poll::Ready(());
        }
        let waiting = guard.get_or_insert_default();
        let left = match this.place.and_then(|place| waiting.wakers.get_mut(place)) {
            Some(waker) => Some(mem::replace(waker, fresh)),
            None => {
                this.place = waiting.wakers.insert(|| fresh);
                if this.place.is_none() {
                    // About a million others wait: poll again later.
                    cx.waker().wake_by_ref();
                }
                None
            }
        };
        drop(guard);
        drop(left);
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut waiting = self.token.node.lock();
        let waker = match &mut *waiting {
            Some(waiting) => waiting.wakers.remove(place),
            None => None,
        };
        drop(waiting);
        drop(waker);
    }
}
