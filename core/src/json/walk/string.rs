//! Strings: a first look inline, a loop for the middling ones, the kernels for the long ones.

use super::{Kind, Walker};
use crate::scan;

/// Bytes of a string after which the vector kernels take over.
const LONG_STRING: usize = 64;

impl<'a> Walker<'a> {
    /// Walks a string whose first byte behind the quote is at `pos`; returns the position
    /// behind the closing quote.
    #[inline(always)]
    pub(crate) fn string(&mut self, pos: usize) -> Option<usize> {
        if let Some(chunk) = self.chunk(pos) {
            let stops = scan::stops(chunk);
            let at = stops.mask.trailing_zeros() as usize;
            if stops.mask != 0 && chunk[at & 15] == b'"' {
                if stops.high != 0 {
                    self.high |= stops.high_before();
                }
                return Some(pos + at + 1);
            }
        }
        self.string_rest(pos)
    }

    #[inline(always)]
    fn chunk(&self, pos: usize) -> Option<&'a [u8; 16]> {
        self.text.get(pos..).and_then(|rest| rest.first_chunk())
    }

    /// The same for strings that are longer than one chunk or have escapes.
    #[inline(never)]
    fn string_rest(&mut self, pos: usize) -> Option<usize> {
        let mut at = pos;
        while let Some(chunk) = self.chunk(at) {
            let stops = scan::stops(chunk);
            if stops.high != 0 {
                self.high |= stops.high_before();
            }
            if stops.mask == 0 {
                at += 16;
            } else {
                at += stops.mask.trailing_zeros() as usize;
                match self.byte(at) {
                    b'"' => return Some(at + 1),
                    b'\\' => at = self.escape(at)?,
                    _ => return self.fail(Kind::ControlCharacter, at),
                }
            }
            if at - pos >= LONG_STRING {
                break;
            }
        }
        self.long_string(at)
    }

    /// Walks on in a string that turned out long, or that ends where the text does.
    #[inline(never)]
    fn long_string(&mut self, pos: usize) -> Option<usize> {
        match scan::string_end(self.text, pos) {
            Some(found) => {
                self.high |= found.high;
                self.escapes += usize::from(found.escaped);
                Some(found.end + 1)
            }
            None => self.string_fault(pos),
        }
    }

    /// Finds out why there is no end to the string from `pos` on.
    #[cold]
    fn string_fault(&mut self, mut at: usize) -> Option<usize> {
        loop {
            match self.byte(at) {
                b'"' => return Some(at + 1),
                b'\\' => at = self.escape(at)?,
                0..=0x1f => return self.fail(Kind::ControlCharacter, at),
                byte => {
                    self.high |= byte >= 0x80;
                    at += 1;
                }
            }
        }
    }

    /// Walks one escape whose backslash is at `pos`.
    #[inline]
    fn escape(&mut self, pos: usize) -> Option<usize> {
        self.escapes += 1;
        match scan::scalar::escape_len(self.text, pos) {
            Some(len) => Some(pos + len),
            None => self.fail(Kind::BadEscape, pos),
        }
    }
}
