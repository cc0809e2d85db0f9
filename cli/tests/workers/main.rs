//! `mcpbolt serve --workers`: several processes at one address, which are killed, replaced and ended while clients call.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod client;
mod ends;
mod guide;
mod manager;
#[allow(
    clippy::expect_used,
    dead_code,
    reason = "it is a module of tests of the core, too"
)]
#[path = "../../../core/tests/store/servers.rs"]
mod servers;
#[path = "../serving/mod.rs"]
mod serving;
mod sessions;
mod store;
mod tree;
