//! Threads of the engine.

use std::thread;

use crate::error::{self, Result};
use crate::panics::quietly;

/// Starts a thread of the engine. It must report its end by dropping something, so that a panic reports it,
/// too.
pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    let thread = builder.spawn(|| quietly(run));
    thread.map(drop).map_err(error::io)
}
