//! The one pass: validates a frame and notes where its members lie.

use super::fault::Fault;
use super::keys::Level;
use super::record::{Field, Kind, Record};
use crate::json::walk::Walker;
use crate::json::{DecodeError, DecodeErrorKind, JsonStr};
use crate::message::{Frame, Span};

/// Longest frame that spans of 32 bits can describe, in bytes.
const MAX_FRAME_BYTES: usize = u32::MAX as usize - crate::buffer::PADDING;

/// Validates the whole frame as JSON and UTF-8 and records what message it is in `out`.
///
/// One pass, no allocation, nothing is changed; the order of members does not matter, those that are
/// not known are passed over (R-ACT-08). JSON that is no valid message is [`Kind::Invalid`] with a
/// [`Fault`], and `Ok`. A request without `params` is valid here: what that means is for the server to
/// say (R-ACT-06).
///
/// # Errors
/// The frame is not JSON, not UTF-8, or nests deeper than `max_depth` (at most 1024). `out` is then
/// [`Kind::Invalid`], and still has a `request_id` that stood complete before the fault.
pub fn decode(frame: Frame<'_>, max_depth: usize, out: &mut Record) -> Result<(), DecodeError> {
    *out = Record::default();
    let bytes = frame.bytes();
    if bytes.len() > MAX_FRAME_BYTES {
        return Err(DecodeError {
            kind: DecodeErrorKind::TooLong,
            offset: u32::MAX,
        });
    }
    let walker = Walker::new(frame.padded(), bytes.len(), max_depth);
    if Pass::new(walker, bytes, out).run().is_some() {
        return Ok(());
    }
    // Once more without the padding, so that neither the error nor the id depends on it.
    *out = Record::default();
    let walker = Walker::new(bytes, bytes.len(), max_depth);
    let mut pass = Pass::new(walker, bytes, out);
    match pass.run() {
        Some(()) => Ok(()),
        None => Err(pass.salvage()),
    }
}

struct Pass<'a, 'o> {
    walker: Walker<'a>,
    bytes: &'a [u8],
    out: &'o mut Record,
    /// A duplicate or escaped member.
    fault: Option<Fault>,
}

impl<'a, 'o> Pass<'a, 'o> {
    fn new(walker: Walker<'a>, bytes: &'a [u8], out: &'o mut Record) -> Self {
        Self {
            walker,
            bytes,
            out,
            fault: None,
        }
    }

    fn run(&mut self) -> Option<()> {
        let (start, byte) = self.walker.next(0);
        if byte != b'{' {
            let end = self.walker.value(start, byte, 0)?;
            self.walker.finish(end)?;
            self.out.fault = Some(Fault::NotAnObject);
            return Some(());
        }
        let end = self.object(Level::Top, start, 0)?;
        self.walker.finish(end)?;
        match self.fault.map_or_else(|| self.classify(), Err) {
            Ok(kind) => self.out.kind = kind,
            Err(fault) => self.out.fault = Some(fault),
        }
        Some(())
    }

    /// Walks the object that opens at `pos` and notes the members its level knows.
    #[inline(always)]
    fn object(&mut self, level: Level, mut pos: usize, depth: usize) -> Option<usize> {
        if depth >= self.walker.max_depth() {
            return self.walker.fail(DecodeErrorKind::TooDeep, pos);
        }
        let mut before = b'{';
        loop {
            let (quote, more) = self.walker.next_key(pos, before)?;
            if !more {
                return Some(quote);
            }
            before = b',';
            let key = quote + 1;
            let word = self.walker.word(key);
            let noted = level.keys().iter().find(|noted| {
                let rest = || self.bytes.get(key..).unwrap_or_default();
                noted.begins(word) && (noted.is_short() || noted.stands_at(rest()))
            });
            let Some(noted) = noted else {
                let key_end = self.other_key(level, key)?;
                let (start, byte) = self.walker.colon(key_end)?;
                pos = self.walker.value(start, byte, depth + 1)?;
                continue;
            };
            let (start, byte) = self.walker.colon(key + noted.len())?;
            pos = match Level::beneath(noted.field) {
                Some(inner) if byte == b'{' && level == Level::Top => {
                    self.inner(inner, start, depth + 1)?
                }
                _ => self.walker.value(start, byte, depth + 1)?,
            };
            self.note(noted.field, start, pos);
        }
    }

