//! The algorithm over blocks of 64 bytes, one bit per byte, written once for all instruction
//! sets. Each set's file supplies `load`, `eq`, `control`, `stops`, `high`, `class`, `letters`, `digits` and their shortcuts, then
//! expands [`string_kernel`] in its own `#[target_feature]` context, so that everything inlines.

/// Tables of the two-nibble classification: a byte is in a class when the entries of its low
/// and its high nibble share a bit. Bits 0..4 make the letters after a backslash, 4..6 hex.
#[cfg(target_arch = "x86_64")]
pub(super) const CLASS_LOW: [u8; 16] = [
    0x10, 0x30, 0x3d, 0x30, 0x38, 0x38, 0x34, 0x10, 0x10, 0x10, 0, 0, 0x02, 0, 0x04, 0x01,
];
/// See [`CLASS_LOW`].
#[cfg(target_arch = "x86_64")]
pub(super) const CLASS_HIGH: [u8; 16] = [
    0, 0, 0x01, 0x10, 0x20, 0x02, 0x24, 0x08, 0, 0, 0, 0, 0, 0, 0, 0,
];
/// The bits of [`CLASS_LOW`] that make a letter after a backslash.
#[cfg(target_arch = "x86_64")]
pub(super) const LETTER: u8 = 0x0f;
/// The bits of [`CLASS_LOW`] that make a hex digit.
#[cfg(target_arch = "x86_64")]
pub(super) const HEX: u8 = 0x30;

/// What one block hands to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Carry {
    /// 1 if the next block's first byte is escaped.
    pub(super) escaped: u64,
    /// The first bytes of the next block that must be hex digits.
    pub(super) hex: u64,
}

impl Carry {
    #[inline(always)]
    pub(super) fn is_clear(self) -> bool {
        self.escaped | self.hex == 0
    }

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
            let mut high_any = false;
            let mut escaped_any = false;
            let mut tail = [0; 64];
            loop {
                let block = load(chunk(text, pos, &mut tail)?);
                if is_plain(block) && carry.is_clear() {
                    high_any |= has_high(block);
                    pos += 64;
                    continue;
                }
                let slashes = eq(block, b'\\');
                let mut quotes = eq(block, b'"');
                let mut bad = control(block);
                if slashes != 0 || !carry.is_clear() {
                    let escaped = carry.escaped(slashes);
                    let found = class(block);
                    quotes &= !escaped;
                    bad |= escaped & !letters(found);
                    let units = escaped & eq(block, b'u');
                    if units | carry.hex != 0 {
                        bad |= carry.hex_wanted(units) & !digits(found);
                    }
                }
                // The bits up to the first quote, itself included; all when there is none.
                let inside = quotes ^ quotes.wrapping_sub(1);
                if bad & inside != 0 {
                    return None;
                }
                high_any |= high(block) & inside != 0;
                escaped_any |= slashes & inside != 0;
                if quotes != 0 {
                    return Some(StringEnd {
                        end: pos + quotes.trailing_zeros() as usize,
                        high: high_any,
                        escaped: escaped_any,
                    });
                }
                pos += 64;
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use string_kernel;
