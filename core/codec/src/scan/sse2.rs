//! 64 bytes as four SSE2 vectors; every x86-64 has SSE2.

use std::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
    _mm_set1_epi8, _mm_setzero_si128, _mm_sub_epi8,
};

use super::StringEnd;
use super::block::{Carry, chunk, last, string_kernel};
use super::escape::{Sink, escape_kernel};
use super::skip::skip_kernel;

type Block = [__m128i; 4];

#[inline]
#[target_feature(enable = "sse2")]
fn load(chunk: &[u8; 64]) -> Block {
    let from = chunk.as_ptr().cast::<__m128i>();
    // SAFETY: S1, the reference covers the 64 bytes that are loaded; the loads are unaligned.
    std::array::from_fn(|i| unsafe { _mm_loadu_si128(from.add(i)) })
}

#[inline]
#[target_feature(enable = "sse2")]
fn mask(found: Block) -> u64 {
    let part = |i: usize| u64::from(_mm_movemask_epi8(found[i]) as u32) << (16 * i);
    part(0) | part(1) | part(2) | part(3)
}

#[inline]
#[target_feature(enable = "sse2")]
fn any(found: Block) -> bool {
    let low = _mm_or_si128(found[0], found[1]);
    _mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(found[2], found[3]))) != 0
}

#[inline]
#[target_feature(enable = "sse2")]
fn eq_part(part: __m128i, byte: u8) -> __m128i {
    _mm_cmpeq_epi8(part, _mm_set1_epi8(byte as i8))
}

/// The bytes in the range from `from` to `from + span`, inclusive.
#[inline]
#[target_feature(enable = "sse2")]
fn range_part(part: __m128i, from: u8, span: u8) -> __m128i {
    let moved = _mm_sub_epi8(part, _mm_set1_epi8(from as i8));
    _mm_cmpeq_epi8(_mm_min_epu8(moved, _mm_set1_epi8(span as i8)), moved)
}

#[inline]
#[target_feature(enable = "sse2")]
fn stop_part(part: __m128i) -> __m128i {
    let quote_or_slash = _mm_or_si128(eq_part(part, b'"'), eq_part(part, b'\\'));
    _mm_or_si128(quote_or_slash, range_part(part, 0, 0x1f))
}

#[inline]
#[target_feature(enable = "sse2")]
fn hex_part(part: __m128i) -> __m128i {
    let lower = _mm_or_si128(part, _mm_set1_epi8(0x20));
    _mm_or_si128(range_part(part, b'0', 9), range_part(lower, b'a', 5))
}

#[inline]
#[target_feature(enable = "sse2")]
fn letter_part(part: __m128i) -> __m128i {
    let mut found = eq_part(part, b'/');
    for letter in *b"bfnrt" {
        found = _mm_or_si128(found, eq_part(part, letter));
    }
    found
}

#[inline]
#[target_feature(enable = "sse2")]
fn eq(block: Block, byte: u8) -> u64 {
    mask([
        eq_part(block[0], byte),
        eq_part(block[1], byte),
        eq_part(block[2], byte),
        eq_part(block[3], byte),
    ])
}

#[inline]
#[target_feature(enable = "sse2")]
fn control(block: Block) -> u64 {
    mask([
        range_part(block[0], 0, 0x1f),
        range_part(block[1], 0, 0x1f),
        range_part(block[2], 0, 0x1f),
        range_part(block[3], 0, 0x1f),
    ])
}

#[inline]
#[target_feature(enable = "sse2")]
fn stop_parts(block: Block) -> Block {
    [
        stop_part(block[0]),
        stop_part(block[1]),
        stop_part(block[2]),
        stop_part(block[3]),
    ]
}

/// Quotes, backslashes and control characters.
#[inline]
#[target_feature(enable = "sse2")]
fn stops(block: Block) -> u64 {
    mask(stop_parts(block))
}

#[inline]
#[target_feature(enable = "sse2")]
fn is_plain(block: Block) -> bool {
    !any(stop_parts(block))
}

/// Checks four blocks at once; returns `seen` joined with them if they are plain.
#[inline]
#[target_feature(enable = "sse2")]
fn plain(chunk: &[u8; 256], mut seen: __m128i) -> Option<__m128i> {
    let (mut least, mut quotes) = (most(), none());
    for part in chunk.as_chunks().0 {
        let block = load(part);
        seen = join(seen, block);
        least = lower(least, block);
        for part in block {
            let either = _mm_or_si128(eq_part(part, b'"'), eq_part(part, b'\\'));
            quotes = _mm_or_si128(quotes, either);
        }
    }
    let stops = _mm_or_si128(quotes, range_part(least, 0, 0x1f));
    (_mm_movemask_epi8(stops) == 0).then_some(seen)
}

#[inline]
#[target_feature(enable = "sse2")]
fn high(block: Block) -> u64 {
    mask(block)
}

#[inline]
#[target_feature(enable = "sse2")]
fn has_high(joined: __m128i) -> bool {
    _mm_movemask_epi8(joined) != 0
}

#[inline]
#[target_feature(enable = "sse2")]
fn has_control(least: __m128i) -> bool {
    _mm_movemask_epi8(range_part(least, 0, 0x1f)) != 0
}

#[inline]
#[target_feature(enable = "sse2")]
fn none() -> __m128i {
    _mm_setzero_si128()
}

#[inline]
#[target_feature(enable = "sse2")]
fn most() -> __m128i {
    _mm_set1_epi8(-1)
}

/// The bits set in `a` or in any part of the block.
#[inline]
#[target_feature(enable = "sse2")]
fn join(a: __m128i, block: Block) -> __m128i {
    let low = _mm_or_si128(block[0], block[1]);
    _mm_or_si128(a, _mm_or_si128(low, _mm_or_si128(block[2], block[3])))
}

/// The bytewise minimum of `a` and the parts of the block.
#[inline]
#[target_feature(enable = "sse2")]
fn lower(a: __m128i, block: Block) -> __m128i {
    let low = _mm_min_epu8(block[0], block[1]);
    _mm_min_epu8(a, _mm_min_epu8(low, _mm_min_epu8(block[2], block[3])))
}

#[inline]
#[target_feature(enable = "sse2")]
fn letters(block: Block) -> u64 {
    mask([
        letter_part(block[0]),
        letter_part(block[1]),
        letter_part(block[2]),
        letter_part(block[3]),
    ])
}

#[inline]
#[target_feature(enable = "sse2")]
fn not_digits(block: Block) -> u64 {
    !mask([
        hex_part(block[0]),
        hex_part(block[1]),
        hex_part(block[2]),
        hex_part(block[3]),
    ])
}

/// Always refuses: spreading bytes by a table needs a later instruction set.
#[inline]
fn spread(_: &mut Sink<'_>, _: Block, _: u64, _: usize) -> bool {
    false
}

/// Sets the bit that distinguishes lower-case from upper-case letters, in every byte.
#[inline]
#[target_feature(enable = "sse2")]
fn fold(block: Block) -> Block {
    block.map(|part| _mm_or_si128(part, _mm_set1_epi8(0x20)))
}

string_kernel!("sse2");
escape_kernel!("sse2");
skip_kernel!("sse2");
