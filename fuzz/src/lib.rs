//! The laws of the engine as plain functions that panic when one is broken.
//!
//! They run three ways: by cargo-fuzz (`fuzz/targets`, one line each), for some seconds of
//! random input in ordinary tests on stable, and for as long as one likes with
//! `cargo run --release -p mcpbolt-fuzz -- SECONDS [SEED]`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a law that does not hold panics"
)]

#[cfg(feature = "http")]
pub mod acting;
pub mod action;
pub mod carried;
pub mod corpus;
#[cfg(feature = "http")]
pub mod http;
pub mod laws;
pub mod oracle;
pub mod random;
pub mod run;
