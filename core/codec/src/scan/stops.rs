//! Scans the first sixteen bytes of a string: inline, without dispatch.

/// The bytes of a chunk that end a run of plain string bytes, and the non-ASCII bytes.
#[derive(Clone, Copy, Debug)]
pub struct Stops {
    /// Bit i: byte i is a quote, a backslash or a control character. Only the lowest set bit is
    /// meaningful.
    pub mask: u32,
    /// Bit i: byte i is 0x80 or above.
    pub high: u32,
}

impl Stops {
    /// Whether a non-ASCII byte comes before the first stop.
    #[inline(always)]
    pub fn high_before(self) -> bool {
        // `mask ^ (mask - 1)` keeps the bits up to the lowest stop, or all when there is none.
        self.high & (self.mask ^ self.mask.wrapping_sub(1)) != 0
    }
}

/// Scans sixteen bytes of a string.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn stops(chunk: &[u8; 16]) -> Stops {
    // SAFETY: D1, SSE2 is part of every x86-64.
    unsafe { vector(chunk) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn vector(chunk: &[u8; 16]) -> Stops {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };
    // SAFETY: S1, the reference covers the sixteen bytes that are loaded; the load is unaligned.
    let bytes = unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) };
    let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
    let slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
    let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    let any = _mm_or_si128(_mm_or_si128(quote, slash), control);
    Stops {
        mask: _mm_movemask_epi8(any) as u32,
        high: _mm_movemask_epi8(bytes) as u32,
    }
}

/// Scans sixteen bytes of a string.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn stops(chunk: &[u8; 16]) -> Stops {
    portable(chunk)
}

/// Word-based version of [`stops`], for processors without SSE2.
pub fn portable(chunk: &[u8; 16]) -> Stops {
    let word = u128::from_le_bytes(*chunk);
    let (low, high) = (word as u64, (word >> 64) as u64);
    Stops {
        mask: gather(stop_bits(low)) | gather(stop_bits(high)) << 8,
        high: gather(low & TOPS) | gather(high & TOPS) << 8,
    }
}

const TOPS: u64 = 0x8080_8080_8080_8080;

/// The top bit of each byte that stops; bits above the first may be false positives.
fn stop_bits(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let slash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | slash | control) & TOPS
}

/// Gathers the top bits of eight bytes into eight bits.
fn gather(tops: u64) -> u32 {
    ((tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// A mask of line feeds: bit i is set if byte i is one.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn line_ends(chunk: &[u8; 64]) -> u64 {
    // SAFETY: D1, SSE2 is part of every x86-64.
    unsafe { line_ends_vector(chunk) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn line_ends_vector(chunk: &[u8; 64]) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    let (parts, _) = chunk.as_chunks::<16>();
    parts.iter().rev().fold(0, |ends, part| {
        // SAFETY: S1, the reference covers the sixteen bytes that are loaded; the load is unaligned.
        let bytes = unsafe { _mm_loadu_si128(part.as_ptr().cast()) };
        let found = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\n' as i8)));
        ends << 16 | u64::from(found as u32)
    })
}

/// A mask of line feeds: bit i is set if byte i is one.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn line_ends(chunk: &[u8; 64]) -> u64 {
    portable_line_ends(chunk)
}

/// Word-based version of [`line_ends`], for every processor.
pub fn portable_line_ends(chunk: &[u8; 64]) -> u64 {
    let (words, _) = chunk.as_chunks::<8>();
    words.iter().rev().fold(0, |ends, word| {
        let word = u64::from_le_bytes(*word) ^ 0x0a0a_0a0a_0a0a_0a0a;
        // No carry leaves a byte: its top bit is set exactly when the byte is not zero.
        let other = ((word & !TOPS) + !TOPS) | word;
        ends << 8 | u64::from(gather(!other & TOPS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_found_at_every_place_and_beside_what_is_nearly_one() {
        for place in 0..64 {
            for byte in 0..=255u8 {
                for around in [0u8, 0x0b, 0x0a, 0x8a, 0xff] {
                    let mut chunk = [around; 64];
                    chunk[place] = byte;
                    let bit = |(i, &byte): (usize, &u8)| u64::from(byte == b'\n') << i;
                    let expected = chunk.iter().enumerate().map(bit).fold(0, |a, b| a | b);
                    assert_eq!(line_ends(&chunk), expected, "{chunk:?}");
                    assert_eq!(portable_line_ends(&chunk), expected, "{chunk:?}");
                }
            }
        }
    }

    #[test]
    fn both_forms_agree_on_every_byte_at_every_place() {
        for place in 0..16 {
            for byte in 0..=255u8 {
                let mut chunk = *b"plain text \xe4\xb8\xad x";
                chunk[place] = byte;
                let (a, b) = (stops(&chunk), portable(&chunk));
                let first = chunk
                    .iter()
                    .position(|&b| b < 0x20 || b == b'"' || b == b'\\');
                let high = chunk[..first.unwrap_or(16)].iter().any(|&b| b >= 0x80);
                for form in [a, b] {
                    let found = (form.mask != 0).then(|| form.mask.trailing_zeros() as usize);
                    assert_eq!(found, first, "{chunk:?}");
                    assert_eq!(form.high_before(), high, "{chunk:?}");
                }
            }
        }
    }
}
