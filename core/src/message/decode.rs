//! The one pass: validates a frame and notes where its members lie.

use super::envelope::{Envelope, Field, Kind, Span};
use super::fault::Fault;
use super::frame::Frame;
use super::keys::{Key, Level, META_PREFIX, META_PREFIXED};
use crate::json::number;
use crate::json::walk::Walker;
use crate::json::{DecodeError, DecodeErrorKind, JsonStr, reader};
use crate::limits::MAX_ID_BYTES;

/// Validates the whole frame as JSON and UTF-8 and records what message it is in `out`.
///
/// One pass, no allocation, nothing is changed. Member order does not matter. A message that
/// is JSON but no valid JSON-RPC is [`Kind::Invalid`] with a [`Fault`], and `Ok`.
///
/// # Errors
/// The frame is not JSON, not UTF-8, or nests deeper than `max_depth` (at most 1024). `out` is
/// then [`Kind::Invalid`], and its id is still there if a complete, unrepeated top-level `id`
/// member stood before the fault.
pub fn decode(frame: Frame<'_>, max_depth: usize, out: &mut Envelope) -> Result<(), DecodeError> {
    *out = Envelope::default();
    if frame.len() > MAX_FRAME_BYTES {
        return Err(DecodeError {
            kind: DecodeErrorKind::TooLong,
            offset: u32::MAX,
        });
    }
    let mut pass = Pass {
        walker: Walker::new(frame.padded(), frame.len(), max_depth),
        frame,
        out,
        fault: None,
    };
    match pass.run() {
        Some(()) => Ok(()),
        None => Err(pass.salvage()),
    }
}

/// Longest frame that spans of 32 bits can describe, in bytes.
const MAX_FRAME_BYTES: usize = u32::MAX as usize - crate::buffer::PADDING;

struct Pass<'a, 'o> {
    walker: Walker<'a>,
    frame: Frame<'a>,
    out: &'o mut Envelope,
    /// A duplicate or escaped member.
    fault: Option<Fault>,
}

