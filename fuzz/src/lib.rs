//! The laws of the engine, that is, properties that hold for every input, as functions that panic when a
//! law is broken.
//!
//! They run in three ways: with cargo-fuzz (`fuzz/targets`, one line each), in ordinary tests on stable
//! for some seconds of random input, and for any time with
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
pub mod challenge;
pub mod corpus;
#[cfg(feature = "http")]
pub mod http;
pub mod laws;
pub mod oracle;
pub mod random;
pub mod run;
