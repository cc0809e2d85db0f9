//! The queue from engine threads to the event loop's thread, with one wakeup per batch.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::signal::Signal;

/// A queue that any thread fills and one thread drains.
#[derive(Debug)]
pub struct Inbox<T> {
    /// `None` once the inbox is closed.
    queue: Mutex<Option<VecDeque<T>>>,
    signal: Arc<Signal>,
}

impl<T> Inbox<T> {
    /// An empty queue.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::new(Some(VecDeque::new())),
            signal: Arc::new(Signal::new()?),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<T>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signal that the queue has entries.
    pub fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// Adds an entry, and wakes the draining thread.
    pub fn push(&self, event: T) {
        self.extend([event]);
    }

    /// Adds several entries with one wakeup.
    pub fn extend(&self, events: impl IntoIterator<Item = T>) {
        if self.add(events) {
            self.signal.raise();
        }
    }

    /// Adds several entries; returns whether the caller must raise the signal, at once or a little later.
    pub fn add(&self, events: impl IntoIterator<Item = T>) -> bool {
        let mut open = self.lock();
        let Some(queue) = &mut *open else {
            // Dropping an entry may push again, so the lock must be free.
            drop(open);
            drop(events);
            return false;
        };
        queue.extend(events);
        !queue.is_empty() && !self.signal.is_raised()
    }

    /// Takes at most `max` entries; the signal stays raised if there are more.
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

    /// Drops all entries, now and from now on.
    pub fn close(&self) {
        let left = self.lock().take();
        drop(left);
    }
}
