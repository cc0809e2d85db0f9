//! Thread wake-ups that are never lost: the state behind a driver's sleep.
//!
//! Neither type blocks or makes a system call. The driver provides the sleep: a poller for
//! [`Parking`], a task's waker for `Ring`. `models` checks both with loom.

#[cfg(all(test, loom))]
mod models;
mod parking;
#[cfg(any(
    all(feature = "tokio", any(feature = "server", feature = "client")),
    all(test, loom)
))]
mod ring;

pub(crate) use parking::Parking;
#[cfg(any(
    all(feature = "tokio", any(feature = "server", feature = "client")),
    all(test, loom)
))]
pub(crate) use ring::Ring;
