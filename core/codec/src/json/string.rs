//! JSON strings: reading escaped text, and escaping text.

use std::borrow::Cow;

use super::{DecodeError, DecodeErrorKind};
use crate::scan;

/// A string of a validated text, without quotes and still escaped.
///
/// Comparison with a `str` uses the decoded value and does not allocate.
#[derive(Clone, Copy, Debug)]
pub struct JsonStr<'a>(&'a str);

impl<'a> JsonStr<'a> {
    /// The content of the raw token `"…"`; `None` if the token is not a string.
    pub fn from_token(token: &'a str) -> Option<Self> {
        let inner = token.strip_prefix('"')?.strip_suffix('"')?;
        Some(Self(inner))
    }

    /// The text between the quotes, still escaped.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// Whether the string contains escapes.
    pub fn is_escaped(self) -> bool {
        has_escapes(self.0)
    }

    /// The decoded string; borrowed unless there are escapes.
    ///
    /// # Errors
    /// If an escape is a lone surrogate.
    pub fn decode(self) -> Result<Cow<'a, str>, DecodeError> {
        unescape(self.0)
    }

    /// The code points of the decoded string, lone surrogates included.
    pub fn code_points(self) -> impl Iterator<Item = u32> + use<'a> {
        CodePoints { rest: self.0 }
    }
}

impl PartialEq for JsonStr<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
            || (self.is_escaped() || other.is_escaped())
                && self.code_points().eq(other.code_points())
    }
}

impl Eq for JsonStr<'_> {}

impl PartialEq<str> for JsonStr<'_> {
    fn eq(&self, other: &str) -> bool {
        if self.0 == other {
            return !self.is_escaped();
        }
        self.is_escaped() && self.code_points().eq(other.chars().map(u32::from))
    }
}

impl PartialEq<&str> for JsonStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// Whether `raw` contains a backslash. For short strings, as most are, a loop is faster than a
/// search.
#[inline]
fn has_escapes(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let has = |chunk: &[u8]| chunk.iter().fold(false, |any, byte| any | (*byte == b'\\'));
    match (
        bytes.len(),
        bytes.first_chunk::<16>(),
        bytes.last_chunk::<16>(),
    ) {
        (..16, ..) => has(bytes),
        (..=32, Some(first), Some(last)) => has(first) | has(last),
        _ => memchr::memchr(b'\\', bytes).is_some(),
    }
}

/// Decodes the text between the quotes of a JSON string; borrowed when it contains no escapes.
///
/// # Errors
/// An escape is a lone surrogate, or not an escape of RFC 8259.
#[inline]
pub fn unescape(raw: &str) -> Result<Cow<'_, str>, DecodeError> {
    match has_escapes(raw) {
        true => unescape_some(raw).map(Cow::Owned),
        false => Ok(Cow::Borrowed(raw)),
    }
}

fn unescape_some(raw: &str) -> Result<String, DecodeError> {
    let first = raw.find('\\').unwrap_or(raw.len());
    let mut text = String::with_capacity(raw.len());
    let mut at = first;
    text.push_str(&raw[..first]);
    loop {
        let (point, len) = escape(&raw[at..]).ok_or(DecodeError {
            kind: DecodeErrorKind::BadEscape,
            offset: at as u32,
        })?;
        text.push(char::from_u32(point).ok_or(DecodeError {
            kind: DecodeErrorKind::LoneSurrogate,
            offset: at as u32,
        })?);
        at += len;
        match memchr::memchr(b'\\', &raw.as_bytes()[at..]) {
            Some(plain) => {
                text.push_str(&raw[at..at + plain]);
                at += plain;
            }
            None => {
                text.push_str(&raw[at..]);
                return Ok(text);
            }
        }
    }
}

/// The code point of the escape at the start of `raw`, and the length of the escape in bytes. A
/// surrogate pair counts as one escape; a lone surrogate is returned as its own value.
fn escape(raw: &str) -> Option<(u32, usize)> {
    let point = match raw.as_bytes().get(1)? {
        b'"' => b'"',
        b'\\' => b'\\',
        b'/' => b'/',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unicode_escape(raw),
        _ => return None,
    };
    Some((u32::from(point), 2))
}

fn unicode_escape(raw: &str) -> Option<(u32, usize)> {
    let unit = |at: usize| u32::from_str_radix(raw.get(at..at + 4)?, 16).ok();
    let high = unit(2)?;
    if (0xd800..0xdc00).contains(&high)
        && raw.get(6..8) == Some("\\u")
        && let Some(low @ 0xdc00..0xe000) = unit(8)
    {
        return Some((0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12));
    }
    Some((high, 6))
}

struct CodePoints<'a> {
    rest: &'a str,
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (point, len) = match self.rest.as_bytes().first()? {
            b'\\' => escape(self.rest)?,
            _ => {
                let first = self.rest.chars().next()?;
                (u32::from(first), first.len_utf8())
            }
        };
        self.rest = self.rest.get(len..)?;
        Some(point)
    }
}

