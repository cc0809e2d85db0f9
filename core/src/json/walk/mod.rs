//! The walker: one pass that checks grammar and knows where each value ends.
//!
//! Safe Rust and total: reading behind the text yields a zero byte, which no state of the
//! grammar accepts, so every loop ends and nothing can panic. The text may be followed by
//! readable padding; whatever lies in it can lengthen a token by mistake but never gets
//! accepted, because [`Walker::finish`] compares the end of the value with the length.
//!
//! Positions travel as plain numbers and faults as `None` with the reason kept aside, which
//! keeps both in registers.

mod container;
mod scalar;
mod string;

pub(crate) use scalar::short_integer;

use super::{DecodeError, DecodeErrorKind as Kind};
use crate::buffer::PADDING;
use crate::scan;

/// Deepest nesting that any limit can allow.
pub(crate) const MAX_DEPTH: usize = 1024;

pub(crate) struct Walker<'a> {
    /// The text and whatever padding may be read behind it.
    text: &'a [u8],
    len: usize,
    max_depth: usize,
    /// Whether a byte outside ASCII was seen (they are legal only inside strings).
    high: bool,
    /// How many escapes were passed.
    pub(crate) escapes: usize,
    /// Whether the number walked last has neither fraction nor exponent.
    pub(crate) integer: bool,
    error: DecodeError,
}

/// Whether `pair` is `byte` and something else than whitespace.
#[inline(always)]
pub(crate) fn leads(byte: u8, pair: [u8; 2]) -> bool {
    let (low, high) = ([byte, b' ' + 1], [byte, 0xff]);
    (u16::from_be_bytes(low)..=u16::from_be_bytes(high)).contains(&u16::from_be_bytes(pair))
}

impl<'a> Walker<'a> {
    /// Walks the first `len` bytes of `buf`; what follows them in `buf` is padding.
    pub(crate) fn new(buf: &'a [u8], len: usize, max_depth: usize) -> Self {
        let readable = buf.len().min(len.saturating_add(PADDING));
        Self {
            text: buf.get(..readable).unwrap_or(buf),
            len: len.min(buf.len()),
            max_depth: max_depth.min(MAX_DEPTH),
            high: false,
            escapes: 0,
            integer: false,
            error: DecodeError {
                kind: Kind::UnexpectedByte,
                offset: 0,
            },
        }
    }

    /// The same of a frame, whose length the offsets of its record can tell.
    #[inline]
    pub(crate) fn of_frame(
        buf: &'a [u8],
        len: usize,
        max_depth: usize,
    ) -> Result<Self, DecodeError> {
        if len > u32::MAX as usize - PADDING {
            return Err(DecodeError {
                kind: Kind::TooLong,
                offset: u32::MAX,
            });
        }
        Ok(Self::new(buf, len, max_depth))
    }

    /// The fault that ended the walk.
    pub(crate) fn error(&self) -> DecodeError {
        self.error
    }

