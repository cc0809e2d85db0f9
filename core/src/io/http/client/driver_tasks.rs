//! The tasks of a client's driver, and the requests in flight among them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// A task with a result `R`: boxed where it is made, since its future is long and each move would copy it.
pub type DriverTask<R> = Pin<Box<dyn Future<Output = R> + Send>>;

/// Tasks with results `R`, some of which are requests with keys `K`, each with a value `V`.
pub struct DriverTasks<K, V, R> {
    tasks: FuturesUnordered<Abortable<DriverTask<R>>>,
    requests: HashMap<K, Request<V>>,
    counted: usize,
}

struct Request<V> {
    value: V,
    abort: AbortHandle,
    counts: bool,
}

impl<K: Hash + Eq, V, R> DriverTasks<K, V, R> {
    pub fn new() -> Self {
        Self {
            tasks: FuturesUnordered::new(),
            requests: HashMap::new(),
            counted: 0,
        }
    }

    /// The number of requests that count toward the limit of concurrent ones.
    pub fn counted(&self) -> usize {
        self.counted
    }

    /// Starts a task that is not a request.
    pub fn spawn(&mut self, task: DriverTask<R>) -> AbortHandle {
        let (abort, registration) = AbortHandle::new_pair();
        self.tasks.push(Abortable::new(task, registration));
        abort
    }

    /// Starts a request. Aborts the request with the same key, if there is one, and returns its value.
    pub fn request(
        &mut self,
        (key, value): (K, V),
        counts: bool,
        task: DriverTask<R>,
    ) -> Option<V> {
        let before = self.remove(&key);
        let abort = self.spawn(task);
        self.counted += usize::from(counts);
        let request = Request {
            value,
            abort,
            counts,
        };
        self.requests.insert(key, request);
        before
    }

    /// Forgets a request that has ended, or aborts it.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let request = self.requests.remove(key)?;
        self.counted -= usize::from(request.counts);
        request.abort.abort();
        Some(request.value)
    }

    /// Aborts all requests, but not the other tasks.
    pub fn abort_requests(&mut self) {
        for (_, request) in self.requests.drain() {
            request.abort.abort();
        }
        self.counted = 0;
    }

    /// Drops all tasks.
    pub fn clear(&mut self) {
        self.tasks.clear();
    }

    /// The result of the next task that ends by itself.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<R> {
        loop {
            match self.tasks.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(result))) => return Poll::Ready(result),
                Poll::Ready(Some(Err(_aborted))) => {}
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}
