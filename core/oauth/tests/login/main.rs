//! Logins of clients, step by step.
#![cfg(feature = "client")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::type_complexity,
    missing_docs,
    reason = "a test: panicking is the report"
)]

mod devices;
mod flows;
mod hostile;
mod kept;
mod lasting;
mod proofs;
mod world;
