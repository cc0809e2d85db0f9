//! A seeded random source, and wakers that can be inspected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64. Prints its seed when a test fails; `MCPBOLT_SEED` repeats one.
pub(super) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(super) fn new() -> Self {
        let clock = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64)
        };
        let given = std::env::var("MCPBOLT_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        // Miri has no clock while it is isolated.
        Self::from_seed(given.unwrap_or_else(|| if cfg!(miri) { 1 } else { clock() }))
    }

    pub(super) fn from_seed(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("MCPBOLT_SEED={} repeats this", self.seed);
        }
    }
}

/// Counts how often it was woken.
#[derive(Default)]
pub(super) struct Woken(AtomicUsize);

impl Woken {
    pub(super) fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self::default());
        (woken.clone(), Waker::from(woken))
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// The number of rounds of a randomised test: `normal`, or fewer for a slow interpreter.
pub(super) fn rounds(normal: usize) -> usize {
    if cfg!(miri) {
        (normal / 200).max(20)
    } else {
        normal
    }
}
