//! What engine threads have for the thread of the event loop: a queue with one wake per batch.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::signal::Signal;

/// A queue that any thread fills and one thread drains.
#[derive(Debug)]
pub struct Inbox<T> {
    queue: Mutex<VecDeque<T>>,
    signal: Signal,
}

impl<T> Inbox<T> {
    /// An empty queue.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            queue: Mutex::default(),
            signal: Signal::new()?,
        })
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
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.extend(events);
        let any = !queue.is_empty();
        drop(queue);
        if any {
            self.signal.raise();
        }
    }

    /// Takes what there is, at most `max`; the signal stays raised when that is not all.
    pub fn take(&self, max: usize) -> VecDeque<T> {
        self.signal.lower();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() <= max {
            return std::mem::take(&mut *queue);
        }
        let some = queue.drain(..max).collect();
        drop(queue);
        self.signal.raise();
        some
    }
}
