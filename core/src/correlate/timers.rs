//! Deadlines: a heap from which those that are void are removed later, all at once.
//!
//! Nearly all deadlines of a connection come in order, so a new one stays at the end of the heap, and
//! cancelling one only voids its key. The heap is swept when most of its entries are void, so the
//! amortised cost per deadline is constant until it passes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::arena::Arena;
use super::key::{MAX_SLOTS, RequestKey};

/// How many void entries the heap may hold beyond the number of live ones.
const SLACK: usize = 64;

/// Deadlines with a key each. The owner of the keys knows which are live; the deadlines of others are void.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    heap: BinaryHeap<Reverse<(Instant, K)>>,
}

impl<K: Ord> Default for Deadlines<K> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
        }
    }
}

impl<K: Ord> Deadlines<K> {
    /// Adds a deadline. At most `live` of the earlier ones are live; `is_live` recognises their keys.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, key: K, live: usize, is_live: impl Fn(&K) -> bool) {
        if live == 0 {
            self.heap.clear();
        } else if self.heap.len() > 2 * live + SLACK {
            self.sweep(is_live);
        }
        self.heap.push(Reverse((deadline, key)));
    }

    #[cold]
    fn sweep(&mut self, is_live: impl Fn(&K) -> bool) {
        self.heap.retain(|Reverse((_, key))| is_live(key));
    }

    /// Takes the key whose deadline is the first, if it has passed at `now`; the key may be void.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<K> {
        self.next().filter(|due| *due <= now)?;
        self.heap.pop().map(|Reverse((_, key))| key)
    }

    /// The first deadline, which may be void.
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((due, _))| *due)
    }

    /// Removes all deadlines.
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

/// Identifies one timer for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerKey(RequestKey);

/// Timers with a value of type `K` each. The time is passed as an argument.
///
/// A timer fires at its deadline, never before it. Inserting and cancelling are O(1), firing is
/// O(log n). Memory grows to the largest number of simultaneous timers and is kept.
#[derive(Debug)]
pub struct TimerQueue<K> {
    deadlines: Deadlines<RequestKey>,
    timers: Arena<K>,
}

impl<K> Default for TimerQueue<K> {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
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

    /// Starts a timer; `None` if there are about a million already. A timer whose deadline has passed fires at
    /// the next [`poll`](Self::poll).
    #[inline]
    pub fn insert(&mut self, deadline: Instant, value: K) -> Option<TimerKey> {
        let live = self.len();
        let key = self.timers.insert(|| value)?;
        let is_live = |key: &RequestKey| self.timers.get(*key).is_some();
        self.deadlines.insert(deadline, key, live, is_live);
        Some(TimerKey(key))
    }

    /// Stops the timers whose values are not `kept`. Looks at all of them.
    pub fn retain(&mut self, kept: impl Fn(&K) -> bool) {
        self.timers.retain(kept);
    }

    /// Stops a timer and returns its value; `None` if it has fired or was cancelled.
    #[inline]
    pub fn cancel(&mut self, timer: TimerKey) -> Option<K> {
        self.timers.remove(timer.0)
    }

    /// Fires the timer that is due first, if it is due at `now`; call this until it returns `None`.
    /// Timers may be inserted and cancelled between the calls.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<K> {
        loop {
            let key = self.deadlines.poll(now)?;
            if let Some(value) = self.timers.remove(key) {
                return Some(value);
            }
        }
    }

    /// The time of the next [`poll`](Self::poll); `None` without timers. Never later than the first
    /// deadline. It may be earlier, by that of a cancelled timer: nothing fires then.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next().filter(|_| !self.is_empty())
    }

    /// Stops all timers.
    pub fn clear(&mut self) {
        self.deadlines.clear();
        self.timers.drain().for_each(drop);
    }
}
