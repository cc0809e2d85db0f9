//! Decoding: validates a frame in one pass and records where its members lie.

mod classify;

use super::envelope::{Envelope, Field, Kind, Span};
use super::fault::Fault;
use super::frame::Frame;
use super::keys::{self, Level};
use crate::buffer::PADDING;
use crate::json::key_table::first_of;
use crate::json::walk::{Walker, short_integer};
use crate::json::{DecodeError, DecodeErrorKind, JsonStr};
use crate::limits::MAX_ID_BYTES;

/// Validates the whole frame as JSON and UTF-8, and records the message in `out`.
///
/// One pass, no allocation; the frame is not modified. Member order does not matter. JSON that is
/// not a valid JSON-RPC message gives `Ok`, with [`Kind::Invalid`] and a [`Fault`].
///
/// # Errors
/// The frame is not JSON, not UTF-8, or nests deeper than `max_depth` (at most 1024). `out` is then
/// [`Kind::Invalid`]; it still has the id if a complete, unrepeated top-level `id` member came
/// before the fault.
pub fn decode(frame: Frame<'_>, max_depth: usize, out: &mut Envelope) -> Result<(), DecodeError> {
    match pass(frame.padded(), frame.bytes(), max_depth, out) {
        Ok(()) => Ok(()),
        // The second pass excludes the padding, so that neither the error nor the id depends on it.
        Err(_) => pass(frame.bytes(), frame.bytes(), max_depth, out),
    }
}

/// Decodes bytes without padding, such as those in a foreign buffer; slower than [`decode`] by some
/// nanoseconds. Short messages are copied to a padded buffer first.
///
/// # Errors
/// As [`decode`].
pub fn decode_unpadded(
    bytes: &[u8],
    max_depth: usize,
    out: &mut Envelope,
) -> Result<(), DecodeError> {
    const SHORT: usize = 448;
    if bytes.len() <= SHORT {
        let mut copy = [0; SHORT + PADDING];
        for (to, byte) in copy.iter_mut().zip(bytes) {
            *to = *byte;
        }
        if pass(&copy, bytes, max_depth, out).is_ok() {
            return Ok(());
        }
    }
    pass(bytes, bytes, max_depth, out)
}

/// One pass over `bytes`; `text` is `bytes` and its padding, if any.
#[inline]
fn pass(
    text: &[u8],
    bytes: &[u8],
    max_depth: usize,
    out: &mut Envelope,
) -> Result<(), DecodeError> {
    *out = Envelope::default();
    let walker = Walker::of_frame(text, bytes.len(), max_depth)?;
    let mut pass = Pass::new(walker, bytes, out);
    match pass.run() {
        Some(()) => Ok(()),
        None => Err(pass.salvage()),
    }
}

struct Pass<'a, 'o> {
    walker: Walker<'a>,
    bytes: &'a [u8],
    out: &'o mut Envelope,
    /// One bit for each field already recorded.
    seen: u32,
    id: Id,
    code_is_integer: bool,
    /// A duplicate or escaped member, or a wrong version.
    fault: Option<Fault>,
}

/// The kind of value in the `id` member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Absent,
    Valid,
    Null,
    Bad,
}

impl<'a, 'o> Pass<'a, 'o> {
    #[inline]
    fn new(walker: Walker<'a>, bytes: &'a [u8], out: &'o mut Envelope) -> Self {
        Self {
            walker,
            bytes,
            out,
            seen: 0,
            id: Id::Absent,
            code_is_integer: false,
            fault: None,
        }
    }

    fn run(&mut self) -> Option<()> {
        let (start, byte) = self.walker.next(0);
        if byte == b'{' {
            let end = self.object::<{ Level::Top as u8 }>(start, 0)?;
            self.walker.finish(end)?;
            self.classify();
            return Some(());
        }
        let end = self.walker.value(start, byte, 0)?;
        self.walker.finish(end)?;
        if byte == b'[' {
            self.out.kind = Kind::Batch;
        } else {
            self.out.fault = Some(Fault::NotAnObject);
        }
        Some(())
    }

