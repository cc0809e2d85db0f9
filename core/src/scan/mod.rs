//! Byte kernels: where a string ends, where a container ends, where lines end, and what must be
//! escaped.
//!
//! Each algorithm is written once (`block`, `skip`, `escape`), beside one thin file per
//! instruction set, chosen once at run time; the scalar twin in [`scalar`] is the definition that
//! tests and fuzzing hold all of them to. Short strings never get here: the walker looks at their
//! first bytes itself with [`stops`].
//!
//! What the `unsafe` of this room rests on, and which figures show what it buys:
//!
//! * S1: a load takes no more bytes than the array reference has that it is made through, and
//!   asks for no alignment. S2: the same of stores. (classes `kernel …`)
//! * D1: code for an instruction set runs only behind the check that the processor has it, or
//!   where every processor of its kind does. (classes `kernel …`)
//! * P1: a prefetch is a hint that may name any address. (`kernel string 10m`, beside a plain
//!   read)
//! * E1, E2: stores into reserved capacity, and the length that follows them; in `escape`.
//!   (classes `escape …`)
//! * T1: text made of bytes that are all ASCII; in `text`. (`kernel text 16`)

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

/// The rest of a string, from some point between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringEnd {
    /// Offset of the closing quote.
    pub end: usize,
    /// Whether bytes outside ASCII lie before it.
    pub high: bool,
    /// Whether escapes lie before it.
    pub escaped: bool,
}

/// Finds the end of the string that `pos` is inside of, not within an escape; `None` if the
/// string breaks the grammar or does not end in `text`.
#[inline]
pub fn string_end(text: &[u8], pos: usize) -> Option<StringEnd> {
    Isa::chosen().string_end(text, pos)
}

/// Finds the end of the container that `pos` is inside of, not within a string, in a text that
/// is valid: the offset behind its closing bracket. In any other text it finds something or
/// nothing.
#[inline]
pub fn container_end(text: &[u8], pos: usize) -> Option<usize> {
    Isa::chosen().container_end(text, pos)
}

/// Appends `text` escaped as between the quotes of a JSON string.
#[inline]
pub fn escape_into(out: &mut Vec<u8>, text: &str) {
    Isa::chosen().escape_into(out, text);
}
