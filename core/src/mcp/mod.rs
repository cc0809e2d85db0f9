//! The MCP vocabulary of the engine as data: revisions, methods, error codes and `_meta` keys.
//!
//! Each difference between protocol revisions is a field of [`revision::Rules`]; no other module
//! compares versions.

pub mod code;
pub mod extension;
#[cfg(any(feature = "server", feature = "http-client"))]
pub(crate) mod header;
#[cfg(any(feature = "http-client", all(feature = "server", feature = "client")))]
pub(crate) mod header_arguments;
pub mod level;
pub mod meta;
pub mod method;
pub mod profile;
pub mod revision;
#[cfg(all(feature = "skills", any(feature = "server", feature = "client")))]
pub(crate) mod skill;
mod task;
pub mod trace_context;

pub use code::ErrorKind;
pub use level::LogLevel;
pub use method::{Method, Side};
pub use profile::Profile;
pub use revision::{Era, Revision, Revisions};
pub use task::{TaskForm, TaskStatus, TaskSupport};
pub use trace_context::TraceContext;
