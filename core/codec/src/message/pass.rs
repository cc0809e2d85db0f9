//! The decoding pass that JSON-RPC and the action dialect share: validates a frame, and records where
//! the members are that the protocol's tables name.

use super::envelope::{Dialect, Envelope, Field, Kind, Span};
use super::fault::Fault;
use super::key::{Key, Window, word_at};
use crate::json::walk::Walker;
use crate::json::{DecodeError, DecodeErrorKind, JsonStr};

/// A protocol whose messages are JSON objects. The value is the state that one pass keeps for it.
pub(crate) trait Protocol: Default {
    /// The top-level object.
    type Top: Level<Self>;
    /// The dialect that a decoded record names.
    const DIALECT: Dialect;
    /// Whether an array is a batch of messages.
    const HAS_BATCHES: bool;

    /// Determines the kind of a well-formed object without repeated or escaped members.
    fn classify(pass: &mut Pass<'_, '_, Self>) -> Result<Kind, Fault>;

    /// Removes from the record what only the classification needed.
    fn finish(pass: &mut Pass<'_, '_, Self>);

    /// Whether the recorded id may be echoed.
    fn is_id_valid(&self) -> bool;
}

/// Names of members, at most ten, with the fields that record the values.
pub(crate) type MemberNames = &'static [(&'static str, Field)];

/// An object whose members are recorded.
pub(crate) trait Level<P: Protocol>: Sized {
    const MEMBERS: MemberNames;
    /// MemberNames whose names begin with [`PREFIX`](Self::PREFIX), by the rest of their names.
    const PREFIXED: MemberNames = &[];
    const PREFIX: &'static str = "";

    /// Walks the value of a known member, inside `depth` containers; returns its end.
    #[inline(always)]
    fn value(pass: &mut Pass<'_, '_, P>, _: Field, value: Value, depth: usize) -> Option<usize> {
        pass.value(value, depth)
    }
}

/// Where a value begins, and how.
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub(crate) start: usize,
    /// The first byte.
    pub(crate) byte: u8,
    /// The first seven bytes.
    pub(crate) ahead: u64,
}

/// One pass over a frame.
pub(crate) struct Pass<'a, 'o, P> {
    pub(crate) walker: Walker<'a>,
    pub(crate) bytes: &'a [u8],
    pub(crate) out: &'o mut Envelope,
    /// A duplicate or escaped member, or a fault that the protocol noted.
    pub(crate) fault: Option<Fault>,
    pub(crate) state: P,
    /// The last bytes of the text, when fewer than a window are left.
    near_end: Window,
}

/// Decodes `bytes`; `text` is `bytes` and its padding, if any.
#[inline]
pub(crate) fn decode<P: Protocol>(
    text: &[u8],
    bytes: &[u8],
    max_depth: usize,
    out: &mut Envelope,
) -> Result<(), DecodeError> {
    match once::<P>(text, bytes, max_depth, out) {
        Ok(()) => Ok(()),
        // The second pass excludes the padding, so that neither the error nor the id depends on it.
        Err(_) => once::<P>(bytes, bytes, max_depth, out),
    }
}

#[inline]
fn once<P: Protocol>(
    text: &[u8],
    bytes: &[u8],
    max_depth: usize,
    out: &mut Envelope,
) -> Result<(), DecodeError> {
    *out = Envelope::of(P::DIALECT);
    let walker = Walker::of_frame(text, bytes.len(), max_depth)?;
    let mut pass = Pass {
        walker,
        bytes,
        out,
        fault: None,
        state: P::default(),
        near_end: [0; 32],
    };
    match pass.run() {
        Some(()) => Ok(()),
        None => Err(pass.salvage()),
    }
}

/// The key of the member at `index`, if there are so many.
const fn nth(members: MemberNames, index: usize) -> Option<Key> {
    assert!(members.len() <= 10, "a name is not tried");
    if index < members.len() {
        Some(Key::new(members[index]))
    } else {
        None
    }
}

/// Compares a key with each name of a table in turn; on a match, walks the member's value and breaks
/// out of the block `$found` with its end. Expanded for each name, so that names, masks and fields are
/// constants in the code. `$place`: where the key starts, a window that has it, where in the window it
/// starts, and the depth of its members.
macro_rules! first_of {
    ($found:lifetime, $level:ident::$members:ident, $pass:ident, $place:expr) => {
        first_of!($found, $level::$members, $pass, $place, 0 1 2 3 4 5 6 7 8 9)
    };
    ($found:lifetime, $level:ident::$members:ident, $pass:ident, $place:expr, $($index:literal)+) => {{
        let (start, window, at, depth): (usize, &Window, usize, usize) = $place;
        let word = word_at(window, at);
        $(if let Some(key) = const { &nth($level::$members, $index) }
            && key.stands_at(at, word, window)
        {
            let behind = word_at(window, at + key.spelled_len());
            let key_end = start + key.spelled_len();
            break $found $pass.member::<$level>(key.field, key_end, behind, depth)?;
        })+
    }};
}

impl<P: Protocol> Pass<'_, '_, P> {
    fn run(&mut self) -> Option<()> {
        let (start, byte) = self.walker.next(0);
        if byte == b'{' {
            let end = self.object::<P::Top>(start, 0)?;
            self.walker.finish(end)?;
            match self.fault.map_or_else(|| P::classify(self), Err) {
                Ok(kind) => self.out.kind = kind,
                Err(fault) => self.out.fault = Some(fault),
            }
            self.out.id_member |= self.has(Field::Id);
            P::finish(self);
            return Some(());
        }
        let end = self.walker.value(start, byte, 0)?;
        self.walker.finish(end)?;
        if byte == b'[' && P::HAS_BATCHES {
            self.out.kind = Kind::Batch;
        } else {
            self.out.fault = Some(Fault::NotAnObject);
        }
        Some(())
    }

