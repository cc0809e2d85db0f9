//! The memory of the process stays within its bounds at its worst.
#![cfg(all(unix, feature = "server", feature = "client", feature = "stdio"))]

#[cfg(feature = "http")]
mod budget;
mod duplex_flood;
#[path = "../shared/heap.rs"]
mod heap;
#[cfg(target_os = "linux")]
mod resident;
mod slow_readers;

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

/// One test at a time, so that nothing else allocates meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
