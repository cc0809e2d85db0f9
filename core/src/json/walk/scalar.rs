//! Numbers and the three names.

use super::{Kind, Walker};

impl Walker<'_> {
    /// Walks a number, `true`, `false` or `null` that starts with `byte` at `pos`.
    #[inline]
    pub(crate) fn scalar(&mut self, pos: usize, byte: u8) -> Option<usize> {
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

    /// Passes over the digits at `pos`, eight at a time, so that the length of a number, which
    /// is rarely foreseeable, decides no branch.
    #[inline(always)]
    fn digits(&self, mut pos: usize) -> usize {
        loop {
            // Digits become 0 to 9; adding 0x76 sets the top bit of anything above. A carry
            // only reaches bytes behind one that stops already.
            let values = self.word(pos) ^ 0x3030_3030_3030_3030;
            let sum = values.wrapping_add(0x7676_7676_7676_7676);
            let stops = (sum | values) & 0x8080_8080_8080_8080;
            if stops != 0 {
                return pos + stops.trailing_zeros() as usize / 8;
            }
            pos += 8;
        }
    }
}
