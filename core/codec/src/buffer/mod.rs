//! Buffers of a stream: received bytes not yet consumed, and encoded bytes not yet written.

mod block;
mod input;
mod output;

pub use block::Block;
pub use input::Input;
pub use output::Output;

/// Number of initialised bytes that are readable after any frame, so that the decoder can load
/// whole words and vectors without a bounds check per byte.
pub const PADDING: usize = 64;
