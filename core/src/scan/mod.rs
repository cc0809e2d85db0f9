//! Byte kernels: where a string stops being plain.

/// A run of bytes that mean themselves inside a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first quote, backslash or control character, or the end of the bytes.
    pub end: usize,
    /// Whether the run holds bytes outside ASCII.
    pub high: bool,
}

/// The run of plain string bytes that starts at `pos`.
#[inline]
pub fn plain_run(bytes: &[u8], mut pos: usize) -> Run {
    let mut high = false;
    while let Some(&byte) = bytes.get(pos) {
        if byte < b' ' || byte == b'"' || byte == b'\\' {
            break;
        }
        high |= byte >= 0x80;
        pos += 1;
    }
    Run { end: pos, high }
}
