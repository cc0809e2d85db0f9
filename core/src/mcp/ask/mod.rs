//! What a server may ask of its client while it serves a call: the model, the user, the roots.
//!
//! In the handshake era these are requests of the server; from 2026-07-28 on they travel in the
//! answer to the call, which is repeated with what was found. The words are the same.

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

/// Whether a peer of these capabilities has the one at `path`.
///
/// # Errors
/// It has not; `name` says what is missing.
fn declared(capabilities: &str, path: &[&str], name: &'static str) -> Result<(), RequestError> {
    match reader::find_path(capabilities, path) {
        Some(_) => Ok(()),
        None => Err(RequestError::Unsupported(name)),
    }
}
