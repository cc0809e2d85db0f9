//! The engine alone: no test here needs another crate than it does, so that these run under the
//! sanitizers, too.

mod arrows;
mod dead_peer;
#[cfg(feature = "client")]
mod examples;
#[cfg(feature = "server")]
mod framing;
mod json_suite;
mod limits;
mod messages;
mod reply_path;
