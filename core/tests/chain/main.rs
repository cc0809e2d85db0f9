//! Chains: clients and servers of every revision, with a front between them.
#![cfg(all(feature = "server", feature = "client", feature = "stdio"))]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod bounds;
mod cached;
mod callers;
mod changes;
mod children;
mod eras;
mod failing;
mod hidden;
mod idle;
mod joined;
mod laws;
mod lent;
mod losses;
mod members;
mod middleware;
mod openings;
mod prefix;
mod rig;
mod rounds;
mod rules;
mod shared;
mod telemetry;
mod url_elicitation;
