//! The laws of a shared store, in one text for all of them: the store in memory, and that store sealed.
#![cfg(feature = "sealing")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

mod blobs;
mod buckets;
mod hints;
mod leases;
mod logs;
mod marks;
mod stores;