impl<'a> Pass<'a, '_> {
    fn run(&mut self) -> Option<()> {
        let start = self.walker.skip_ws(0)?;
        match self.walker.byte(start) {
            b'{' => {
                let end = self.object::<{ Level::Top as u8 }>(start, 0)?;
                self.walker.finish(end)?;
                self.classify();
            }
            byte => {
                let end = self.walker.value(start, 0)?;
                self.walker.finish(end)?;
                if byte == b'[' {
                    self.out.kind = Kind::Batch;
                } else {
                    self.out.fault = Some(Fault::NotAnObject);
                }
            }
        }
        Some(())
    }

    /// Walks the object that opens at `pos` and notes the members its level knows.
    fn object<const LEVEL: u8>(&mut self, pos: usize, depth: usize) -> Option<usize> {
        let level = const { level(LEVEL) };
        if depth >= self.walker.max_depth() {
            return self.walker.fail(DecodeErrorKind::TooDeep, pos);
        }
        let mut pos = self.walker.skip_ws(pos + 1)?;
        if self.walker.byte(pos) == b'}' {
            return Some(pos + 1);
        }
        loop {
            if self.walker.byte(pos) != b'"' {
                return self.walker.fail(DecodeErrorKind::UnexpectedByte, pos);
            }
            let (field, key_end) = match self.known(level, pos + 1) {
                Some((field, len)) => (Some(field), pos + 1 + len),
                None => (None, self.other_key(level, pos + 1)?),
            };
            if level == Level::Top && matches!(field, Some(Field::Result | Field::Error)) {
                self.out.answer = true;
            }
            let start = self.walker.colon(key_end)?;
            let opens = self.walker.byte(start) == b'{';
            let end = match field {
                Some(Field::Params) if opens => {
                    self.object::<{ Level::Params as u8 }>(start, depth + 1)?
                }
                Some(Field::Meta) if opens => {
                    self.object::<{ Level::Meta as u8 }>(start, depth + 1)?
                }
                Some(Field::Result) if opens => {
                    self.object::<{ Level::Result as u8 }>(start, depth + 1)?
                }
                _ => self.walker.value(start, depth + 1)?,
            };
            pos = self.walker.skip_ws(end)?;
            let after = self.walker.byte(pos);
            if after != b',' && after != b'}' {
                return self.walker.fail(DecodeErrorKind::UnexpectedByte, pos);
            }
            if let Some(field) = field {
                self.note(field, Span::new(start, end));
            }
            if after == b'}' {
                return Some(pos + 1);
            }
            pos = self.walker.skip_ws(pos + 1)?;
        }
    }

    /// The noted name that stands at `pos`, and its length with the quote.
    #[inline(always)]
    fn known(&self, level: Level, pos: usize) -> Option<(Field, usize)> {
        let word = self.walker.word(pos);
        if let Some(found) = self.lookup(level.keys(), word, pos) {
            return Some(found);
        }
        if level == Level::Meta && self.walker.starts_with(pos, META_PREFIX) {
            let tail = pos + META_PREFIX.len();
            let (field, len) = self.lookup(&META_PREFIXED, self.walker.word(tail), tail)?;
            return Some((field, META_PREFIX.len() + len));
        }
        None
    }

    #[inline(always)]
    fn lookup(&self, keys: &'static [Key], word: u64, pos: usize) -> Option<(Field, usize)> {
        for key in keys {
            if key.may_match(word) && (key.len() <= 8 || self.walker.starts_with(pos, key.name)) {
                return Some((key.field, key.len()));
            }
        }
        None
    }

    /// Walks a key that is not noted; one that only looks different because of escapes is a
    /// fault, since another reader of the same bytes might act on it.
    #[inline]
    fn other_key(&mut self, level: Level, pos: usize) -> Option<usize> {
        let escapes = self.walker.escapes;
        let end = self.walker.string(pos)?;
        if self.walker.escapes != escapes {
            let raw = self.frame.padded().get(pos - 1..end);
            let token = raw.and_then(|raw| std::str::from_utf8(raw).ok());
            if let Some(field) = token
                .and_then(JsonStr::from_token)
                .and_then(|key| level.knows(key))
            {
                self.fault.get_or_insert(Fault::EscapedMember);
                self.out.id_member |= field == Field::Id;
                self.out.answer |= matches!(field, Field::Result | Field::Error);
            }
        }
        Some(end)
    }

    #[inline(always)]
    fn note(&mut self, field: Field, span: Span) {
        if self.out.span(field).is_some() {
            self.fault.get_or_insert(Fault::DuplicateMember);
        } else {
            self.out.set(field, span);
        }
    }

    /// Decides what a well-formed object is.
    fn classify(&mut self) {
        let id = self.id();
        let kind = match self.fault {
            Some(fault) => Err(fault),
            None => self.version().and_then(|()| self.kind(id)),
        };
        self.out.id_member |= id != Id::Absent;
        if id != Id::Valid {
            self.out.set(Field::Id, Span::ABSENT);
        }
        match kind {
            Ok(kind) => self.out.kind = kind,
            Err(fault) => self.out.fault = Some(fault),
        }
    }

    #[inline]
    fn kind(&self, id: Id) -> Result<Kind, Fault> {
        let has = |field| self.out.span(field).is_some();
        let kind = match (has(Field::Method), has(Field::Result), has(Field::Error)) {
            // `id: null` is how an error about an unreadable request is answered (R-RPC-21).
            (false, false, true) if id == Id::Null => return self.error_kind(),
            _ => match id {
                Id::Null => return Err(Fault::IdType),
                Id::Bad(fault) => return Err(fault),
                Id::Absent | Id::Valid => {
                    (has(Field::Method), has(Field::Result), has(Field::Error))
                }
            },
        };
        match kind {
            (true, false, false) => self.request_kind(id),
            (false, true, false) => self.result_kind(id),
            (false, false, true) => self.error_kind(),
            (false, true, true) => Err(Fault::ResultAndError),
            (true, _, _) => Err(Fault::RequestAndResponse),
            (false, false, false) if id == Id::Valid => Err(Fault::NoContent),
            (false, false, false) => Err(Fault::UnknownShape),
        }
    }

    fn request_kind(&self, id: Id) -> Result<Kind, Fault> {
        if self.first_byte(Field::Method) != Some(b'"') {
            return Err(Fault::MethodType);
        }
        if !matches!(self.first_byte(Field::Params), None | Some(b'{')) {
            return Err(Fault::ParamsType);
        }
        match id {
            Id::Absent => Ok(Kind::Notification),
            _ => Ok(Kind::Request),
        }
    }

    fn result_kind(&self, id: Id) -> Result<Kind, Fault> {
        if id == Id::Absent {
            return Err(Fault::ResultWithoutId);
        }
        match self.first_byte(Field::Result) {
            Some(b'{') => Ok(Kind::Response),
            _ => Err(Fault::ResultType),
        }
    }

    fn error_kind(&self) -> Result<Kind, Fault> {
        let raw = self.text(Field::Error).ok_or(Fault::ErrorShape)?;
        let code = reader::find(raw, "code").is_some_and(number::is_integer);
        let message = reader::find(raw, "message").and_then(JsonStr::from_token);
        match message {
            Some(_) if code => Ok(Kind::Error),
            _ => Err(Fault::ErrorShape),
        }
    }

    /// Checks that `jsonrpc` is the string `2.0`.
    #[inline]
    fn version(&self) -> Result<(), Fault> {
        match self.bytes(Field::Version) {
            Some(b"\"2.0\"") => Ok(()),
            None => Err(Fault::VersionMissing),
            Some(_) => self.other_version(),
        }
    }

    #[cold]
    fn other_version(&self) -> Result<(), Fault> {
        match self.text(Field::Version).and_then(JsonStr::from_token) {
            Some(version) if version == "2.0" => Ok(()),
            _ => Err(Fault::VersionWrong),
        }
    }

    /// What the `id` member holds.
    #[inline]
    fn id(&self) -> Id {
        let Some(token) = self.bytes(Field::Id) else {
            return Id::Absent;
        };
        match token {
            [b'"', ..] | [b'-' | b'0'..=b'9', ..] if token.len() > MAX_ID_BYTES => {
                Id::Bad(Fault::IdTooLong)
            }
            [b'"', ..] => Id::Valid,
            [b'-' | b'0'..=b'9', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => Id::Valid,
            b"null" => Id::Null,
            _ => Id::Bad(Fault::IdType),
        }
    }

    #[inline]
    fn bytes(&self, field: Field) -> Option<&'a [u8]> {
        self.out.span(field).get(self.frame.bytes())
    }

    fn text(&self, field: Field) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(field)?).ok()
    }

    #[inline]
    fn first_byte(&self, field: Field) -> Option<u8> {
        self.bytes(field)?.first().copied()
    }

    /// After a syntax fault: keeps of the record only an id that can be trusted.
    #[cold]
    fn salvage(&mut self) -> DecodeError {
        let span = self.out.span(Field::Id);
        // Without a comma in the frame itself, the padding may have completed the member.
        let rest = self.frame.bytes().get(span.end()..).unwrap_or_default();
        let id = match rest.trim_ascii_start() {
            [] => Id::Absent,
            _ => self.id(),
        };
        // For the reader of the error, so that it does not depend on the padding either.
        let exact = crate::json::validate(self.frame.bytes(), self.walker.max_depth());
        let error = exact.err().unwrap_or(self.walker.error());
        let kept = id == Id::Valid
            && span.end() <= error.offset as usize
            && self.fault != Some(Fault::DuplicateMember)
            && self.text(Field::Id).is_some();
        *self.out = Envelope {
            id_member: id != Id::Absent,
            answer: self.out.answer && self.out.span(Field::Method).is_none(),
            ..Envelope::default()
        };
        if kept {
            self.out.set(Field::Id, span);
        }
        error
    }
}

/// What stands under `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Absent,
    Valid,
    Null,
    Bad(Fault),
}

const fn level(number: u8) -> Level {
    match number {
        0 => Level::Top,
        1 => Level::Params,
        2 => Level::Meta,
        _ => Level::Result,
    }
}

/// The elements of a frame whose kind is [`Kind::Batch`], each as a frame of its own to be
/// decoded on its own; nothing for any other frame.
pub fn batch(frame: Frame<'_>) -> Elements<'_> {
    let mut walker = Walker::new(frame.padded(), frame.len(), usize::MAX);
    let pos = match walker.skip_ws(0) {
        Some(pos) if walker.byte(pos) == b'[' => pos + 1,
        _ => frame.len(),
    };
    Elements { frame, pos }
}

/// See [`batch`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    frame: Frame<'a>,
    pos: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let mut walker = Walker::new(self.frame.padded(), self.frame.len(), usize::MAX);
        let start = walker.skip_ws(self.pos)?;
        self.pos = self.frame.len();
        if start >= self.frame.len() {
            return None;
        }
        let end = walker.value(start, 0)?;
        let next = walker.skip_ws(end)?;
        if walker.byte(next) == b',' {
            self.pos = next + 1;
        }
        self.frame.part(start, end)
    }
}
