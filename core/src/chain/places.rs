//! The connections to a server, of which a limited number may be there at a time.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::parts::Parts;
use super::routes::Routes;
use crate::error::RequestError;
use crate::sync::lock;

/// How many connections to a server there are.
#[derive(Default)]
pub(super) struct Places(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    taken: usize,
    /// How many of these connections nobody uses any more, while something of them is left.
    left: usize,
    /// Those who wait for one of the latter.
    waiting: Vec<Waker>,
}

/// The place of a connection, until nothing of the connection is left: for a command, until its process has ended.
pub(super) struct Place {
    parts: Arc<Parts>,
    pub routes: Arc<Routes>,
    is_left: AtomicBool,
}

impl Place {
    /// Takes a place for a connection that one client has for itself, or that clients share. Waits if one is about to become free.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many connections.
    pub fn poll_take(
        parts: &Arc<Parts>,
        is_of_one: bool,
        cx: &Context<'_>,
    ) -> Poll<Result<Arc<Self>, RequestError>> {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let most = parts.external.max_connections;
        let mut counts = lock(&parts.places.0);
        if counts.taken >= most {
            if counts.taken - counts.left >= most {
                return Poll::Ready(Err(RequestError::Overloaded));
            }
            if !counts.waiting.iter().any(|it| it.will_wake(cx.waker())) {
                counts.waiting.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        counts.taken += 1;
        drop(counts);
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(Arc::new(Self {
            parts: parts.clone(),
            routes: Arc::new(Routes::new(number, is_of_one)),
            is_left: AtomicBool::new(false),
        })))
    }

    /// The same as a future.
    ///
    /// # Errors
    /// As [`poll_take`](Self::poll_take).
    pub async fn take(parts: &Arc<Parts>, is_of_one: bool) -> Result<Arc<Self>, RequestError> {
        poll_fn(|cx| Self::poll_take(parts, is_of_one, cx)).await
    }

    /// Nobody uses the connection any more.
    pub fn leave(&self) {
        if !self.is_left.swap(true, Ordering::AcqRel) {
            lock(&self.parts.places.0).left += 1;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
        let mut counts = lock(&self.parts.places.0);
        counts.taken -= 1;
        counts.left -= 1;
        let waiting = std::mem::take(&mut counts.waiting);
        drop(counts);
        self.parts.connection_ended(self.routes.connection);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The use of a connection. Its place is left when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Use(Arc<Leaving>);

struct Leaving(Arc<Place>);

impl Use {
    pub fn of(place: Arc<Place>) -> Self {
        Self(Arc::new(Leaving(place)))
    }

    pub fn place(&self) -> &Arc<Place> {
        &self.0.0
    }

    pub fn routes(&self) -> &Arc<Routes> {
        &self.0.0.routes
    }

    /// How many clones there are.
    pub fn count(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}
