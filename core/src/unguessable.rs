//! Unguessable names for sessions (R-SES-02), tasks and references to data.

use std::sync::Arc;

/// A name of 128 random bits, in hexadecimal; `None` when the system provides no randomness.
pub(crate) fn name() -> Option<Arc<str>> {
    let mut chance = [0; 16];
    getrandom::fill(&mut chance).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(chance)).into())
}