    /// The deepest nesting allowed.
    pub(crate) fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// Notes a fault at `pos`.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail<T>(&mut self, kind: Kind, pos: usize) -> Option<T> {
        let kind = match kind {
            Kind::TooDeep | Kind::TooLong | Kind::BadUtf8 | Kind::TrailingBytes => kind,
            _ if pos >= self.len => Kind::UnexpectedEnd,
            kind => kind,
        };
        self.error = DecodeError {
            kind,
            offset: u32::try_from(pos.min(self.len)).unwrap_or(u32::MAX),
        };
        None
    }

    /// The byte at `pos`, zero behind everything readable.
    #[inline(always)]
    pub(crate) fn byte(&self, pos: usize) -> u8 {
        match self.text.get(pos) {
            Some(&byte) => byte,
            None => 0,
        }
    }

    /// The eight bytes at `pos`, little-endian, zero where they are not all readable.
    #[inline(always)]
    pub(crate) fn word(&self, pos: usize) -> u64 {
        match self.chunk(pos) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.word_near_end(pos),
        }
    }

    /// The `N` bytes at `pos`, if they are all readable.
    #[inline(always)]
    pub(crate) fn chunk<const N: usize>(&self, pos: usize) -> Option<&'a [u8; N]> {
        // Put so, the check compiles to two comparisons.
        self.text.get(pos..pos.wrapping_add(N))?.first_chunk()
    }

    /// The bytes at `pos`; if they are not all readable a copy, filled up with zeros.
    #[inline(always)]
    pub(crate) fn window<'w>(&self, pos: usize, copy: &'w mut [u8; 32]) -> &'w [u8; 32]
    where
        'a: 'w,
    {
        match self.chunk(pos) {
            Some(window) => window,
            None => {
                *copy = self.window_near_end(pos);
                copy
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn window_near_end(&self, pos: usize) -> [u8; 32] {
        std::array::from_fn(|i| self.byte(pos + i))
    }

    #[cold]
    #[inline(never)]
    fn word_near_end(&self, pos: usize) -> u64 {
        (0..8).fold(0, |word, i| word | u64::from(self.byte(pos + i)) << (8 * i))
    }

    /// The first position at or after `pos` that holds no whitespace, and its byte.
    #[inline(always)]
    pub(crate) fn next(&self, pos: usize) -> (usize, u8) {
        let byte = self.byte(pos);
        if byte > b' ' {
            return (pos, byte);
        }
        self.next_after_ws(pos)
    }

    #[inline(never)]
    fn next_after_ws(&self, mut pos: usize) -> (usize, u8) {
        // Between two tokens of a line there is one space, if any.
        if let Some([b' ', byte]) = self.chunk(pos)
            && *byte > b' '
        {
            return (pos + 1, *byte);
        }
        let mut byte = self.byte(pos);
        while pos < self.len && matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            pos += 1;
            byte = self.byte(pos);
        }
        (pos, byte)
    }

    /// Checks that nothing but whitespace follows the value that ended at `end`, and that the
    /// text is UTF-8.
    #[inline]
    pub(crate) fn finish(&mut self, end: usize) -> Option<()> {
        if end != self.len {
            let (end, _) = self.next(end);
            if end > self.len {
                return self.fail(Kind::UnexpectedEnd, end);
            }
            if end < self.len {
                return self.fail(Kind::TrailingBytes, end);
            }
        }
        if self.high {
            return self.check_utf8();
        }
        Some(())
    }

    #[cold]
    fn check_utf8(&mut self) -> Option<()> {
        let text = self.text.get(..self.len)?;
        if simdutf8::basic::from_utf8(text).is_ok() {
            return Some(());
        }
        let good = std::str::from_utf8(text).map_or_else(|e| e.valid_up_to(), str::len);
        self.fail(Kind::BadUtf8, good)
    }

    /// Walks one value that starts with `byte` at `pos`, inside `depth` containers; returns its
    /// end.
    #[inline(always)]
    pub(crate) fn value(&mut self, pos: usize, byte: u8, depth: usize) -> Option<usize> {
        match byte {
            b'"' => self.string(pos + 1),
            b'{' | b'[' => self.container(pos, depth),
            byte => self.scalar(pos, byte),
        }
    }

    /// As [`value`](Self::value), in a text that is validated: containers are passed over by
    /// counting brackets.
    #[inline]
    pub(crate) fn skip(&mut self, pos: usize, byte: u8) -> Option<usize> {
        match byte {
            b'"' => self.string(pos + 1),
            b'{' | b'[' => scan::container_end(self.text, pos + 1),
            byte => self.scalar(pos, byte),
        }
    }

    /// From the brace that opens an object, or from behind a member of it, to the quote of the
    /// next key; if there is none, to behind the closing brace, and `false`. `before` is what
    /// stands before that key: the opening brace or a comma.
    #[inline]
    pub(crate) fn next_key(&mut self, pos: usize, before: u8) -> Option<(usize, bool)> {
        let (pos, byte) = self.next(pos);
        if byte == b'}' && before == b',' {
            return Some((pos + 1, false));
        }
        if byte != before {
            return self.fail(Kind::UnexpectedByte, pos);
        }
        match self.next(pos + 1) {
            (pos, b'"') => Some((pos, true)),
            (pos, b'}') if before == b'{' => Some((pos + 1, false)),
            (pos, _) => self.fail(Kind::UnexpectedByte, pos),
        }
    }

    /// From behind a key to the start of its value, and its first byte.
    #[inline(always)]
    pub(crate) fn colon(&mut self, pos: usize) -> Option<(usize, u8)> {
        let (pos, byte) = self.next(pos);
        if byte != b':' {
            return self.fail(Kind::UnexpectedByte, pos);
        }
        Some(self.next(pos + 1))
    }

    /// The same where the eight bytes behind the key are known: also the first seven bytes of the
    /// value.
    #[inline(always)]
    pub(crate) fn value_behind(&mut self, key_end: usize, behind: u64) -> Option<(usize, u8, u64)> {
        let [colon, byte, ..] = behind.to_le_bytes();
        if colon == b':' && byte > b' ' {
            return Some((key_end + 1, byte, behind >> 8));
        }
        let (start, byte) = self.colon(key_end)?;
        Some((start, byte, self.word(start)))
    }
}
