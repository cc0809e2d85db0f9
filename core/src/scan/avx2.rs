//! 64 bytes as two vectors of AVX2.

use std::arch::x86_64::{
    __m256i, _mm_set_epi64x, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
};

use super::StringEnd;
use super::block::{Carry, Class, DIGITS, LETTERS, chunk, string_kernel};
use super::escape::escape_kernel;
use super::skip::skip_kernel;

type Block = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn load(chunk: &[u8; 64]) -> Block {
    let from = chunk.as_ptr().cast::<__m256i>();
    // SAFETY: S1, the reference covers the 64 bytes that are loaded; the loads are unaligned.
    unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask(found: Block) -> u64 {
    let half = |half| u64::from(_mm256_movemask_epi8(half) as u32);
    half(found[0]) | half(found[1]) << 32
}

#[inline]
#[target_feature(enable = "avx2")]
fn eq(block: Block, byte: u8) -> u64 {
    let byte = _mm256_set1_epi8(byte as i8);
    mask([
        _mm256_cmpeq_epi8(block[0], byte),
        _mm256_cmpeq_epi8(block[1], byte),
    ])
}

#[inline]
#[target_feature(enable = "avx2")]
fn control_half(half: __m256i) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_min_epu8(half, _mm256_set1_epi8(0x1f)), half)
}

#[inline]
#[target_feature(enable = "avx2")]
fn control(block: Block) -> u64 {
    mask([control_half(block[0]), control_half(block[1])])
}

#[inline]
#[target_feature(enable = "avx2")]
fn has_control(block: Block) -> bool {
    _mm256_movemask_epi8(control_half(_mm256_min_epu8(block[0], block[1]))) != 0
}

/// Quotes and backslashes: the only bytes that their low nibble finds in the table.
#[inline]
#[target_feature(enable = "avx2")]
fn quote_half(half: __m256i) -> __m256i {
    const OWN: [u8; 16] = {
        let mut own = [0xff; 16];
        own[2] = b'"';
        own[12] = b'\\';
        own
    };
    _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table(OWN), half), half)
}

/// Quotes, backslashes and control characters.
#[inline]
#[target_feature(enable = "avx2")]
fn stops(block: Block) -> u64 {
    let half = |half| _mm256_or_si256(quote_half(half), control_half(half));
    mask([half(block[0]), half(block[1])])
}

#[inline]
#[target_feature(enable = "avx2")]
fn is_plain(block: Block) -> bool {
    let control = control_half(_mm256_min_epu8(block[0], block[1]));
    let quotes = _mm256_or_si256(quote_half(block[0]), quote_half(block[1]));
    _mm256_movemask_epi8(_mm256_or_si256(quotes, control)) == 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn none() -> Block {
    [_mm256_setzero_si256(); 2]
}

#[inline]
#[target_feature(enable = "avx2")]
fn join(a: Block, b: Block) -> Block {
    [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn has_high(block: Block) -> bool {
    _mm256_movemask_epi8(_mm256_or_si256(block[0], block[1])) != 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn high(block: Block) -> u64 {
    mask(block)
}

#[inline]
#[target_feature(enable = "avx2")]
fn not_letters(block: Block) -> u64 {
    mask([
        outside_half(block[0], LETTERS),
        outside_half(block[1], LETTERS),
    ])
}

#[inline]
#[target_feature(enable = "avx2")]
fn not_digits(block: Block) -> u64 {
    mask([
        outside_half(block[0], DIGITS),
        outside_half(block[1], DIGITS),
    ])
}

/// The bytes outside a class. The first lookup needs no mask: it answers zero for every byte
/// outside ASCII, which is in no class.
#[inline]
#[target_feature(enable = "avx2")]
fn outside_half(half: __m256i, class: Class) -> __m256i {
    let top = _mm256_and_si256(_mm256_srli_epi16::<4>(half), _mm256_set1_epi8(0x0f));
    let low = _mm256_shuffle_epi8(table(class.low), half);
    let both = _mm256_and_si256(low, _mm256_shuffle_epi8(table(class.high), top));
    _mm256_cmpeq_epi8(both, _mm256_setzero_si256())
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(bytes: [u8; 16]) -> __m256i {
    let bytes = u128::from_le_bytes(bytes);
    _mm256_broadcastsi128_si256(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}

/// Every byte with the bit set that lower case letters have.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(block: Block) -> Block {
    let bit = _mm256_set1_epi8(0x20);
    [
        _mm256_or_si256(block[0], bit),
        _mm256_or_si256(block[1], bit),
    ]
}

string_kernel!("avx2");
escape_kernel!("avx2");
skip_kernel!("avx2,popcnt");
