//! The string algorithm over blocks of 64 bytes, one bit per byte, written once for all instruction
//! sets. The file of each set supplies the block operations and expands [`string_kernel`] in its
//! own `#[target_feature]` context, so that everything inlines.

/// A class of bytes as two tables: a byte belongs to the class if the entries of its low and its
/// high nibble share a bit.
pub(super) struct Class {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

/// The hex digits.
pub(super) const DIGITS: Class = Class {
    low: [1, 3, 3, 3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0],
    high: [0, 0, 0, 1, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// A table that maps the low nibble of each of `bytes` to that byte, so that a byte equal to its
/// entry is one of them. Entries of other nibbles match no byte.
pub(super) const fn own<const N: usize>(bytes: [u8; N]) -> [u8; 16] {
    let mut table = [0xff; 16];
    table[15] = 0;
    let mut i = 0;
    while i < N {
        table[(bytes[i] & 15) as usize] = bytes[i];
        i += 1;
    }
    table
}

/// The state that one block passes to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    /// 1 if the first byte of the next block is escaped.
    pub(super) escaped: u64,
    /// The first bytes of the next block that must be hex digits.
    pub(super) hex: u64,
}

impl Carry {
    /// The bytes escaped by a backslash before them. A run of backslashes of odd length escapes the
    /// next byte; the subtraction carries along each run to find its parity (as in simdjson).
    #[inline(always)]
    pub(super) fn escaped(&mut self, slashes: u64) -> u64 {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let starts = slashes & !self.escaped;
        let code = ((starts << 1 | ODD).wrapping_sub(starts)) ^ ODD;
        let escaped = code ^ (slashes | self.escaped);
        self.escaped = (code & slashes) >> 63;
        escaped
    }

    /// The bytes that must be hex digits; `units` marks the escaped letters `u`.
    #[inline(always)]
    pub(super) fn hex_wanted(&mut self, units: u64) -> u64 {
        let wanted = units << 1 | units << 2 | units << 3 | units << 4 | self.hex;
        self.hex = units >> 63 | units >> 62 | units >> 61 | units >> 60;
        wanted
    }
}

/// The 64 bytes at `pos`; near the end of the text, a copy padded with zeros, which end every
/// string.
#[inline(always)]
pub(super) fn chunk<'a>(
    text: &'a [u8],
    pos: usize,
    tail: &'a mut [u8; 64],
) -> Option<&'a [u8; 64]> {
    let rest = text.get(pos..)?;
    match rest.first_chunk() {
        Some(chunk) => Some(chunk),
        None if rest.is_empty() => None,
        None => {
            *tail = last(rest);
            Some(tail)
        }
    }
}

/// Fewer than 64 bytes, padded with zeros, which end every string.
#[cold]
#[inline(never)]
pub(super) fn last(rest: &[u8]) -> [u8; 64] {
    let mut tail = [0; 64];
    if let Some(to) = tail.get_mut(..rest.len()) {
        to.copy_from_slice(rest);
    }
    tail
}

/// Prefetches the memory one page ahead, where the processor's own prefetching stops, so that long
/// text is read at memory speed.
#[inline(always)]
pub(super) fn fetch_ahead(chunk: &[u8; 256]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    const PAGE: usize = 4096;
    for line in (0..chunk.len()).step_by(64) {
        let address = chunk.as_ptr().wrapping_add(PAGE + line);
        // SAFETY: P1, a hint reads nothing and may name any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}

/// Consecutive plain blocks after which four are checked at once.
pub(super) const CALM: usize = 4;

/// Expands to `string_end` for the named instruction sets.
///
/// The first loop skips text without escapes, four blocks at a time in longer runs. The second loop
/// walks text with escapes, without a branch that depends on their position. Control characters and
/// invalid escapes can only end the walk, so they are collected and checked at the closing quote.
macro_rules! string_kernel {
    ($features:literal) => {
        /// See [`string_end`](crate::scan::string_end).
        #[target_feature(enable = $features)]
        pub(super) fn string_end(text: &[u8], pos: usize) -> Option<StringEnd> {
            let mut rest = text.get(pos..)?;
            let (mut seen, mut least) = (none(), most());
            let (mut any_slash, mut any_bad) = (0, 0);
            let mut missing = 0;
            loop {
                let mut calm = 0;
                while let Some((chunk, behind)) = rest.split_first_chunk() {
                    let block = load(chunk);
                    if !is_plain(block) {
                        break;
                    }
                    seen = join(seen, block);
                    rest = behind;
                    calm += 1;
                    if calm == crate::scan::block::CALM {
                        calm = 0;
                        while let Some((four, behind)) = rest.split_first_chunk()
                            && let Some(joined) = plain(four, seen)
                        {
                            crate::scan::block::fetch_ahead(four);
                            seen = joined;
                            rest = behind;
                        }
                    }
                }
                let mut carry = Carry::default();
                let mut before = !0;
                loop {
                    let block = match rest.split_first_chunk() {
                        Some((chunk, behind)) => {
                            rest = behind;
                            load(chunk)
                        }
                        None if rest.is_empty() => return None,
                        None => {
                            missing = 64 - rest.len();
                            let tail = last(rest);
                            rest = &[];
                            load(&tail)
                        }
                    };
                    let slashes = eq(block, b'\\');
                    let escaped = carry.escaped(slashes);
                    let quotes = eq(block, b'"');
                    let mut bad = escaped & !(letters(block) | quotes | slashes);
                    let quotes = quotes & !escaped;
                    if bad | carry.hex != 0 {
                        let units = escaped & eq(block, b'u');
                        bad &= !units;
                        bad |= carry.hex_wanted(units) & not_digits(block);
                    }
                    if quotes != 0 {
                        // The bits up to and including the first quote.
                        let inside = quotes ^ quotes.wrapping_sub(1);
                        if any_bad | (bad | control(block)) & inside != 0 || has_control(least) {
                            return None;
                        }
                        let at = text.len() + missing - rest.len() - 64;
                        return Some(StringEnd {
                            end: at + quotes.trailing_zeros() as usize,
                            high: has_high(seen) || high(block) & inside != 0,
                            escaped: any_slash | slashes & inside != 0,
                        });
                    }
                    seen = join(seen, block);
                    least = lower(least, block);
                    any_slash |= slashes;
                    any_bad |= bad;
                    // No escape extends across a block without a backslash.
                    if slashes | before == 0 {
                        break;
                    }
                    before = slashes;
                }
            }
        }
    };
}
pub(super) use string_kernel;
