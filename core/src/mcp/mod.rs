//! The only MCP vocabulary of the engine: revisions, methods, codes and `_meta` keys, as data.
//!
//! What differs between protocol revisions is a row of [`revision::Rules`]; no other room
//! compares versions.

pub mod code;
pub mod level;
pub mod meta;
pub mod method;
pub mod revision;

pub use code::ErrorKind;
pub use level::LogLevel;
pub use method::{Method, Side};
pub use revision::{Era, Revision, Revisions};
