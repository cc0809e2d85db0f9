//! Names that nobody guesses: of sessions (R-SES-02), tasks, and what answers refer to.

use std::sync::Arc;

/// One of 128 bits of chance, in hexadecimal; `None` when the system gives none.
pub(crate) fn name() -> Option<Arc<str>> {
    let mut chance = [0; 16];
    getrandom::fill(&mut chance).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(chance)).into())
}
