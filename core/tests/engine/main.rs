//! The engine alone: no test here needs another crate than it does, so that these run under the
//! sanitizers, too.

mod arrows;
mod dead_peer;
#[cfg(feature = "server")]
mod framing;
mod json_suite;
mod messages;
#[cfg(feature = "client")]
mod official_examples;
mod reply_path;
#[path = "../shared/mod.rs"]
mod shared;
