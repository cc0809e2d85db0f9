//! The drivers with real processes, pipes, sockets, terminals and signals.
//!
//! The other process of a test is this test binary again, started as a [`peer`].

#![allow(
    clippy::print_stdout,
    clippy::zombie_processes,
    reason = "these programs stand in for careless ones"
)]
#![cfg(all(target_os = "linux", feature = "stdio"))]
#![allow(clippy::unwrap_used, missing_docs)]

mod client;
mod descriptors;
mod flood;
mod lines;
#[cfg(all(feature = "client", feature = "server"))]
mod mcp;
mod peer;
#[cfg(all(feature = "client", feature = "server"))]
mod pool;
#[cfg(all(feature = "client", feature = "server"))]
mod reconnect;
mod server;
mod wire;
