//! 64 bytes as two AVX2 vectors.

use std::arch::x86_64::{
    __m256i, _mm_set_epi64x, _mm256_add_epi8, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256,
};

use super::StringEnd;
use super::block::{Carry, Class, DIGITS, chunk, last, own, string_kernel};
use super::escape::{LETTERS, Sink, escape_kernel};
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
fn has_control(least: __m256i) -> bool {
    _mm256_movemask_epi8(control_half(least)) != 0
}

/// Quotes and backslashes: the only bytes equal to the table entry of their low nibble.
#[inline]
#[target_feature(enable = "avx2")]
fn quote_half(half: __m256i) -> __m256i {
    const OWN: [u8; 16] = own(*b"\"\\");
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

/// Checks four blocks at once; returns `seen` joined with them if they are plain.
#[inline]
#[target_feature(enable = "avx2")]
fn plain(chunk: &[u8; 256], mut seen: __m256i) -> Option<__m256i> {
    let (mut least, mut quotes) = (most(), none());
    for part in chunk.as_chunks().0 {
        let block = load(part);
        seen = join(seen, block);
        least = lower(least, block);
        quotes = join(quotes, [quote_half(block[0]), quote_half(block[1])]);
    }
    let stops = _mm256_or_si256(quotes, control_half(least));
    (_mm256_movemask_epi8(stops) == 0).then_some(seen)
}

#[inline]
#[target_feature(enable = "avx2")]
fn none() -> __m256i {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
fn most() -> __m256i {
    _mm256_set1_epi8(-1)
}

/// The bits set in `a` or in any part of the block.
#[inline]
#[target_feature(enable = "avx2")]
fn join(a: __m256i, block: Block) -> __m256i {
    _mm256_or_si256(a, _mm256_or_si256(block[0], block[1]))
}

/// The bytewise minimum of `a` and the parts of the block.
#[inline]
#[target_feature(enable = "avx2")]
fn lower(a: __m256i, block: Block) -> __m256i {
    _mm256_min_epu8(a, _mm256_min_epu8(block[0], block[1]))
}

#[inline]
#[target_feature(enable = "avx2")]
fn has_high(joined: __m256i) -> bool {
    _mm256_movemask_epi8(joined) != 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn high(block: Block) -> u64 {
    mask(block)
}

/// The letters that may follow a backslash, except `u`; `r` has the same low nibble as `b`.
#[inline]
#[target_feature(enable = "avx2")]
fn letters(block: Block) -> u64 {
    const OWN: [u8; 16] = own(*b"/bfnt");
    let half = |half| {
        let own = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table(OWN), half), half);
        _mm256_or_si256(own, _mm256_cmpeq_epi8(half, _mm256_set1_epi8(b'r' as i8)))
    };
    mask([half(block[0]), half(block[1])])
}

#[inline]
#[target_feature(enable = "avx2")]
fn not_digits(block: Block) -> u64 {
    mask([
        outside_half(block[0], DIGITS),
        outside_half(block[1], DIGITS),
    ])
}

/// The bytes outside a class. The first lookup needs no mask: it returns zero for every non-ASCII
/// byte, and those are in no class.
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

/// Writes a block at once if all its stops have two-byte escapes.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn spread(sink: &mut Sink<'_>, block: Block, stops: u64, len: usize) -> bool {
    // For control characters above 0x0f the lookup yields zero, as for a byte with the top bit set.
    let letter = |half| {
        let place = _mm256_add_epi8(half, _mm256_set1_epi8(0x70));
        _mm256_shuffle_epi8(table(LETTERS), place)
    };
    let none = |letters| _mm256_cmpeq_epi8(letters, _mm256_setzero_si256());
    let letters = [letter(block[0]), letter(block[1])];
    let controls = [control_half(block[0]), control_half(block[1])];
    let longer = _mm256_or_si256(
        _mm256_and_si256(controls[0], none(letters[0])),
        _mm256_and_si256(controls[1], none(letters[1])),
    );
    if _mm256_movemask_epi8(longer) != 0 {
        return false;
    }
    let mut spelled = [0; 64];
    let to = spelled.as_mut_ptr().cast::<__m256i>();
    // SAFETY: S2, the array has the 64 bytes that are stored; the stores are unaligned.
    unsafe {
        _mm256_storeu_si256(to, _mm256_blendv_epi8(block[0], letters[0], controls[0]));
        _mm256_storeu_si256(
            to.add(1),
            _mm256_blendv_epi8(block[1], letters[1], controls[1]),
        );
    }
    sink.spread(&spelled, stops, len);
    true
}

/// Sets the bit that distinguishes lower-case from upper-case letters, in every byte.
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
escape_kernel!("avx2,popcnt");
skip_kernel!("avx2,popcnt");
