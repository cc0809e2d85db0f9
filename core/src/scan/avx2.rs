//! 64 bytes as two vectors of AVX2.

use std::arch::x86_64::{
    __m256i, _mm_set_epi64x, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
};

use super::StringEnd;
use super::block::{CLASS_HIGH, CLASS_LOW, Carry, HEX, LETTER, chunk, string_kernel};
use super::escape::escape_kernel;

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
fn stop_half(half: __m256i) -> __m256i {
    let quote = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'"' as i8));
    let slash = _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'\\' as i8));
    _mm256_or_si256(_mm256_or_si256(quote, slash), control_half(half))
}

/// Quotes, backslashes and control characters.
#[inline]
#[target_feature(enable = "avx2")]
fn stops(block: Block) -> u64 {
    mask([stop_half(block[0]), stop_half(block[1])])
}

#[inline]
#[target_feature(enable = "avx2")]
fn is_plain(block: Block) -> bool {
    _mm256_movemask_epi8(_mm256_or_si256(stop_half(block[0]), stop_half(block[1]))) == 0
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

/// Each byte's classes.
#[inline]
#[target_feature(enable = "avx2")]
fn class(block: Block) -> Block {
    [class_half(block[0]), class_half(block[1])]
}

/// The letters that may follow a backslash.
#[inline]
#[target_feature(enable = "avx2")]
fn letters(class: Block) -> u64 {
    with(class, LETTER)
}

/// The hex digits.
#[inline]
#[target_feature(enable = "avx2")]
fn digits(class: Block) -> u64 {
    with(class, HEX)
}

#[inline]
#[target_feature(enable = "avx2")]
fn with(class: Block, bits: u8) -> u64 {
    let bits = _mm256_set1_epi8(bits as i8);
    let none = |half| _mm256_cmpeq_epi8(_mm256_and_si256(half, bits), _mm256_setzero_si256());
    !mask([none(class[0]), none(class[1])])
}

#[inline]
#[target_feature(enable = "avx2")]
fn class_half(half: __m256i) -> __m256i {
    let nibble = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(table(CLASS_LOW), _mm256_and_si256(half, nibble));
    let top = _mm256_and_si256(_mm256_srli_epi16::<4>(half), nibble);
    _mm256_and_si256(low, _mm256_shuffle_epi8(table(CLASS_HIGH), top))
}

#[inline]
#[target_feature(enable = "avx2")]
fn table(bytes: [u8; 16]) -> __m256i {
    let bytes = u128::from_le_bytes(bytes);
    _mm256_broadcastsi128_si256(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}

string_kernel!("avx2");
escape_kernel!("avx2");
