//! Large and hostile loads: what a server on sockets holds and does under them. Reduced in size;
//! the sizes that are promised are those of the ignored tests.
#![cfg(all(
    feature = "http",
    feature = "http-client",
    target_os = "linux",
    target_env = "gnu"
))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test: panicking is the report"
)]

mod abandoned;
mod cancel;
mod client;
mod connections;
mod far;
#[path = "../shared/heap.rs"]
mod heap;
mod idle;
mod peers;
mod stalled;
mod storm;
#[allow(dead_code, reason = "it is a module of another test, too")]
#[path = "../network/http/wire.rs"]
mod wire;

use std::time::Duration;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);
