//! What is wrong with a text, and where.

use std::fmt;

use crate::error::{Origin, Scope};

/// Why bytes are not a JSON text, and the offset at which that was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub kind: DecodeErrorKind,
    /// Offset into the text, in bytes; the length of the text when it ended too early.
    pub offset: u32,
}

/// The ways in which bytes fail to be a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A byte that the grammar does not allow here.
    UnexpectedByte,
    /// A raw control character inside a string.
    ControlCharacter,
    /// A backslash that starts no escape of RFC 8259.
    BadEscape,
    /// A number that breaks off or has a leading zero.
    BadNumber,
    /// Something after the one value.
    TrailingBytes,
    /// The bytes are not UTF-8.
    BadUtf8,
    /// Containers nest deeper than the limit.
    TooDeep,
    /// The text is longer than offsets of 32 bits reach.
    TooLong,
    /// A lone surrogate escape, noticed when its string was decoded.
    LoneSurrogate,
}

impl DecodeError {
    /// How far it reaches: the next frame is unaffected.
    pub fn scope(self) -> Scope {
        Scope::Message
    }

    /// Who is at fault: whoever wrote the text.
    pub fn origin(self) -> Origin {
        Origin::Peer
    }

    /// The JSON-RPC code to answer with: `-32700`, or `-32600` for a limit (R-RPC-23).
    pub fn code(self) -> i32 {
        match self.kind {
            DecodeErrorKind::TooDeep | DecodeErrorKind::TooLong => -32600,
            _ => -32700,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            DecodeErrorKind::UnexpectedEnd => "the text ends inside a value",
            DecodeErrorKind::UnexpectedByte => "unexpected byte",
            DecodeErrorKind::ControlCharacter => "raw control character in a string",
            DecodeErrorKind::BadEscape => "invalid escape",
            DecodeErrorKind::BadNumber => "invalid number",
            DecodeErrorKind::TrailingBytes => "bytes after the value",
            DecodeErrorKind::BadUtf8 => "invalid UTF-8",
            DecodeErrorKind::TooDeep => "nested too deeply",
            DecodeErrorKind::TooLong => "too long",
            DecodeErrorKind::LoneSurrogate => "lone surrogate",
        };
        write!(f, "{what} at byte {}", self.offset)
    }
}

impl std::error::Error for DecodeError {}

const _: () = assert!(size_of::<DecodeError>() <= 16);
