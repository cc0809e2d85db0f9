//! Drives each server with rmcp's own client, and expects what a client of rmcp's example sees.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]
#![allow(deprecated, reason = "sampling, which rmcp's example has")]

mod asks;
mod counters;
mod peer;
mod prompts;
mod tools;
mod waits;
