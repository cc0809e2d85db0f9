//! Members and elements of validated JSON. Values between them are skipped with the vector kernels
//! of [`scan`](crate::scan).
//!
//! Nothing here panics: on text that was not validated, the iterators end early.

use super::string::JsonStr;
use super::walk::{MAX_DEPTH, Walker};

/// The members of an object, in order, duplicates included.
#[derive(Clone, Debug)]
pub struct Members<'a>(Cursor<'a>);

/// The elements of an array, in order.
#[derive(Clone, Debug)]
pub struct Elements<'a>(Cursor<'a>);

#[derive(Clone, Debug)]
struct Cursor<'a> {
    text: &'a str,
    pos: usize,
}

/// The members of the object `raw`; empty if `raw` is not an object.
pub fn members(raw: &str) -> Members<'_> {
    Members(Cursor::new(raw, b'{'))
}

/// The elements of the array `raw`; empty if `raw` is not an array.
pub fn elements(raw: &str) -> Elements<'_> {
    Elements(Cursor::new(raw, b'['))
}

/// The raw value of the first member of the object `raw` with that name.
pub fn find<'a>(raw: &'a str, name: &str) -> Option<&'a str> {
    members(raw)
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Whether an object may have a member of that name, at any depth: `false` is certain. A search through the text, for names that most
/// objects lack, where [`find`] reads member by member.
pub fn may_have(raw: &str, name: &str) -> bool {
    let text = raw.as_bytes();
    memchr::memmem::find(text, name.as_bytes()).is_some() || memchr::memchr(b'\\', text).is_some()
}

/// The raw value at a path through nested objects.
pub fn find_path<'a>(raw: &'a str, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(raw, |raw, name| find(raw, name))
}

/// The decoded string; `None` if `raw` is not a string token, or contains lone surrogates.
pub fn as_str(raw: &str) -> Option<std::borrow::Cow<'_, str>> {
    JsonStr::from_token(raw)?.decode().ok()
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str, opener: u8) -> Self {
        let walker = Walker::new(text.as_bytes(), text.len(), MAX_DEPTH);
        let pos = match walker.next(0) {
            (pos, byte) if byte == opener => pos + 1,
            _ => text.len(),
        };
        Self { text, pos }
    }

    /// Passes the first byte of the next item to `step`, which returns the item and its end.
    fn next<T>(
        &mut self,
        step: impl FnOnce(&mut Walker<'a>, usize, u8) -> Option<(T, usize)>,
    ) -> Option<T> {
        let mut walker = Walker::new(self.text.as_bytes(), self.text.len(), MAX_DEPTH);
        let (start, byte) = walker.next(self.pos);
        let Some((item, end)) = step(&mut walker, start, byte) else {
            self.pos = self.text.len();
            return None;
        };
        self.pos = match walker.next(end) {
            (end, b',') => end + 1,
            _ => self.text.len(),
        };
        Some(item)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (JsonStr<'a>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.text;
        self.0.next(|walker, start, byte| {
            if byte != b'"' {
                return None;
            }
            let key_end = walker.string(start + 1)?;
            let (value, byte) = walker.colon(key_end)?;
            let end = walker.skip(value, byte)?;
            let key = JsonStr::from_token(text.get(start..key_end)?)?;
            Some(((key, text.get(value..end)?), end))
        })
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.text;
        self.0.next(|walker, start, byte| {
            let end = walker.skip(start, byte)?;
            Some((text.get(start..end)?, end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_raw_and_in_order() {
        let raw = " { \"a\" : [1, 2] , \"b\\u0063\":{\"x\":\"}\"},\"a\":null } ";
        let seen: Vec<_> = members(raw).map(|(k, v)| (k.raw(), v)).collect();
        let expected = [
            ("a", "[1, 2]"),
            ("b\\u0063", "{\"x\":\"}\"}"),
            ("a", "null"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(find(raw, "bc"), Some("{\"x\":\"}\"}"));
        assert_eq!(find_path(raw, &["bc", "x"]), Some("\"}\""));
        assert_eq!(find(raw, "x"), None);
        for (raw, name, may) in [
            (r#"{"a":1}"#, "a", true),
            (r#"{"a":1}"#, "b", false),
            (r#"{"\u0062":1}"#, "b", true),
            ("{}", "b", false),
        ] {
            assert_eq!(may_have(raw, name), may, "{raw} {name}");
        }
    }

    #[test]
    fn elements_come_raw_and_in_order() {
        let seen: Vec<_> = elements("[ {} ,[],\"]\", -1.5e3 ]").collect();
        assert_eq!(seen, ["{}", "[]", "\"]\"", "-1.5e3"]);
        assert_eq!(elements("[]").count(), 0);
        assert_eq!(elements("{\"a\":1}").count(), 0);
    }

    #[test]
    fn iteration_of_what_was_never_validated_ends() {
        for raw in [
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{,}",
            "",
            "{1:2}",
        ] {
            assert!(members(raw).count() <= 1, "{raw}");
        }
    }
}
