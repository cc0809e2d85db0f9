//! The laws of a shared store, in one text for all of them: in memory, on Valkey, on Redis, and sealed. And what is
//! special to a server: that it may be away, and what goes to it.
#![cfg(feature = "sealing")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

#[cfg(all(feature = "redis", feature = "http"))]
mod answers;
#[cfg(feature = "redis")]
mod away;
mod blobs;
mod buckets;
#[cfg(all(feature = "redis", feature = "http"))]
mod changes;
#[cfg(feature = "redis")]
mod cluster;
#[cfg(feature = "redis")]
mod counts;
#[cfg(all(feature = "redis", feature = "http"))]
mod events;
mod hints;
#[cfg(all(feature = "redis", feature = "http"))]
mod http;
#[cfg(all(feature = "redis", feature = "http"))]
mod idle;
mod leases;
mod logs;
mod marks;
mod quotas;
#[cfg(all(feature = "redis", feature = "resource-server", feature = "oauth"))]
mod replays;
#[cfg(feature = "redis")]
mod servers;
#[cfg(all(feature = "redis", feature = "http"))]
mod session_tasks;
#[cfg(all(feature = "redis", feature = "http"))]
mod sessions;
mod stores;
#[cfg(all(feature = "redis", feature = "http"))]
mod task_notices;
#[cfg(all(feature = "redis", feature = "http"))]
mod task_runs;
#[cfg(all(feature = "redis", feature = "http"))]
mod tasks;
#[cfg(feature = "redis")]
mod wire;
#[cfg(all(feature = "redis", feature = "http"))]
mod wishes;
