//! Counters that each thread adds to by itself: without a lock of the memory bus, and without waiting for what other cores add.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How many threads have counters of their own at a time. All others share theirs.
const PLACES: usize = 32;

/// The places that no thread has, as bits.
static FREE: Mutex<u32> = Mutex::new(u32::MAX);

thread_local! {
    static PLACE: Place = Place::take();
}

/// What one thread has, until it ends; `None` if others have all of them.
struct Place(Option<usize>);

impl Place {
    fn take() -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let first = free.trailing_zeros();
        *free &= free.wrapping_sub(1);
        Self((first < u32::BITS).then_some(first as usize))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            // The lock also shows the next thread here what this one has counted.
            *FREE.lock().unwrap_or_else(PoisonError::into_inner) |= 1 << place;
        }
    }
}

/// Counters, once for each thread that has a place and once for all others.
#[derive(Debug)]
pub(super) struct Sharded<T> {
    shared: T,
    own: [OnceLock<Box<T>>; PLACES],
}

impl<T: Default> Default for Sharded<T> {
    fn default() -> Self {
        Self {
            shared: T::default(),
            own: [const { OnceLock::new() }; PLACES],
        }
    }
}

/// How a thread adds to the counters that it was given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Adder {
    /// Nobody else adds to them.
    Alone,
    Shared,
}

impl Adder {
    #[inline]
    pub fn add(self, counter: &AtomicU64, more: u64) {
        match self {
            Self::Alone => counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed),
            Self::Shared => _ = counter.fetch_add(more, Relaxed),
        }
    }
}

impl<T: Default> Sharded<T> {
    /// The counters of this thread, which no other thread may add to by this adder.
    #[inline]
    pub fn here(&self) -> (&T, Adder) {
        let place = PLACE.try_with(|place| place.0).ok().flatten();
        match place.and_then(|place| self.own.get(place)) {
            Some(own) => (own.get_or_init(Box::default), Adder::Alone),
            None => (&self.shared, Adder::Shared),
        }
    }

    /// The counters of all threads.
    pub fn each(&self) -> impl Iterator<Item = &T> {
        let own = self.own.iter().filter_map(OnceLock::get);
        own.map(|own| &**own).chain([&self.shared])
    }

    /// The sum of one counter.
    pub fn sum(&self, of: impl Fn(&T) -> &AtomicU64) -> u64 {
        let each = self.each().map(|it| of(it).load(Relaxed));
        each.fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    const COUNTED: u64 = 10_000;

    fn count(counters: &Sharded<AtomicU64>) {
        for _ in 0..COUNTED {
            let (counter, adder) = counters.here();
            adder.add(counter, 1);
        }
    }

    #[test]
    fn nothing_is_lost_with_more_threads_than_places() {
        let (counters, threads) = (Sharded::default(), 2 * PLACES);
        let all = Barrier::new(threads);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    count(&counters);
                    // Nobody gives a place back before all have theirs, or have none.
                    all.wait();
                });
            }
        });
        assert_eq!(counters.sum(|it| it), threads as u64 * COUNTED);
        assert_ne!(counters.shared.load(Relaxed), 0, "some had no place");
    }

    #[test]
    fn a_thread_goes_on_where_one_that_has_ended_was() {
        let counters = Sharded::default();
        for _ in 0..2 * PLACES {
            thread::scope(|scope| _ = scope.spawn(|| count(&counters)));
        }
        assert_eq!(counters.sum(|it| it), 2 * PLACES as u64 * COUNTED);
    }
}
