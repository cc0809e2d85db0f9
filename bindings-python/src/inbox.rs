//! What engine threads have for the thread of the event loop: a queue with one wake per batch.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::signal::Signal;

/// A queue that any thread fills and one thread drains.
#[derive(Debug)]
pub struct Inbox<T> {
    /// `None` when nobody looks any more.
    queue: Mutex<Option<VecDeque<T>>>,
    signal: Signal,
}

impl<T> Inbox<T> {
    /// An empty queue.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::new(Some(VecDeque::new())),
            signal: Signal::new()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<T>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signal that something is there.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Adds one.
    pub fn push(&self, event: T) {
        self.extend([event]);
    }

    /// Adds several with one wake.
    pub fn extend(&self, events: impl IntoIterator<Item = T>) {
        if self.add(events) {
            self.signal.raise();
        }
    }

    /// Adds several; whether the signal is to be raised, which may be done a little later.
    pub fn add(&self, events: impl IntoIterator<Item = T>) -> bool {
        let mut open = self.lock();
        let Some(queue) = &mut *open else {
            // What is dropped may push in its turn.
            drop(open);
            drop(events);
            return false;
        };
        queue.extend(events);
        !queue.is_empty() && !self.signal.is_raised()
    }

    /// Takes what there is, at most `max`; the signal stays raised when that is not all.
    pub fn take(&self, max: usize) -> VecDeque<T> {
        self.signal.lower();
        let mut open = self.lock();
        let Some(queue) = &mut *open else {
            return VecDeque::new();
        };
        if queue.len() <= max {
            return std::mem::take(queue);
        }
        let some = queue.drain(..max).collect();
        drop(open);
        self.signal.raise();
        some
    }

    /// From now on what is added is dropped.
    pub fn close(&self) {
        let left = self.lock().take();
        drop(left);
    }
}
