//! A queue that serves the item with the least use first: least attained service, as in the scheduler of Rai,
//! Urvoy-Keller and Biersack (SIGMETRICS 2003).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nanoseconds used. Half of them are forgotten after each half-life.
#[derive(Debug, Default)]
pub struct Meter {
    used: AtomicU64,
    /// The half-life up to which `used` has been halved.
    at: AtomicU64,
}

impl Meter {
    /// A meter on which `nanos` count as used already, in half-life `now`.
    pub fn new(nanos: u64, now: u64) -> Self {
        Self {
            used: nanos.into(),
            at: now.into(),
        }
    }

    /// The time that counts as used in half-life `now`.
    pub fn read(&self, now: u64) -> u64 {
        let past = now.saturating_sub(self.at.load(Relaxed));
        self.used.load(Relaxed) >> past.min(63)
    }

    /// Nothing counts as used any more.
    #[cfg(test)]
    pub fn forget(&self) {
        self.used.store(0, Relaxed);
    }

    pub fn add(&self, nanos: u64, now: u64) {
        if self.at.load(Relaxed) < now {
            self.used.store(self.read(now), Relaxed);
            self.at.store(now, Relaxed);
        }
        self.used.fetch_add(nanos, Relaxed);
    }
}

/// Has a [`Meter`].
pub trait Metered {
    fn meter(&self) -> &Meter;
}

/// A queue in which the waiter that has used least is first; among equals, the one that came first.
///
/// Meters run on while their owners wait. A place in the queue is put right when it comes to the front,
/// and all places in each new half-life: O(log n) for each that is served.
#[derive(Debug)]
pub struct LeastUsed<T> {
    heap: BinaryHeap<Place<T>>,
    /// The half-life in which the places were put in order.
    at: u64,
    /// How many have come so far.
    count: u64,
}

#[derive(Debug)]
struct Place<T> {
    /// The lowest is the greatest, which a heap has in front.
    rank: Reverse<(u64, u64)>,
    item: T,
}

impl<T> PartialEq for Place<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<T> Eq for Place<T> {}

impl<T> PartialOrd for Place<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Place<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<T> Default for LeastUsed<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            at: 0,
            count: 0,
        }
    }
}

impl<T: Metered> LeastUsed<T> {
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Puts one in the queue, in half-life `now`.
    pub fn push(&mut self, item: T, now: u64) {
        self.count += 1;
        let rank = Reverse((item.meter().read(now), self.count));
        self.heap.push(Place { rank, item });
    }

    /// Takes the one out that has used least, in half-life `now`.
    pub fn pop(&mut self, now: u64) -> Option<T> {
        if self.at != now {
            self.at = now;
            let mut all = std::mem::take(&mut self.heap).into_vec();
            for place in &mut all {
                place.rank.0.0 = place.item.meter().read(now);
            }
            self.heap = all.into();
        }
        loop {
            let mut first = self.heap.peek_mut()?;
            let used = first.item.meter().read(now);
            if used <= first.rank.0.0 {
                return Some(PeekMut::pop(first).item);
            }
            first.rank.0.0 = used;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    impl Metered for (u32, Arc<Meter>) {
        fn meter(&self) -> &Meter {
            &self.1
        }
    }

    #[test]
    fn what_was_used_is_forgotten() {
        let meter = Meter::new(1000, 5);
        assert_eq!(
            (meter.read(5), meter.read(7), meter.read(500)),
            (1000, 250, 0)
        );
        meter.add(100, 6);
        assert_eq!(meter.read(6), 600);
    }

    #[test]
    fn the_one_that_has_used_least_by_now_is_served_first() {
        let mut queue = LeastUsed::default();
        let meters: Vec<_> = (0..50).map(|_| Arc::new(Meter::new(100, 0))).collect();
        for (number, meter) in (0..).zip(&meters) {
            queue.push((number, meter.clone()), 0);
        }
        assert_eq!(queue.pop(0).map(|it| it.0), Some(0), "the first of equals");
        // While they wait, all use something, the later ones less.
        for (number, meter) in (0..).zip(&meters) {
            meter.add(1000 - 2 * number, 0);
        }
        let late = Arc::new(Meter::new(500, 0));
        queue.push((50, late), 0);
        assert_eq!(queue.pop(0).map(|it| it.0), Some(50));
        assert_eq!(queue.pop(0).map(|it| it.0), Some(49));
        // In the next half-life the others count half.
        queue.push((51, Arc::new(Meter::new(600, 1))), 1);
        assert_eq!(queue.pop(1).map(|it| it.0), Some(48));
        let mut rest = 0;
        while queue.pop(1).is_some() {
            rest += 1;
        }
        assert_eq!(rest, 48);
    }
}
