//! Borrowed JSON without a tree: validate once, then look at the bytes themselves.
//!
//! The grammar is RFC 8259 to the letter, in UTF-8. What the RFC leaves open is settled here:
//! numbers of any size and precision are grammatical and kept as they are written, lone
//! surrogate escapes are grammatical and fail only when that string is decoded, a byte order
//! mark is not JSON.

mod error;
#[cfg(feature = "materialise")]
pub mod materialise;
pub(crate) mod noted;
pub mod number;
pub mod reader;
mod serialize;
pub mod string;
pub(crate) mod walk;
pub mod writer;

pub use error::{DecodeError, DecodeErrorKind};
pub use serialize::append_value;
pub use string::JsonStr;

/// Checks that `bytes` is exactly one JSON text, at most `max_depth` containers deep.
///
/// One pass, no allocation. Runs fastest when the text is short of nothing: see
/// [`Frame`](crate::message::Frame) for the padded form the engine itself uses.
///
/// # Errors
/// The first fault and the offset it was noticed at.
pub fn validate(bytes: &[u8], max_depth: usize) -> Result<(), DecodeError> {
    validate_head(bytes, bytes.len(), max_depth)
}

/// The same for the first `len` bytes of `buf`; fastest with padding behind them.
pub(crate) fn validate_head(buf: &[u8], len: usize, max_depth: usize) -> Result<(), DecodeError> {
    let mut walker = walk::Walker::new(buf, len, max_depth);
    let (start, byte) = walker.next(0);
    let end = walker
        .value(start, byte, 0)
        .and_then(|end| walker.finish(end));
    match end {
        Some(()) => Ok(()),
        None => Err(walker.error()),
    }
}
