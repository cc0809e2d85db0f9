//! Request ids: the raw token is kept and echoed, the decoded value is compared (R-RPC-07).

use std::fmt;
use std::hash::{Hash, Hasher};

use super::owned_id::OwnedId;
use crate::json::{self, JsonStr, number};
use crate::limits::MAX_ID_BYTES;

/// A request id as it was sent: a JSON string or an integer of any size.
///
/// Equality and hashing use the type and the decoded value: `"\u0037"` equals `"7"`, but not `7`.
#[derive(Clone, Copy, Debug)]
pub struct RequestId<'a>(&'a str);

/// The type of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdKind {
    /// A JSON integer.
    Integer,
    /// A JSON string.
    String,
}

impl<'a> RequestId<'a> {
    /// Parses a raw JSON token, an integer or a string with its quotes. `None` if it is anything
    /// else, or longer than [`MAX_ID_BYTES`].
    pub fn from_token(token: &'a str) -> Option<Self> {
        let valid = match token.as_bytes().first()? {
            b'"' | b'-' | b'0'..=b'9' => {
                token.len() <= MAX_ID_BYTES && json::validate(token.as_bytes(), 0).is_ok()
            }
            _ => false,
        };
        (valid && (token.starts_with('"') || number::is_integer(token))).then_some(Self(token))
    }

    /// The id of a request in another dialect that has no id; never written.
    pub const NONE: RequestId<'static> = RequestId("");

    /// An id from a decoded frame, which guarantees that the token is valid.
    #[inline]
    pub(super) fn from_decoded(token: &'a str) -> Self {
        Self(token)
    }

    /// The raw token as it was sent.
    #[inline]
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// The id's type.
    #[inline]
    pub fn kind(self) -> IdKind {
        match self.string() {
            Some(_) => IdKind::String,
            None => IdKind::Integer,
        }
    }

    /// The value of an integer id that fits into 64 bits; `None` for a string.
    #[inline]
    pub fn as_u64(self) -> Option<u64> {
        number::as_u64(self.0)
    }

    /// The content of a string id, still escaped.
    #[inline]
    pub fn string(self) -> Option<JsonStr<'a>> {
        JsonStr::from_token(self.0)
    }

    /// An owned copy; allocates only above [`OwnedId::INLINE_BYTES`].
    pub fn to_owned(self) -> OwnedId {
        OwnedId::copy(self.0)
    }

    /// The digits of an integer id. Every integer has one spelling, except zero.
    fn digits(self) -> &'a str {
        if self.0 == "-0" { "0" } else { self.0 }
    }
}

impl PartialEq for RequestId<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.string(), other.string()) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.digits() == other.digits(),
            _ => false,
        }
    }
}

impl Eq for RequestId<'_> {}

impl Hash for RequestId<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.string() {
            Some(string) if string.is_escaped() => {
                state.write_u8(b'"');
                hash_points(string, state);
            }
            Some(string) => {
                state.write_u8(b'"');
                state.write(string.raw().as_bytes());
                state.write_u8(0xff);
            }
            None => self.digits().hash(state),
        }
    }
}

/// Feeds the decoded bytes, so that all spellings of a string hash alike.
fn hash_points<H: Hasher>(string: JsonStr<'_>, state: &mut H) {
    let mut bytes = Vec::with_capacity(string.raw().len());
    for point in string.code_points() {
        match char::from_u32(point) {
            Some(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            None => bytes.extend_from_slice(&point.to_le_bytes()),
        }
    }
    state.write(&bytes);
    state.write_u8(0xff);
}

impl fmt::Display for RequestId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An id for an outgoing message.
pub trait WriteId {
    /// Appends the raw token.
    fn write_id(&self, out: &mut Vec<u8>);
}

impl WriteId for u64 {
    #[inline]
    fn write_id(&self, out: &mut Vec<u8>) {
        number::append(out, *self);
    }
}

impl WriteId for RequestId<'_> {
    #[inline]
    fn write_id(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}

impl WriteId for OwnedId {
    #[inline]
    fn write_id(&self, out: &mut Vec<u8>) {
        self.as_ref().write_id(out);
    }
}

impl<T: WriteId + ?Sized> WriteId for &T {
    #[inline]
    fn write_id(&self, out: &mut Vec<u8>) {
        (**self).write_id(out);
    }
}

impl PartialEq<OwnedId> for RequestId<'_> {
    #[inline]
    fn eq(&self, other: &OwnedId) -> bool {
        *self == other.as_ref()
    }
}

impl From<RequestId<'_>> for OwnedId {
    #[inline]
    fn from(id: RequestId<'_>) -> Self {
        id.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    fn id(token: &str) -> RequestId<'_> {
        RequestId::from_token(token).unwrap()
    }

    #[test]
    fn ids_compare_by_type_and_value() {
        let hasher = std::hash::RandomState::new();
        let same = [
            ("7", "7"),
            ("\"7\"", "\"\\u0037\""),
            ("-0", "0"),
            ("\"\\ud83d\\ude00\"", "\"\u{1f600}\""),
            ("\"\\ud800\"", "\"\\uD800\""),
            ("\"a\\/b\"", "\"a/b\""),
        ];
        for (a, b) in same {
            assert_eq!(id(a), id(b));
            assert_eq!(hasher.hash_one(id(a)), hasher.hash_one(id(b)), "{a} {b}");
            assert_eq!(id(a).to_owned(), id(b).to_owned());
        }
        let different = [
            ("7", "\"7\""),
            ("9007199254740993", "9007199254740992"),
            ("1", "-1"),
            ("\"\"", "0"),
        ];
        for (a, b) in different {
            assert_ne!(id(a), id(b));
        }
    }

    #[test]
    fn only_strings_and_integers_are_ids() {
        let bad = [
            "null", "true", "1.5", "1e3", "1.0", "{}", "[]", "", "01", "\"", "-", " 1", "\"\\x\"",
        ];
        for token in bad {
            assert!(RequestId::from_token(token).is_none(), "{token}");
        }
        assert_eq!(id("18446744073709551616").as_u64(), None);
        assert_eq!(id("18446744073709551615").as_u64(), Some(u64::MAX));
        assert_eq!(id("\"5\"").as_u64(), None);
        assert_eq!(id("\"5\"").kind(), IdKind::String);
        assert_eq!(id("5").kind(), IdKind::Integer);
    }

    #[test]
    fn owned_ids_of_any_length_echo_their_token() {
        for len in [0, 1, 35, 36, 37, 200] {
            let token = format!("\"{}\"", "x".repeat(len));
            assert_eq!(id(&token).to_owned().as_ref().raw(), token);
        }
        assert_eq!(OwnedId::from(7).as_ref().raw(), "7");
        assert_eq!(OwnedId::from("a\"b").as_ref().raw(), "\"a\\\"b\"");
    }
}
