//! The algorithm over blocks of 64 bytes, one bit per byte, written once for all instruction
//! sets. Each set's file supplies the questions asked of a block, then expands [`string_kernel`] in its own `#[target_feature]` context, so that everything inlines.

/// A class of bytes as two tables: a byte belongs to it when the entries of its low and its
/// high nibble share a bit.
#[cfg(target_arch = "x86_64")]
pub(super) struct Class {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

/// The letters that may follow a backslash, but `u`.
#[cfg(target_arch = "x86_64")]
pub(super) const LETTERS: Class = Class {
    low: [
        0, 0, 0x0d, 0, 0x08, 0, 0x04, 0, 0, 0, 0, 0, 0x02, 0, 0x04, 0x01,
    ],
    high: [0, 0, 0x01, 0, 0, 0x02, 0x04, 0x08, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// The hex digits.
#[cfg(target_arch = "x86_64")]
pub(super) const DIGITS: Class = Class {
    low: [1, 3, 3, 3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0],
    high: [0, 0, 0, 1, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// What one block hands to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    /// 1 if the next block's first byte is escaped.
    pub(super) escaped: u64,
    /// The first bytes of the next block that must be hex digits.
    pub(super) hex: u64,
}

impl Carry {
    /// The bytes that a backslash before them escapes. An odd run of backslashes escapes what
    /// follows it; the subtraction carries along each run to find its parity (simdjson's way).
    #[inline(always)]
    pub(super) fn escaped(&mut self, slashes: u64) -> u64 {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let starts = slashes & !self.escaped;
        let code = ((starts << 1 | ODD).wrapping_sub(starts)) ^ ODD;
        let escaped = code ^ (slashes | self.escaped);
        self.escaped = (code & slashes) >> 63;
        escaped
    }

    /// The bytes that must be hex digits, where `units` are the escaped letters `u`.
    #[inline(always)]
    pub(super) fn hex_wanted(&mut self, units: u64) -> u64 {
        let wanted = units << 1 | units << 2 | units << 3 | units << 4 | self.hex;
        self.hex = units >> 63 | units >> 62 | units >> 61 | units >> 60;
        wanted
    }
}

/// The 64 bytes at `pos`; near the end of the text a copy, filled up with zeros, which stop
/// every string.
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
            *tail = [0; 64];
            tail.get_mut(..rest.len())?.copy_from_slice(rest);
            Some(tail)
        }
    }
}

/// Expands to `string_end` for the instruction sets named.
#[cfg(target_arch = "x86_64")]
macro_rules! string_kernel {
    ($features:literal) => {
        /// See [`string_end`](crate::scan::string_end).
        #[target_feature(enable = $features)]
        pub(super) fn string_end(text: &[u8], mut pos: usize) -> Option<StringEnd> {
            let mut carry = Carry::default();
            let mut seen = none();
            let mut slashes = 0;
            let mut any_slash = false;
            let mut tail = [0; 64];
            loop {
                let block = load(chunk(text, pos, &mut tail)?);
                // An escape that reaches into this block has its backslash in the one before.
                if slashes == 0 && is_plain(block) {
                    seen = join(seen, block);
                    pos += 64;
                    continue;
                }
                slashes = eq(block, b'\\');
                let escaped = carry.escaped(slashes);
                let quotes = eq(block, b'"') & !escaped;
                let mut bad = escaped & not_letters(block);
                if bad | carry.hex != 0 {
                    let units = escaped & eq(block, b'u');
                    bad &= !units;
                    bad |= carry.hex_wanted(units) & not_digits(block);
                }
                if quotes == 0 {
                    if bad != 0 || has_control(block) {
                        return None;
                    }
                    seen = join(seen, block);
                    any_slash |= slashes != 0;
                    pos += 64;
                    continue;
                }
                // The bits up to the first quote, itself included.
                let inside = quotes ^ quotes.wrapping_sub(1);
                if (bad | control(block)) & inside != 0 {
                    return None;
                }
                return Some(StringEnd {
                    end: pos + quotes.trailing_zeros() as usize,
                    high: has_high(seen) || high(block) & inside != 0,
                    escaped: any_slash || slashes & inside != 0,
                });
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use string_kernel;