    #[inline(never)]
    fn inner(&mut self, level: Level, pos: usize, depth: usize) -> Option<usize> {
        match level {
            Level::Metadata => self.object(Level::Metadata, pos, depth),
            _ => self.object(Level::Error, pos, depth),
        }
    }

    #[inline(always)]
    fn note(&mut self, field: Field, start: usize, end: usize) {
        if self.out.span(field).is_some() {
            self.fault = Some(Fault::DuplicateMember);
            return;
        }
        self.out.set(field, Span::new(start, end));
    }

    /// Walks a key that is not noted; one that only looks different because of escapes is a fault,
    /// since another reader of the same bytes might act on it.
    fn other_key(&mut self, level: Level, pos: usize) -> Option<usize> {
        let escapes = self.walker.escapes;
        let end = self.walker.string(pos)?;
        if self.walker.escapes != escapes {
            let raw = self.bytes.get(pos - 1..end);
            let token = raw.and_then(|raw| std::str::from_utf8(raw).ok());
            let key = token.and_then(JsonStr::from_token);
            if key.is_some_and(|key| level.knows(key)) {
                self.fault.get_or_insert(Fault::EscapedMember);
            }
        }
        Some(end)
    }

    /// Decides what a well-formed object is.
    #[inline]
    fn classify(&self) -> Result<Kind, Fault> {
        let is = |field, first| self.first_byte(field).is_none_or(|byte| byte == first);
        if !is(Field::Metadata, b'{') {
            return Err(Fault::MetadataType);
        }
        match (
            self.first_byte(Field::Action),
            self.first_byte(Field::Status),
        ) {
            (Some(_), Some(_)) => Err(Fault::RequestAndAnswer),
            (Some(b'"'), None) if !is(Field::Params, b'{') => Err(Fault::ParamsType),
            (Some(b'"'), None) if !is(Field::Tool, b'"') => Err(Fault::ToolType),
            (Some(b'"'), None) if !is(Field::Context, b'"') => Err(Fault::ContextType),
            (Some(b'"'), None) => Ok(Kind::Request),
            (Some(_), None) => Err(Fault::ActionType),
            (None, _) => self.answer(),
        }
    }

    fn answer(&self) -> Result<Kind, Fault> {
        let kind = match (self.text(Field::Type), self.text(Field::Status)) {
            (Some("partial"), None) => Kind::Partial,
            (Some("error"), None) => Kind::Error,
            (None | Some("complete"), Some("success")) | (Some("complete"), None) => Kind::Success,
            (None | Some("complete" | "error"), Some("error")) => Kind::Error,
            (None, None) if self.out.span(Field::Type).is_none() => {
                match self.out.span(Field::Status).is_some() {
                    true => return Err(Fault::StatusWrong),
                    false => return Err(Fault::ActionMissing),
                }
            }
            (None, Some(_)) => return Err(Fault::StatusWrong),
            _ => return Err(Fault::TypeWrong),
        };
        // R-ACT-05
        let is_error = self.first_byte(Field::ErrorType) == Some(b'"');
        let has_error = !matches!(self.first_byte(Field::Error), None | Some(b'n'));
        match kind {
            Kind::Error if !is_error => Err(Fault::ErrorShape),
            Kind::Success | Kind::Partial if has_error => Err(Fault::ErrorShape),
            kind => Ok(kind),
        }
    }

    /// The first byte of a member that is there.
    #[inline(always)]
    fn first_byte(&self, field: Field) -> Option<u8> {
        let span = self.out.span(field);
        span.is_some().then(|| self.walker.byte(span.start()))
    }

    /// A member that is a string without escapes.
    fn text(&self, field: Field) -> Option<&'a str> {
        let token = self.out.span(field).get(self.bytes)?;
        let text = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        std::str::from_utf8(text).ok()
    }

    /// After a syntax fault: keeps of the record only an id that can be trusted.
    fn salvage(&mut self) -> DecodeError {
        let span = self.out.span(Field::RequestId);
        let rest = self.bytes.get(span.end()..).unwrap_or_default();
        let before = self.bytes.get(..span.end()).unwrap_or_default();
        let kept = span.is_some()
            && matches!(rest.trim_ascii_start(), [b',' | b'}', ..])
            && self.fault != Some(Fault::DuplicateMember)
            && std::str::from_utf8(before).is_ok();
        *self.out = Record::default();
        if kept {
            self.out.set(Field::RequestId, span);
        }
        self.walker.error()
    }
}
