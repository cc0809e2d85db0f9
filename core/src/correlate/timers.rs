//! Deadlines: a heap from which cancelled timers are removed later, all at once.
//!
//! Nearly all deadlines of a connection come in order, so a new one stays at the end of the heap, and
//! cancelling one only voids its key. The heap is swept when most of its entries are void, so the
//! amortised cost per timer is constant until it fires.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::arena::Arena;
use super::key::{MAX_SLOTS, RequestKey};

/// How many void entries the heap may hold beyond the number of live ones.
const SLACK: usize = 64;

/// Identifies one timer for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerKey(RequestKey);

/// Timers with a value of type `K` each. The time is passed as an argument.
///
/// A timer fires at its deadline, never before it. Inserting and cancelling are O(1), firing is
/// O(log n). Memory grows to the largest number of simultaneous timers and is kept.
#[derive(Debug)]
pub struct TimerQueue<K> {
    heap: BinaryHeap<Reverse<(Instant, RequestKey)>>,
    timers: Arena<K>,
}

impl<K> Default for TimerQueue<K> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            timers: Arena::new(MAX_SLOTS as usize),
        }
    }
}

impl<K> TimerQueue<K> {
    /// The number of timers that have neither fired nor been cancelled.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether there are no timers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a timer. A timer whose deadline has passed fires at the next [`poll`](Self::poll).
    ///
    /// # Panics
    ///
    /// If there are about a million timers already.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, value: K) -> TimerKey {
        let Ok(key) = self.timers.insert(value) else {
            panic!("more timers than the queue can name");
        };
        self.heap.push(Reverse((deadline, key)));
        TimerKey(key)
    }

    /// Stops a timer and returns its value; `None` if it has fired or was cancelled.
    #[inline]
    pub fn cancel(&mut self, timer: TimerKey) -> Option<K> {
        let value = self.timers.remove(timer.0)?;
        if self.heap.len() > 2 * self.len() + SLACK {
            self.sweep();
        }
        Some(value)
    }

    #[cold]
    fn sweep(&mut self) {
        let timers = &self.timers;
        self.heap
            .retain(|Reverse((_, key))| timers.get(*key).is_some());
    }

    /// Fires the timer that is due first, if it is due at `now`; call this until it returns `None`.
    /// Timers may be inserted and cancelled between the calls.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<K> {
        while self
            .heap
            .peek()
            .is_some_and(|Reverse((due, _))| *due <= now)
        {
            let Reverse((_, key)) = self.heap.pop()?;
            if let Some(value) = self.timers.remove(key) {
                return Some(value);
            }
        }
        None
    }

    /// The time of the next [`poll`](Self::poll); `None` without timers. Never later than the first
    /// deadline. It may be earlier, by that of a cancelled timer: nothing fires then.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        let Reverse((due, _)) = self.heap.peek().filter(|_| !self.is_empty())?;
        Some(*due)
    }

    /// Stops all timers.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.timers.drain().for_each(drop);
    }
}
