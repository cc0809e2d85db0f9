//! JSON without a tree: text is validated once, then its bytes are read in place.
//!
//! The grammar is exactly RFC 8259, in UTF-8. Where the RFC leaves a choice:
//! - numbers may have any size and precision, and keep their spelling,
//! - lone surrogate escapes are valid, and fail only when their string is decoded,
//! - a byte order mark is not JSON.

mod error;
#[cfg(feature = "materialise")]
pub mod materialise;
pub mod number;
pub mod reader;
mod serialize;
pub mod string;
pub(crate) mod walk;
pub mod writer;

pub use error::{DecodeError, DecodeErrorKind};
pub use serialize::append_value;
pub use string::JsonStr;

/// Checks that `bytes` is exactly one JSON text, nested at most `max_depth` containers deep.
///
/// One pass, no allocation. Text with padding after it is validated faster: see
/// [`Frame`](crate::message::Frame), which the engine itself uses.
///
/// # Errors
/// The first fault, and the offset at which it was noticed.
pub fn validate(bytes: &[u8], max_depth: usize) -> Result<(), DecodeError> {
    validate_head(bytes, bytes.len(), max_depth)
}

/// Validates the first `len` bytes of `buf`; fastest with padding after them.
pub fn validate_head(buf: &[u8], len: usize, max_depth: usize) -> Result<(), DecodeError> {
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
