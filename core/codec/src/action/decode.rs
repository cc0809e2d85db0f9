//! Decoding: validates a frame in one pass and records where its members lie.

use super::fault::Fault;
use super::keys::{self, Level};
use super::record::{Field, Kind, Record};
use crate::json::key_table::first_of;
use crate::json::walk::Walker;
use crate::json::{DecodeError, DecodeErrorKind, JsonStr};
use crate::message::{Frame, Span};

/// Validates the whole frame as JSON and UTF-8, and records the message in `out`.
///
/// One pass, no allocation; the frame is not modified. Member order does not matter; unknown
/// members are skipped (R-ACT-08). JSON that is not a valid message gives `Ok`, with
/// [`Kind::Invalid`] and a [`Fault`]. A request without `params` is valid here; the server decides
/// about it (R-ACT-06).
///
/// # Errors
/// The frame is not JSON, not UTF-8, or nests deeper than `max_depth` (at most 1024). `out` is then
/// [`Kind::Invalid`]; it still has a `request_id` that was complete before the fault.
pub fn decode(frame: Frame<'_>, max_depth: usize, out: &mut Record) -> Result<(), DecodeError> {
    match pass(frame.padded(), frame.bytes(), max_depth, out) {
        Ok(()) => Ok(()),
        // The second pass excludes the padding, so that neither the error nor the id depends on it.
        Err(_) => pass(frame.bytes(), frame.bytes(), max_depth, out),
    }
}

/// One pass over `bytes`; `text` is `bytes` and its padding, if any.
#[inline]
fn pass(text: &[u8], bytes: &[u8], max_depth: usize, out: &mut Record) -> Result<(), DecodeError> {
    *out = Record::default();
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
        let end = self.object::<{ Level::Top as u8 }>(start, 0)?;
        self.walker.finish(end)?;
        match self.fault.map_or_else(|| self.classify(), Err) {
            Ok(kind) => self.out.kind = kind,
            Err(fault) => self.out.fault = Some(fault),
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
                        first_of!('found, self, place, window at 2, TOP[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
                    }
                    Level::Metadata => {
                        first_of!('found, self, place, window at 2, METADATA[0, 1, 2, 3, 4, 5, 6, 7, 8]);
                    }
                    Level::Error => {
                        first_of!('found, self, place, window at 2, ERROR[0, 1, 2, 3]);
                    }
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
        let (start, byte, _) = self.walker.value_behind(key_end, behind)?;
        let end = match (level, field, byte) {
            (Level::Top, Field::Metadata, b'{') => {
                self.object::<{ Level::Metadata as u8 }>(start, depth)?
            }
            (Level::Top, Field::Error, b'{') => {
                self.object::<{ Level::Error as u8 }>(start, depth)?
            }
            _ => self.walker.value(start, byte, depth)?,
        };
        self.note(field, start, end);
        Some(end)
    }

    #[inline(always)]
    fn note(&mut self, field: Field, start: usize, end: usize) {
        if self.out.span(field).is_some() {
            self.fault = Some(Fault::DuplicateMember);
            return;
        }
        self.out.set(field, Span::new(start, end));
    }

    /// Walks an unknown key. A key that is a known name spelled with escapes is a fault, because
    /// another reader of the same bytes might act on it.
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

    /// Determines the kind of a well-formed object.
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
        let kind = match (self.string(Field::Type), self.string(Field::Status)) {
            (Some(br#""partial""#), None) => Kind::Partial,
            (Some(br#""error""#), None) => Kind::Error,
            (None | Some(br#""complete""#), Some(br#""success""#))
            | (Some(br#""complete""#), None) => Kind::Success,
            (None | Some(br#""complete""# | br#""error""#), Some(br#""error""#)) => Kind::Error,
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

    /// The first byte of a member, if present.
    #[inline(always)]
    fn first_byte(&self, field: Field) -> Option<u8> {
        let span = self.out.span(field);
        span.is_some().then(|| self.walker.byte(span.start()))
    }

    /// A string member as a raw token; `None` if it is absent or not a string.
    fn string(&self, field: Field) -> Option<&'a [u8]> {
        let token = self.out.span(field).get(self.bytes)?;
        token.starts_with(b"\"").then_some(token)
    }

    /// After a syntax fault: clears the record but for an id that can be trusted.
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
