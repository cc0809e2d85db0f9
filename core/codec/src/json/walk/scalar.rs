//! Walks numbers, `true`, `false` and `null`.

use super::{Kind, Walker};

impl Walker<'_> {
    /// Walks a number, `true`, `false` or `null` that starts with `byte` at `pos`.
    pub(crate) fn scalar(&mut self, pos: usize, byte: u8) -> Option<usize> {
        // Most numbers are positive.
        if matches!(byte, b'1'..=b'9')
            && let Some((end, behind)) = self.some_digits(pos)
        {
            self.integer = behind != b'.' && behind | 0x20 != b'e';
            if self.integer {
                return Some(end);
            }
            return self.fraction(end, behind);
        }
        self.other_scalar(pos, byte)
    }

    /// Skips the digits at `pos`, eight at a time; returns their end and the byte there. `None`
    /// near the end of the text.
    #[inline(always)]
    fn some_digits(&self, mut pos: usize) -> Option<(usize, u8)> {
        loop {
            let word = u64::from_le_bytes(*self.chunk(pos)?);
            let len = digits(word);
            pos += len;
            if len < 8 {
                return Some((pos, (word >> (8 * len)) as u8));
            }
        }
    }

    #[inline(never)]
    fn other_scalar(&mut self, pos: usize, byte: u8) -> Option<usize> {
        const TRUE: u64 = u64::from_le_bytes(*b"true\0\0\0\0");
        const NULL: u64 = u64::from_le_bytes(*b"null\0\0\0\0");
        const FALSE: u64 = u64::from_le_bytes(*b"false\0\0\0");
        match byte {
            b'-' | b'0'..=b'9' => self.number(pos, byte),
            b't' if self.word(pos) & 0xffff_ffff == TRUE => Some(pos + 4),
            b'n' if self.word(pos) & 0xffff_ffff == NULL => Some(pos + 4),
            b'f' if self.word(pos) & 0xff_ffff_ffff == FALSE => Some(pos + 5),
            _ => self.fail(Kind::UnexpectedByte, pos),
        }
    }

    /// Walks a number that starts with `byte` at `pos`.
    #[inline]
    fn number(&mut self, mut pos: usize, mut byte: u8) -> Option<usize> {
        if byte == b'-' {
            pos += 1;
            byte = self.byte(pos);
        }
        match byte {
            b'0' => pos += 1,
            b'1'..=b'9' => pos = self.digits(pos + 1),
            _ => return self.fail(Kind::BadNumber, pos),
        }
        byte = self.byte(pos);
        self.integer = byte != b'.' && byte | 0x20 != b'e';
        if self.integer {
            return Some(pos);
        }
        self.fraction(pos, byte)
    }

    /// Walks the fraction or exponent of a number, which starts with `byte` at `pos`.
    fn fraction(&mut self, mut pos: usize, mut byte: u8) -> Option<usize> {
        if byte == b'.' {
            let end = self.digits(pos + 1);
            if end == pos + 1 {
                return self.fail(Kind::BadNumber, end);
            }
            pos = end;
            byte = self.byte(pos);
        }
        if byte | 0x20 == b'e' {
            pos += 1;
            if matches!(self.byte(pos), b'+' | b'-') {
                pos += 1;
            }
            let end = self.digits(pos);
            if end == pos {
                return self.fail(Kind::BadNumber, end);
            }
            pos = end;
        }
        Some(pos)
    }

    /// Skips the digits at `pos`, eight at a time, so that no branch depends on the length of a
    /// number, which is hard to predict.
    #[inline(always)]
    fn digits(&self, mut pos: usize) -> usize {
        loop {
            let len = digits(self.word(pos));
            pos += len;
            if len < 8 {
                return pos;
            }
        }
    }
}

/// The length of the positive integer at the start of `word`, and the byte after it. `None` unless
/// both lie within the eight bytes.
#[inline(always)]
pub(crate) fn short_integer(word: u64) -> Option<(usize, u8)> {
    let len = digits(word);
    let found = matches!(word as u8, b'1'..=b'9') && len < 8;
    found.then(|| (len, (word >> (8 * (len & 7))) as u8))
}

/// The number of digits at the start of `word`.
#[inline(always)]
fn digits(word: u64) -> usize {
    // Digits become 0 to 9; adding 0x76 sets the top bit of anything above. A carry only reaches
    // bytes after one that already stops the count.
    let values = word ^ 0x3030_3030_3030_3030;
    let sum = values.wrapping_add(0x7676_7676_7676_7676);
    let stops = (sum | values) & 0x8080_8080_8080_8080;
    stops.trailing_zeros() as usize / 8
}
