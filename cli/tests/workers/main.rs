//! `mcpbolt serve --workers`: several processes at one address, which are killed, replaced and ended while clients call.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod client;
mod ends;
mod guide;
mod manager;
#[path = "../serving/mod.rs"]
mod serving;
mod sessions;
mod tree;
