//! The walker: one pass that checks grammar and knows where each value ends.
//!
//! Safe Rust and total: reading behind the text yields a zero byte, which no state of the
//! grammar accepts, so every loop ends and nothing can panic. The text may be followed by
//! readable padding; whatever lies in it can lengthen a token by mistake but never gets
//! accepted, because [`Walker::finish`] compares the end of the value with the length.
//!
//! Positions travel as plain numbers and faults as `None` with the reason kept aside, which
//! keeps both in registers.

use super::{DecodeError, DecodeErrorKind as Kind};
use crate::buffer::PADDING;
use crate::scan;

/// Deepest nesting that any limit can allow.
pub(crate) const MAX_DEPTH: usize = 1024;

/// Bytes of a string after which the vector kernels take over.
const LONG_STRING: usize = 64;

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
        match self.text.get(pos..).and_then(|rest| rest.first_chunk()) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.word_near_end(pos),
        }
    }

    #[cold]
    fn word_near_end(&self, pos: usize) -> u64 {
        (0..8).fold(0, |word, i| word | u64::from(self.byte(pos + i)) << (8 * i))
    }

    /// Whether exactly `literal` stands at `pos`.
    #[inline(always)]
    pub(crate) fn starts_with(&self, pos: usize, literal: &[u8]) -> bool {
        self.text
            .get(pos..)
            .is_some_and(|rest| rest.starts_with(literal))
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

    #[inline(always)]
    fn digits(&self, mut pos: usize) -> usize {
        while self.byte(pos).is_ascii_digit() {
            pos += 1;
        }
        pos
    }

    /// Walks the object or array that opens at `pos`, inside `depth` others.
    #[inline(never)]
    pub(crate) fn container(&mut self, pos: usize, depth: usize) -> Option<usize> {
        self.walk_container(pos, depth, Shallow(1))
    }

    /// The same for what lies deeper than one word can track.
    #[cold]
    #[inline(never)]
    fn deep_container(&mut self, pos: usize, depth: usize) -> Option<usize> {
        let deep = Deep {
            bits: [0; MAX_DEPTH / 64],
            len: 0,
        };
        self.walk_container(pos, depth, deep)
    }

    #[inline(always)]
    fn walk_container<S: Stack>(
        &mut self,
        mut pos: usize,
        depth: usize,
        mut stack: S,
    ) -> Option<usize> {
        let mut byte = self.byte(pos);
        'open: loop {
            let mut object = byte == b'{';
            if depth + stack.len() >= self.max_depth {
                return self.fail(Kind::TooDeep, pos);
            }
            stack.push(object);
            (pos, byte) = self.next(pos + 1);
            if byte == closer(object) {
                match self.after_close(pos + 1, &mut stack)? {
                    Next::End(end) => return Some(end),
                    Next::Item(next) => (pos, byte, object) = next,
                }
            }
            loop {
                if object {
                    if byte != b'"' {
                        return self.fail(Kind::UnexpectedByte, pos);
                    }
                    let end = self.string(pos + 1)?;
                    (pos, byte) = self.colon(end)?;
                }
                pos = match byte {
                    b'"' => self.string(pos + 1)?,
                    b'{' | b'[' if stack.is_full() => {
                        self.deep_container(pos, depth + stack.len())?
                    }
                    b'{' | b'[' => continue 'open,
                    _ => self.scalar(pos, byte)?,
                };
                (pos, byte) = self.next(pos);
                if byte == b',' {
                    (pos, byte) = self.next(pos + 1);
                } else if byte == closer(object) {
                    match self.after_close(pos + 1, &mut stack)? {
                        Next::End(end) => return Some(end),
                        Next::Item(next) => (pos, byte, object) = next,
                    }
                } else {
                    return self.fail(Kind::UnexpectedByte, pos);
                }
            }
        }
    }

    /// Behind a closing bracket: closes what closes with it.
    #[inline(always)]
    fn after_close<S: Stack>(&mut self, mut pos: usize, stack: &mut S) -> Option<Next> {
        loop {
            let Some(object) = stack.pop() else {
                return Some(Next::End(pos));
            };
            let byte;
            (pos, byte) = self.next(pos);
            if byte == b',' {
                let (pos, byte) = self.next(pos + 1);
                return Some(Next::Item((pos, byte, object)));
            }
            if byte != closer(object) {
                return self.fail(Kind::UnexpectedByte, pos);
            }
            pos += 1;
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
}

/// What follows a closing bracket.
enum Next {
    /// Nothing: it closed the outermost container.
    End(usize),
    /// The next member or element (position and first byte) of an object (or not).
    Item((usize, u8, bool)),
}

#[inline(always)]
fn closer(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// The open containers of one walk: for each whether it is an object.
trait Stack {
    fn push(&mut self, object: bool);
    /// Drops the innermost; the kind of the one around it, if any.
    fn pop(&mut self) -> Option<bool>;
    fn is_full(&self) -> bool;
    fn len(&self) -> usize;
}

/// Up to 63 levels in one word, below a sentinel bit.
struct Shallow(u64);

impl Stack for Shallow {
    #[inline(always)]
    fn push(&mut self, object: bool) {
        self.0 = self.0 << 1 | u64::from(object);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<bool> {
        self.0 >>= 1;
        (self.0 != 1).then_some(self.0 & 1 == 1)
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.0 >> 63 == 1
    }

    #[inline(always)]
    fn len(&self) -> usize {
        63 - self.0.leading_zeros() as usize
    }
}

/// As many levels as any limit allows.
struct Deep {
    bits: [u64; MAX_DEPTH / 64],
    len: usize,
}

impl Stack for Deep {
    fn push(&mut self, object: bool) {
        if let Some(word) = self.bits.get_mut(self.len / 64) {
            let bit = 1 << (self.len % 64);
            *word = if object { *word | bit } else { *word & !bit };
        }
        self.len += 1;
    }

    fn pop(&mut self) -> Option<bool> {
        self.len = self.len.saturating_sub(1);
        let top = self.len.checked_sub(1)?;
        self.bits
            .get(top / 64)
            .map(|word| word >> (top % 64) & 1 == 1)
    }

    fn is_full(&self) -> bool {
        false
    }

    fn len(&self) -> usize {
        self.len
    }
}
