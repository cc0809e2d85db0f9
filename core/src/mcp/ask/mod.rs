//! Requests of a server to its client while it serves a call: sampling, elicitation and roots.
//!
//! In the handshake era they are JSON-RPC requests of the server. From 2026-07-28 on, they travel
//! in the answer to the call, and the client repeats the call with the results. The types are the
//! same.

mod elicitation;
mod models;
mod roots;
mod sampling;

pub use elicitation::{Elicitation, Elicited};
pub use models::{ModelHint, ModelPreferences};
pub use roots::Root;
pub use sampling::{Block, MAX_TOOL_ROUNDS, Role, Sampled, Sampling, SamplingMessage};

use crate::error::RequestError;
use crate::json::reader;

/// Checks that `capabilities` declare the capability at `path`.
///
/// # Errors
/// [`RequestError::Unsupported`] with `name` if they do not.
fn declared(capabilities: &str, path: &[&str], name: &'static str) -> Result<(), RequestError> {
    match reader::find_path(capabilities, path) {
        Some(_) => Ok(()),
        None => Err(RequestError::Unsupported(name)),
    }
}