    /// Walks the object that opens at `pos` and records the members known at its level.
    #[inline(always)]
    fn object<const LEVEL: u8>(&mut self, mut pos: usize, depth: usize) -> Option<usize> {
        let level = const { Level::from_number(LEVEL) };
        if depth >= self.walker.max_depth() {
            return self.walker.fail(DecodeErrorKind::TooDeep, pos);
        }
        let depth = depth + 1;
        let mut near_end = [0; 32];
        // The byte before the next key, with which the window begins.
        let mut before = b'{';
        loop {
            let mut window = self.walker.window(pos, &mut near_end);
            if [window[0], window[1]] != [before, b'"'] {
                let (quote, more) = self.walker.next_key(pos, before)?;
                if !more {
                    return Some(quote);
                }
                pos = quote - 1;
                window = self.walker.window(pos, &mut near_end);
            }
            before = b',';
            let key = pos + 2;
            let place = (level, key, depth);
            pos = 'found: {
                match level {
                    Level::Top => {
                        first_of!('found, self, place, window at 2, TOP[0, 1, 2, 3, 4, 5]);
                    }
                    Level::Params => {
                        first_of!('found, self, place, window at 2, PARAMS[0, 1, 2, 3, 4, 5, 6]);
                    }
                    Level::Result => first_of!('found, self, place, window at 2, RESULT[0]),
                    Level::Error => first_of!('found, self, place, window at 2, ERROR[0, 1, 2]),
                    Level::Meta if window[2..].starts_with(keys::META_PREFIX) => {
                        let tail = key + keys::META_PREFIX.len();
                        let place = (level, tail, depth);
                        let window = self.walker.window(tail, &mut near_end);
                        first_of!('found, self, place, window at 0, META_PREFIXED[0, 1, 2, 3, 4]);
                    }
                    Level::Meta => first_of!('found, self, place, window at 2, META[0, 1, 2, 3]),
                }
                let key_end = self.other_key(level, key)?;
                let (start, byte) = self.walker.colon(key_end)?;
                self.walker.value(start, byte, depth)?
            };
        }
    }

    /// Walks and records the value of a known member, from the end of its key; `behind` holds the
    /// next eight bytes.
    #[inline(always)]
    fn member(
        &mut self,
        level: Level,
        field: Field,
        key_end: usize,
        behind: u64,
        depth: usize,
    ) -> Option<usize> {
        let (start, byte, ahead) = self.walker.value_behind(key_end, behind)?;
        let end = self.known_value(level, field, start, byte, ahead, depth)?;
        self.note(field, start, end);
        Some(end)
    }

    /// Walks the value of a known member; `ahead` holds its first seven bytes.
    #[inline(always)]
    fn known_value(
        &mut self,
        level: Level,
        field: Field,
        start: usize,
        byte: u8,
        ahead: u64,
        depth: usize,
    ) -> Option<usize> {
        const VERSION: u64 = u64::from_le_bytes(*b"\"2.0\"\0\0\0");
        match (level, field) {
            (Level::Top, Field::Version) => {
                if ahead & 0xff_ffff_ffff == VERSION {
                    return Some(start + 5);
                }
                let end = self.walker.value(start, byte, depth)?;
                self.other_version(start, end);
                Some(end)
            }
            (Level::Top, Field::Id) => {
                let fresh = self.seen & field_bit(Field::Id) == 0;
                if fresh && let Some((len, b',' | b'}')) = short_integer(ahead) {
                    self.id = Id::Valid;
                    return Some(start + len);
                }
                let end = self.walker.value(start, byte, depth)?;
                if fresh {
                    self.note_id(start, end, byte);
                }
                Some(end)
            }
            (Level::Top, Field::Params) if byte == b'{' => {
                self.object::<{ Level::Params as u8 }>(start, depth)
            }
            (Level::Top, Field::Result) => {
                self.out.answer = true;
                match byte {
                    b'{' => self.object::<{ Level::Result as u8 }>(start, depth),
                    _ => self.walker.value(start, byte, depth),
                }
            }
            (Level::Top, Field::Error) => {
                self.out.answer = true;
                match byte {
                    b'{' => self.object::<{ Level::Error as u8 }>(start, depth),
                    _ => self.walker.value(start, byte, depth),
                }
            }
            (Level::Error, Field::ErrorCode) => {
                let end = self.walker.value(start, byte, depth)?;
                let number = matches!(byte, b'-' | b'0'..=b'9');
                self.code_is_integer = number && self.walker.integer;
                Some(end)
            }
            (Level::Params, Field::Meta) if byte == b'{' => {
                self.object::<{ Level::Meta as u8 }>(start, depth)
            }
            _ => self.walker.value(start, byte, depth),
        }
    }

    fn note_id(&mut self, start: usize, end: usize, byte: u8) {
        self.id = match byte {
            b'"' => Id::Valid,
            b'-' | b'0'..=b'9' if self.walker.integer => Id::Valid,
            b'n' => Id::Null,
            _ => Id::Bad,
        };
        if end - start > MAX_ID_BYTES && self.id == Id::Valid {
            self.id = Id::Bad;
            self.fault.get_or_insert(Fault::IdTooLong);
        }
    }

    /// Checks a version that is not spelled `"2.0"`: with escapes, it may still be that string.
    #[cold]
    fn other_version(&mut self, start: usize, end: usize) {
        let token = self.bytes.get(start..end);
        let token = token.and_then(|token| std::str::from_utf8(token).ok());
        match token.and_then(JsonStr::from_token) {
            Some(version) if version == "2.0" => {}
            _ => {
                self.fault.get_or_insert(Fault::VersionWrong);
            }
        }
    }

    /// Walks an unknown key. A key that is a known name spelled with escapes is a fault, because
    /// another reader of the same bytes might act on it.
    #[inline]
    fn other_key(&mut self, level: Level, pos: usize) -> Option<usize> {
        let escapes = self.walker.escapes;
        let end = self.walker.string(pos)?;
        if self.walker.escapes != escapes {
            let raw = self.bytes.get(pos - 1..end);
            let token = raw.and_then(|raw| std::str::from_utf8(raw).ok());
            let key = token.and_then(JsonStr::from_token);
            if let Some(field) = key.and_then(|key| level.knows(key)) {
                if self.fault != Some(Fault::DuplicateMember) {
                    self.fault = Some(Fault::EscapedMember);
                }
                self.out.id_member |= field == Field::Id;
                self.out.answer |= matches!(field, Field::Result | Field::Error);
            }
        }
        Some(end)
    }

    #[inline(always)]
    fn note(&mut self, field: Field, start: usize, end: usize) {
        if self.seen & field_bit(field) != 0 {
            self.repeated();
            return;
        }
        self.seen |= field_bit(field);
        self.out.set(field, Span::new(start, end));
    }

    #[cold]
    fn repeated(&mut self) {
        self.fault = Some(Fault::DuplicateMember);
    }
}

/// The bit that stands for a field in [`Pass::seen`].
const fn field_bit(field: Field) -> u32 {
    1 << field as u32
}

const _: () = assert!(Field::COUNT <= 32);