/// Appends `text` escaped for the inside of a JSON string: escapes quotes, backslashes and control
/// characters, and copies everything else.
#[inline]
pub fn escape_into(out: &mut Vec<u8>, text: &str) {
    scan::escape_into(out, text);
}

/// Longest text, in bytes, that is copied faster in 16-byte chunks than by a vector kernel.
const SHORT: usize = 192;

/// Appends `text` as a JSON string, quotes included.
pub fn append(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    if let Some(chunk) = quoted(text.as_bytes()) {
        out.extend_from_slice(&chunk);
        return out.truncate(start + text.len() + 2);
    }
    out.reserve(text.len() + 18);
    out.push(b'"');
    if text.len() > SHORT || !append_plain(out, text.as_bytes()) {
        out.truncate(start + 1);
        escape_into(out, text);
    }
    out.push(b'"');
}

/// The text in quotes, if both fit into sixteen bytes and nothing needs an escape, as with most
/// names.
#[inline]
fn quoted(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() > 14 {
        return None;
    }
    let chunk = last_chunk(text, text.len());
    let is_plain = scan::stops(&chunk).mask.trailing_zeros() as usize >= text.len();
    let behind = u128::from(b'"') << (8 * (text.len() + 1));
    let word = u128::from(b'"') | u128::from_le_bytes(chunk) << 8 | behind;
    is_plain.then(|| word.to_le_bytes())
}

/// Appends `text` and returns `true` if nothing in it needs an escape; otherwise appends a part of
/// it and returns `false`. Appends whole chunks and then truncates, to avoid copies of variable
/// length.
#[inline]
fn append_plain(out: &mut Vec<u8>, text: &[u8]) -> bool {
    let end = out.len() + text.len();
    let (chunks, rest) = text.as_chunks::<16>();
    for chunk in chunks {
        if scan::stops(chunk).mask != 0 {
            return false;
        }
        out.extend_from_slice(chunk);
    }
    if !rest.is_empty() {
        let chunk = last_chunk(text, rest.len());
        if (scan::stops(&chunk).mask.trailing_zeros() as usize) < rest.len() {
            return false;
        }
        out.extend_from_slice(&chunk);
        out.truncate(end);
    }
    true
}

/// The last `len` bytes of `text`, less than sixteen, followed by zeros.
#[inline]
fn last_chunk(text: &[u8], len: usize) -> [u8; 16] {
    // Overlapping reads agree in the bytes they share.
    let word = if let Some(last) = text.last_chunk() {
        u128::from_le_bytes(*last) >> (8 * (16 - len))
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        u128::from(first) | u128::from(last) << (8 * (len - 8))
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        u128::from(u64::from(first) | u64::from(last) << (8 * (len - 4)))
    } else {
        let bytes = text.iter().rev();
        bytes.fold(0, |word, byte| word << 8 | u128::from(*byte))
    };
    word.to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_is_what_serde_json_writes_and_reads_back() {
        let text: String =
            (0..0x250u32).filter_map(char::from_u32).collect::<String>() + "漢\u{1f600}";
        let mut out = Vec::new();
        append(&mut out, &text);
        let token = String::from_utf8(out).unwrap();
        assert_eq!(token, serde_json::to_string(&text).unwrap());
        let string = JsonStr::from_token(&token).unwrap();
        assert_eq!(string.decode().unwrap(), text);
        assert!(string == text.as_str());
    }

    #[test]
    fn text_of_every_length_is_quoted_with_a_stop_anywhere_or_nowhere() {
        for len in 0..2 * SHORT {
            let plain: String = ('a'..='z').cycle().take(len).collect();
            for at in (0..len).map(Some).chain([None]) {
                let mut text = plain.clone();
                if let Some(at) = at {
                    let stop = ["\"", "\n", "\\", "\u{1f}"][at % 4];
                    text.replace_range(at..at + 1, stop);
                }
                let mut out = b">".to_vec();
                append(&mut out, &text);
                let expected = format!(">{}", serde_json::to_string(&text).unwrap());
                assert_eq!(out, expected.as_bytes());
            }
        }
    }

    #[test]
    fn surrogates_pair_up_or_are_refused() {
        assert_eq!(unescape("\\ud83d\\ude00!").unwrap(), "\u{1f600}!");
        for lone in ["\\ud83d", "\\ude00", "\\ud83d\\u0041", "a\\ud83dx"] {
            assert_eq!(
                unescape(lone).unwrap_err().kind,
                DecodeErrorKind::LoneSurrogate
            );
        }
        assert!(matches!(unescape("plain").unwrap(), Cow::Borrowed("plain")));
    }

    #[test]
    fn strings_compare_by_value() {
        let string = |token| JsonStr::from_token(token).unwrap();
        assert_eq!(string("\"\\u0037\""), string("\"7\""));
        assert!(string("\"tools\\/call\"") == "tools/call");
        assert!(string("\"a\\\\b\"") != "a\\\\b");
        assert_ne!(string("\"\\ud800\""), string("\"\\ud801\""));
        assert_eq!(string("\"\\uD800\""), string("\"\\ud800\""));
    }
}
