//! The sleep state of an event loop.

use std::sync::atomic::Ordering;

use crate::sync::atomic::AtomicU8;

const RUNNING: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// Records whether a loop runs or sleeps, so that waking it costs a system call only while it
/// sleeps.
///
/// ```text
///     wake                    wake: ring the poller
///   RUNNING ────────▶ NOTIFIED      PARKED ───────────────▶ NOTIFIED
///   RUNNING ────────▶ PARKED (the loop)   any ────────▶ RUNNING (the loop)
/// ```
///
/// Every step is one atomic exchange. A wake-up between the loop's last check of its work and its
/// sleep is never lost: the exchange `RUNNING → PARKED` fails and the loop checks again.
#[derive(Debug)]
pub(crate) struct Parking(AtomicU8);

impl Parking {
    /// The state of a running loop.
    pub fn new() -> Self {
        Self(AtomicU8::new(RUNNING))
    }

    /// Makes the loop check its work again. `true` if the loop sleeps: the caller must then wake
    /// its poller.
    #[must_use = "a loop that sleeps has to be rung"]
    pub fn wake(&self) -> bool {
        self.0.swap(NOTIFIED, Ordering::AcqRel) == PARKED
    }

    /// Marks the loop as about to sleep; `false` if it was woken since it last started to run.
    pub fn park(&self) -> bool {
        self.0
            .compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Marks the loop as running. It then sees all writes made before the wake-ups it slept
    /// through.
    pub fn run(&self) {
        self.0.swap(RUNNING, Ordering::AcqRel);
    }

    /// Whether the loop sleeps.
    #[cfg(all(unix, feature = "stdio"))]
    pub fn is_parked(&self) -> bool {
        self.0.load(Ordering::Acquire) == PARKED
    }
}
