//! The tables against their twins, their promises and each other's threads.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancel;
mod incoming;
#[cfg(loom)]
mod loom;
mod outgoing;
#[cfg(not(loom))]
mod stress;
mod support;
mod twin;
mod wheel;
