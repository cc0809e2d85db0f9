//! Does anybody still want the answer?

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use super::arena::Arena;
use super::key::{MAX_SLOTS, RequestKey};
use super::sync::{Mutex, MutexGuard};

/// Tells a handler, and what it started, that its request is no longer wanted.
///
/// One word to hold; cloning counts a reference; asking is one load. A token allocates once,
/// and again only for those that wait and for children. Cancelled stays cancelled, with the
/// first reason (R-CAN-13).
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    node: Arc<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Set once, under the lock of `waiting`: the reason, if one was given.
    cancelled: OnceLock<Option<Arc<str>>>,
    /// Made when somebody first waits: most requests are never cancelled and never asked.
    waiting: Mutex<Option<Box<Waiting>>>,
    /// Kept so that whoever cancels an ancestor reaches this node, though nobody else holds what
    /// lies between.
    parent: Option<Arc<Node>>,
}

/// Who is told. Empty, and staying so, once the token is cancelled.
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
    /// A token that nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has it been cancelled?
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.node.cancelled.get().is_some()
    }

    /// Why it was cancelled, if it was and a reason was given.
    pub fn reason(&self) -> Option<&str> {
        self.node.cancelled.get()?.as_deref()
    }

    /// Cancels this token and every child, and wakes whoever waits. `false` when it was
    /// cancelled before; the first reason stays.
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

    /// A token that is cancelled with this one, and may be cancelled without it.
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

    /// Ends when the token is cancelled.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; it takes its waker along.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            token: self.clone(),
            place: None,
        }
    }
}

impl Node {
    /// Marks the node; what waited for that, unless it was marked before.
    fn set(&self, reason: &Option<Arc<str>>) -> Option<Option<Box<Waiting>>> {
        let mut waiting = self.lock();
        self.cancelled.set(reason.clone()).ok()?;
        Some(waiting.take())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Waiting>>> {
        // Every critical section leaves the lists whole, also when it panics.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Node {
    /// Step by step: a long line of children would be a deep recursion.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.parent.take();
        }
    }
}

/// Future of [`CancelToken::cancelled`]. It is `Unpin` and may be polled wherever it lies.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Cancelled {
    token: CancelToken,
    /// Where the token keeps the waker.
    place: Option<RequestKey>,
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
        let fresh = cx.waker().clone();
        let node = &this.token.node;
        let mut guard = node.lock();
        if node.cancelled.get().is_some() {
            return Poll::Ready(());
        }
        let waiting = guard.get_or_insert_default();
        let left = match this.place.and_then(|place| waiting.wakers.get_mut(place)) {
            Some(waker) => Some(mem::replace(waker, fresh)),
            None => match waiting.wakers.insert(fresh) {
                Ok(place) => {
                    this.place = Some(place);
                    None
                }
                // A million others wait: come back later.
                Err(fresh) => {
                    fresh.wake_by_ref();
                    Some(fresh)
                }
            },
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
