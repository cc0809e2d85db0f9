//! Raw values into frames.

use crate::scan;

/// Text of which a few looks at sixteen bytes tell sooner than a search does.
const SHORT: usize = 128;

/// Whether there are raw line breaks in a valid text.
#[inline]
pub(crate) fn has_breaks(text: &[u8]) -> bool {
    // Control characters outside strings are line breaks and tabs; within there are none.
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
/// A frame on a line-framed carrier must not hold CR or LF (R-STD-01). Inside a valid text they
/// can only be whitespace between tokens; when there is one, all such whitespace is dropped,
/// otherwise the bytes are copied as they are.
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
