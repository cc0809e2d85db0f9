//! JSON errors, with their position.

use std::fmt;

use crate::error::{Origin, Scope};

/// Why bytes are not a JSON text, and the offset at which it was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The fault.
    pub kind: DecodeErrorKind,
    /// Offset into the text, in bytes; the length of the text when it ended too early.
    pub offset: u32,
}

/// The reasons why bytes are not a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The text ends inside a value.
    UnexpectedEnd,
    /// A byte that the grammar does not allow at this place.
    UnexpectedByte,
    /// A raw control character inside a string.
    ControlCharacter,
    /// A backslash that does not start an escape of RFC 8259.
    BadEscape,
    /// A number that is incomplete or has a leading zero.
    BadNumber,
    /// Bytes after the value.
    TrailingBytes,
    /// The bytes are not UTF-8.
    BadUtf8,
    /// Containers are nested deeper than the limit.
    TooDeep,
    /// The text is too long for 32-bit offsets.
    TooLong,
    /// A lone surrogate escape, noticed when its string is decoded.
    LoneSurrogate,
}

impl DecodeError {
    /// How much the error ends: one message.
    pub fn scope(self) -> Scope {
        Scope::Message
    }

    /// The cause of the error: the peer that wrote the text.
    pub fn origin(self) -> Origin {
        Origin::Peer
    }

    /// The JSON-RPC error code to answer with: `-32700`, or `-32600` for a limit (R-RPC-23).
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