    /// Walks the object that opens at `pos` and records the members that its level names.
    #[inline(always)]
    fn object<L: Level<P>>(&mut self, mut pos: usize, depth: usize) -> Option<usize> {
        if depth >= self.walker.max_depth() {
            return self.walker.fail(DecodeErrorKind::TooDeep, pos);
        }
        let depth = depth + 1;
        // The byte before the next key, with which the window begins.
        let mut before = b'{';
        loop {
            let mut window = self.walker.window(pos, &mut self.near_end);
            if [window[0], window[1]] != [before, b'"'] {
                let (quote, more) = self.walker.next_key(pos, before)?;
                if !more {
                    return Some(quote);
                }
                pos = quote - 1;
                window = self.walker.window(pos, &mut self.near_end);
            }
            before = b',';
            let key = pos + 2;
            pos = 'found: {
                if !L::PREFIX.is_empty() && window[2..].starts_with(L::PREFIX.as_bytes()) {
                    let tail = key + L::PREFIX.len();
                    let window = self.walker.window(tail, &mut self.near_end);
                    first_of!('found, L::PREFIXED, self, (tail, window, 0, depth));
                } else {
                    first_of!('found, L::MEMBERS, self, (key, window, 2, depth));
                }
                let key_end = self.other_key::<L>(key)?;
                let (start, byte) = self.walker.colon(key_end)?;
                self.walker.value(start, byte, depth)?
            };
        }
    }

    /// Walks and records the value of a known member, from the end of its key; `behind` holds the
    /// next eight bytes.
    #[inline(always)]
    fn member<L: Level<P>>(
        &mut self,
        field: Field,
        key_end: usize,
        behind: u64,
        depth: usize,
    ) -> Option<usize> {
        let (start, byte, ahead) = self.walker.value_behind(key_end, behind)?;
        let value = Value { start, byte, ahead };
        let end = L::value(self, field, value, depth)?;
        if self.has(field) {
            self.repeated();
        } else {
            self.out.set(field, Span::new(start, end));
        }
        Some(end)
    }

    #[cold]
    fn repeated(&mut self) {
        self.fault = Some(Fault::DuplicateMember);
    }

    /// Walks a value, and records the members of an object.
    #[inline(always)]
    pub(crate) fn nested<L: Level<P>>(&mut self, value: Value, depth: usize) -> Option<usize> {
        match value.byte {
            b'{' => self.object::<L>(value.start, depth),
            _ => self.value(value, depth),
        }
    }

    /// Walks a value of which nothing more is recorded.
    #[inline(always)]
    pub(crate) fn value(&mut self, value: Value, depth: usize) -> Option<usize> {
        self.walker.value(value.start, value.byte, depth)
    }

    /// Walks an unknown key. A key that is a known name spelled with escapes is a fault, because
    /// another reader of the same bytes might act on it.
    #[inline(never)]
    fn other_key<L: Level<P>>(&mut self, pos: usize) -> Option<usize> {
        let escapes = self.walker.escapes;
        let end = self.walker.string(pos)?;
        if self.walker.escapes != escapes {
            self.escaped::<L>(pos - 1, end);
        }
        Some(end)
    }

    #[cold]
    fn escaped<L: Level<P>>(&mut self, start: usize, end: usize) {
        let Some(name) = self.text(start, end).and_then(JsonStr::from_token) else {
            return;
        };
        let spells = |prefix: &str, rest: &str| {
            let points = prefix.chars().chain(rest.chars()).map(u32::from);
            name.code_points().eq(points)
        };
        let plain = L::MEMBERS.iter().find(|(known, _)| spells("", known));
        let prefixed = || {
            let mut members = L::PREFIXED.iter();
            members.find(|(known, _)| spells(L::PREFIX, known))
        };
        let Some((_, field)) = plain.or_else(prefixed) else {
            return;
        };
        if self.fault != Some(Fault::DuplicateMember) {
            self.fault = Some(Fault::EscapedMember);
        }
        self.out.id_member |= *field == Field::Id;
        self.out.answer |= matches!(field, Field::Result | Field::Error);
    }

    /// Whether the member is recorded.
    #[inline(always)]
    pub(crate) fn has(&self, field: Field) -> bool {
        self.out.span(field).is_some()
    }

    /// Whether the member is recorded, and its value begins with `byte`.
    #[inline(always)]
    pub(crate) fn begins(&self, field: Field, byte: u8) -> bool {
        self.has(field) && self.walker.byte(self.out.span(field).start()) == byte
    }

    #[inline(always)]
    pub(crate) fn is_absent_or_begins(&self, field: Field, byte: u8) -> bool {
        !self.has(field) || self.begins(field, byte)
    }

    /// A part of the frame, if it is UTF-8.
    pub(crate) fn text(&self, start: usize, end: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes.get(start..end)?).ok()
    }

    /// After a syntax fault: clears the record but for an id that can be trusted.
    fn salvage(&mut self) -> DecodeError {
        let span = self.out.span(Field::Id);
        let rest = self.bytes.get(span.end()..).unwrap_or_default();
        let is_kept = matches!(rest.trim_ascii_start(), [b',' | b'}', ..])
            && self.has(Field::Id)
            && self.state.is_id_valid()
            && self.fault != Some(Fault::DuplicateMember)
            && self.text(0, span.end()).is_some();
        *self.out = Envelope {
            id_member: self.has(Field::Id),
            answer: self.out.answer && !self.has(Field::Method),
            ..Envelope::of(P::DIALECT)
        };
        if is_kept {
            self.out.set(Field::Id, span);
        }
        self.walker.error()
    }
}
