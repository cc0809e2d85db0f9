//! Walks strings: one inline chunk, a loop for longer strings, vector kernels for long ones.

use super::{Kind, Walker, leads};
use crate::scan;

/// Bytes of a string after which the vector kernels take over.
const LONG_STRING: usize = 64;

impl Walker<'_> {
    /// Walks a string whose first byte after the quote is at `pos`; returns the position after the
    /// closing quote.
    #[inline(always)]
    pub(crate) fn string(&mut self, pos: usize) -> Option<usize> {
        Some(self.string_and_next(pos)?.0)
    }

    /// Like [`string`](Self::string), but also returns the two bytes after the string, so that the
    /// usual next token is decided without another read.
    #[inline(always)]
    pub(crate) fn string_and_next(&mut self, pos: usize) -> Option<(usize, [u8; 2])> {
        if let Some(window) = self.chunk::<32>(pos)
            && let Some(chunk) = window.first_chunk()
        {
            let stops = scan::stops(chunk);
            let at = stops.mask.trailing_zeros() as usize & 15;
            if stops.mask != 0 && window[at] == b'"' {
                if stops.high != 0 {
                    self.high |= stops.high_before();
                }
                return Some((pos + at + 1, [window[at + 1], window[at + 2]]));
            }
        }
        let end = self.string_rest(pos)?;
        Some((end, [self.byte(end), self.byte(end + 1)]))
    }

    /// Walks a key, from after its opening quote, and its colon; returns the position and first
    /// byte of the value.
    #[inline(always)]
    pub(crate) fn key(&mut self, pos: usize) -> Option<(usize, u8)> {
        match self.string_and_next(pos)? {
            (end, next) if leads(b':', next) => Some((end + 1, next[1])),
            (end, _) => self.colon(end),
        }
    }

    /// Walks strings that are longer than one chunk, or have escapes.
    #[inline(never)]
    fn string_rest(&mut self, pos: usize) -> Option<usize> {
        let mut at = pos;
        while let Some(chunk) = self.chunk::<16>(at) {
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
                return self.long_string(at);
            }
        }
        // Few bytes are left, usually without escapes or non-ASCII bytes.
        while let Some(b' ' | b'!' | b'#'..=b'[' | b']'..=0x7f) = self.text.get(at) {
            at += 1;
        }
        match self.byte(at) {
            b'"' => Some(at + 1),
            _ => self.long_string(at),
        }
    }

    /// Walks the rest of a long string, or of a string near the end of the text.
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

    /// Finds the fault in the string from `pos` on.
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
