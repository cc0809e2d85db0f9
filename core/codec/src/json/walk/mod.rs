//! The walker: checks the grammar in one pass and finds where each value ends.
//!
//! Safe Rust that never panics: a read past the text yields a zero byte, which no state of the
//! grammar accepts, so every loop ends. Readable padding may follow the text. A token may run on
//! into the padding, but is then refused, because [`Walker::finish`] compares the end of the value
//! with the length.
//!
//! Positions are returned as plain numbers and faults as `None`, with the reason stored in the
//! walker; this keeps both in registers.

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
    /// The text and the padding that may be read after it.
    text: &'a [u8],
    len: usize,
    max_depth: usize,
    /// Whether a non-ASCII byte was seen; such bytes are valid only inside strings.
    high: bool,
    /// Grows whenever escapes are passed; long strings count as one escape at most per kernel run.
    pub(crate) escapes: usize,
    /// Whether the number walked last has neither a fraction nor an exponent.
    pub(crate) integer: bool,
    error: DecodeError,
}

/// Whether the first byte of `pair` is `byte` and the second is not whitespace.
#[inline(always)]
pub(crate) fn leads(byte: u8, pair: [u8; 2]) -> bool {
    let (low, high) = ([byte, b' ' + 1], [byte, 0xff]);
    (u16::from_be_bytes(low)..=u16::from_be_bytes(high)).contains(&u16::from_be_bytes(pair))
}

impl<'a> Walker<'a> {
    /// A walker of the first `len` bytes of `buf`; the bytes after them are padding.
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

    /// A walker of a frame. Refuses frames that are too long for the 32-bit offsets of a record.
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

    /// The byte at `pos`; zero past the readable bytes.
    #[inline(always)]
    pub(crate) fn byte(&self, pos: usize) -> u8 {
        match self.text.get(pos) {
            Some(&byte) => byte,
            None => 0,
        }
    }

    /// The eight bytes at `pos`, little-endian; unreadable bytes are zero.
    #[inline(always)]
    pub(crate) fn word(&self, pos: usize) -> u64 {
        match self.chunk(pos) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.word_near_end(pos),
        }
    }

    /// The `N` bytes at `pos`, if all are readable.
    #[inline(always)]
    pub(crate) fn chunk<const N: usize>(&self, pos: usize) -> Option<&'a [u8; N]> {
        // In this form, the check compiles to two comparisons.
        self.text.get(pos..pos.wrapping_add(N))?.first_chunk()
    }

    /// The 32 bytes at `pos`; if not all are readable, a copy padded with zeros.
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

    /// The position and value of the first byte at or after `pos` that is not whitespace.
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
        // Between two tokens on a line there is usually no space, or one.
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

    /// Checks that only whitespace follows the value that ended at `end`, and that the text is
    /// UTF-8.
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

    /// Walks the value that starts with `byte` at `pos`, inside `depth` containers; returns its
    /// end.
    #[inline(always)]
    pub(crate) fn value(&mut self, pos: usize, byte: u8, depth: usize) -> Option<usize> {
        match byte {
            b'"' => self.string(pos + 1),
            b'{' | b'[' => self.container(pos, depth),
            byte => self.scalar(pos, byte),
        }
    }

    /// Like [`value`](Self::value), but for text that is already validated: containers are skipped
    /// by counting brackets.
    #[inline]
    pub(crate) fn skip(&mut self, pos: usize, byte: u8) -> Option<usize> {
        match byte {
            b'"' => self.string(pos + 1),
            b'{' | b'[' => scan::container_end(self.text, pos + 1),
            byte => self.scalar(pos, byte),
        }
    }

    /// Moves to the opening quote of the next key and returns `true`; without a next key, moves
    /// past the closing brace and returns `false`. `pos` is at the opening brace of an object or
    /// after one of its members; `before` is the byte expected before the key: the opening brace or
    /// a comma.
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

    /// Moves from the end of a key to the start of its value; returns that position and its byte.
    #[inline(always)]
    pub(crate) fn colon(&mut self, pos: usize) -> Option<(usize, u8)> {
        let (pos, byte) = self.next(pos);
        if byte != b':' {
            return self.fail(Kind::UnexpectedByte, pos);
        }
        Some(self.next(pos + 1))
    }

    /// Like [`colon`](Self::colon), given the eight bytes after the key; also returns the first
    /// seven bytes of the value.
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
