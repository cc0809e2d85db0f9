//! How many connections to a server there may be at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::error::RequestError;
use crate::sync::lock;

/// The places of the connections to a server.
pub(super) struct Places {
    most: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    taken: usize,
    /// How many of these are of connections that nobody uses any more, while something of them is left.
    left: usize,
    /// Those who wait for one of the latter.
    waiting: Vec<Waker>,
}

/// The place of a connection, until this is dropped.
pub(super) struct Place {
    all: Arc<Places>,
    is_left: AtomicBool,
}

impl Places {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            counts: Mutex::default(),
        })
    }

    /// Takes a place. Waits if one is about to become free.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many connections.
    pub fn poll_take(self: &Arc<Self>, cx: &Context<'_>) -> Poll<Result<Place, RequestError>> {
        let mut counts = lock(&self.counts);
        if counts.taken >= self.most {
            if counts.taken - counts.left >= self.most {
                return Poll::Ready(Err(RequestError::Overloaded));
            }
            if !counts.waiting.iter().any(|it| it.will_wake(cx.waker())) {
                counts.waiting.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        counts.taken += 1;
        drop(counts);
        Poll::Ready(Ok(Place {
            all: self.clone(),
            is_left: AtomicBool::new(false),
        }))
    }
}

impl Place {
    /// Nobody uses the connection any more.
    pub fn leave(&self) {
        if !self.is_left.swap(true, Ordering::AcqRel) {
            lock(&self.all.counts).left += 1;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
        let mut counts = lock(&self.all.counts);
        counts.taken -= 1;
        counts.left -= 1;
        let waiting = std::mem::take(&mut counts.waiting);
        drop(counts);
        waiting.into_iter().for_each(Waker::wake);
    }
}
