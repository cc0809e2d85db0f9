//! Raw JSON values in line-framed messages.

use crate::scan;

/// Longest text, in bytes, for which 16-byte comparisons are faster than a search.
const SHORT: usize = 128;

/// Whether a valid JSON text contains raw line breaks.
#[inline]
pub fn has_breaks(text: &[u8]) -> bool {
    // In valid JSON, the only raw control characters are line breaks and tabs between tokens.
    let plain = |chunk: &[u8; 16]| chunk.iter().fold(true, |all, byte| all & (*byte >= b' '));
    if text.len() <= SHORT
        && let Some(last) = text.last_chunk()
        && text.as_chunks().0.iter().all(plain)
        && plain(last)
    {
        return false;
    }
    memchr::memchr2(b'\n', b'\r', text).is_some()
}

/// Appends `raw`, a valid JSON value, without raw line breaks.
///
/// A frame on a line-framed transport must not contain CR or LF (R-STD-01). In valid JSON they can
/// only be whitespace between tokens. If there are any, all whitespace between tokens is dropped;
/// otherwise the bytes are copied unchanged.
pub fn append_compact(out: &mut Vec<u8>, raw: &str) {
    let bytes = raw.as_bytes();
    if !has_breaks(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    out.reserve(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => at += 1,
            b'"' => {
                let end = scan::string_end(bytes, at + 1).map_or(bytes.len(), |it| it.end + 1);
                out.extend_from_slice(&bytes[at..end]);
                at = end;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_go_and_strings_stay() {
        let raw = "{\r\n  \"a b\\\" \\\\\" : [ 1 ,\t\"\\n x\" ]\n}";
        let mut out = b">".to_vec();
        append_compact(&mut out, raw);
        assert_eq!(out, br#">{"a b\" \\":[1,"\n x"]}"#);
    }

    #[test]
    fn text_without_line_breaks_is_copied_as_it_is() {
        let mut out = Vec::new();
        append_compact(&mut out, "{ \"a\" : 1 }");
        assert_eq!(out, b"{ \"a\" : 1 }");
    }
}
