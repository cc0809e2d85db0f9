//! Tests of the tables: against reference models, by example, and with threads.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cancel;
mod in_flight;
#[cfg(loom)]
mod loom;
mod outgoing;
#[cfg(not(loom))]
mod stress;
mod support;
mod timers;
mod twin;
