//! Inputs, contenders and the harness shared by the measuring programs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measuring program stops at the first surprise"
)]

pub mod classes;
pub mod contenders;
pub mod corpus;
pub mod count;
pub mod echo;
pub mod harness;
pub mod http;
#[cfg(feature = "peers")]
pub mod peers;
pub mod report;
pub mod rounds;
