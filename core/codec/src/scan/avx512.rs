//! 64 bytes as one AVX-512 vector (F and BW).

use std::arch::x86_64::{
    __m512i, _mm_set_epi64x, _mm512_add_epi8, _mm512_and_si512, _mm512_broadcast_i32x4,
    _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_mask_blend_epi8,
    _mm512_min_epu8, _mm512_movepi8_mask, _mm512_or_si512, _mm512_set1_epi8, _mm512_setzero_si512,
    _mm512_shuffle_epi8, _mm512_srli_epi16, _mm512_storeu_si512, _mm512_testn_epi8_mask,
};

use super::StringEnd;
use super::block::{Carry, Class, DIGITS, chunk, last, own, string_kernel};
use super::escape::{LETTERS, Sink, escape_kernel};
use super::skip::skip_kernel;

type Block = __m512i;

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(chunk: &[u8; 64]) -> __m512i {
    // SAFETY: S1, the reference covers the 64 bytes that are loaded; the load is unaligned.
    unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn eq(block: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte as i8))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn control(block: __m512i) -> u64 {
    _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(0x20))
}

/// Quotes, backslashes and control characters.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn stops(block: __m512i) -> u64 {
    eq(block, b'"') | eq(block, b'\\') | control(block)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn is_plain(block: __m512i) -> bool {
    stops(block) == 0
}

/// Checks four blocks at once; returns `seen` joined with them if they are plain.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn plain(chunk: &[u8; 256], mut seen: __m512i) -> Option<__m512i> {
    let mut found = 0;
    for part in chunk.as_chunks().0 {
        let block = load(part);
        seen = join(seen, block);
        found |= stops(block);
    }
    (found == 0).then_some(seen)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn none() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn most() -> __m512i {
    _mm512_set1_epi8(-1)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn join(a: __m512i, block: __m512i) -> __m512i {
    _mm512_or_si512(a, block)
}

/// The bytewise minimum of both.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn lower(a: __m512i, block: __m512i) -> __m512i {
    _mm512_min_epu8(a, block)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn has_high(joined: __m512i) -> bool {
    high(joined) != 0
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn high(block: __m512i) -> u64 {
    _mm512_movepi8_mask(block)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn has_control(least: __m512i) -> bool {
    control(least) != 0
}

/// The letters that may follow a backslash, except `u`; `r` has the same low nibble as `b`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn letters(block: __m512i) -> u64 {
    const OWN: [u8; 16] = own(*b"/bfnt");
    _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table(OWN), block), block) | eq(block, b'r')
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn not_digits(block: __m512i) -> u64 {
    outside(block, DIGITS)
}

/// The bytes outside a class; the first lookup returns zero for every non-ASCII byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn outside(block: __m512i, class: Class) -> u64 {
    let top = _mm512_and_si512(_mm512_srli_epi16::<4>(block), _mm512_set1_epi8(0x0f));
    let low = _mm512_shuffle_epi8(table(class.low), block);
    _mm512_testn_epi8_mask(low, _mm512_shuffle_epi8(table(class.high), top))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn table(bytes: [u8; 16]) -> __m512i {
    let bytes = u128::from_le_bytes(bytes);
    _mm512_broadcast_i32x4(_mm_set_epi64x((bytes >> 64) as i64, bytes as i64))
}

/// Writes a block at once if all its stops have two-byte escapes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn spread(sink: &mut Sink<'_>, block: Block, stops: u64, len: usize) -> bool {
    // For control characters above 0x0f the lookup yields zero, as for a byte with the top bit set.
    let place = _mm512_add_epi8(block, _mm512_set1_epi8(0x70));
    let letters = _mm512_shuffle_epi8(table(LETTERS), place);
    let controls = control(block);
    if controls & eq(letters, 0) != 0 {
        return false;
    }
    let mut spelled = [0; 64];
    let letters = _mm512_mask_blend_epi8(controls, block, letters);
    // SAFETY: S2, the array has the 64 bytes that are stored; the store is unaligned.
    unsafe { _mm512_storeu_si512(spelled.as_mut_ptr().cast(), letters) };
    sink.spread(&spelled, stops, len);
    true
}

/// Sets the bit that distinguishes lower-case from upper-case letters, in every byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn fold(block: __m512i) -> __m512i {
    _mm512_or_si512(block, _mm512_set1_epi8(0x20))
}

string_kernel!("avx512f,avx512bw");
escape_kernel!("avx512f,avx512bw,popcnt");
skip_kernel!("avx512f,avx512bw,popcnt");
