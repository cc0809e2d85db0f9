//! Vectorized byte scanning: finds the ends of strings, containers and lines, and the bytes that
//! must be escaped.
//!
//! Each algorithm is written once (`block`, `skip`, `escape`), with one thin file per instruction
//! set, selected at run time. The scalar version in [`scalar`] is the reference that tests and
//! fuzzing compare the others with. Short strings do not get here: the walker checks their first
//! bytes itself with [`stops`].
//!
//! The invariants that the `unsafe` code of this module relies on, and the benchmarks that show its
//! gain:
//!
//! * S1: a load reads no more bytes than the array reference it is made through covers, and
//!   needs no alignment. S2: the same for stores. (classes `kernel …`)
//! * D1: code for an instruction set runs only after a check that the processor supports it, or
//!   where every processor of its architecture does. (classes `kernel …`)
//! * P1: a prefetch is a hint that may name any address. (`kernel string 10m`, next to a plain
//!   read)
//! * E1, E2: stores into reserved capacity, and the length that follows them; in `escape`.
//!   (classes `escape …`)
//! * T1: text made from bytes that are all ASCII; in `text`. (`kernel text 16`)

mod dispatch;
pub mod scalar;
mod stops;
mod text;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod block;
#[cfg(target_arch = "x86_64")]
mod escape;
#[cfg(target_arch = "x86_64")]
mod skip;
#[cfg(target_arch = "x86_64")]
mod sse2;

pub use dispatch::Isa;
pub use stops::{Stops, line_ends, portable as portable_stops, portable_line_ends, stops};
pub use text::text;

/// The rest of a string from a position between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringEnd {
    /// Offset of the closing quote.
    pub end: usize,
    /// Whether there are non-ASCII bytes before the end.
    pub high: bool,
    /// Whether there are escapes before the end.
    pub escaped: bool,
}

/// Finds the end of the string that `pos` is in, outside of any escape. `None` if the string is not
/// valid JSON or does not end in `text`.
#[inline]
pub fn string_end(text: &[u8], pos: usize) -> Option<StringEnd> {
    Isa::chosen().string_end(text, pos)
}

/// Finds the end of the container that `pos` is in, outside of any string, in valid JSON: returns
/// the offset after the closing bracket. For other text, the result is unspecified.
#[inline]
pub fn container_end(text: &[u8], pos: usize) -> Option<usize> {
    Isa::chosen().container_end(text, pos)
}

/// Appends `text` escaped for the inside of a JSON string.
#[inline]
pub fn escape_into(out: &mut Vec<u8>, text: &str) {
    Isa::chosen().escape_into(out, text);
}
