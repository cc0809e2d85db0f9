//! Bytes at rest: what arrived and is not yet consumed, what is encoded and not yet written.

mod input;
mod output;

pub use input::Input;
pub use output::Output;

/// Initialised bytes that are readable after any frame, so that the decoder may load whole
/// words and vectors without a bounds check per byte.
pub const PADDING: usize = 64;
