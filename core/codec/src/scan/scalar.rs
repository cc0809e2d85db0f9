//! The reference implementation: byte by byte, without vectors. Every kernel returns the same
//! results.

use super::StringEnd;

/// See [`string_end`](super::string_end).
pub fn string_end(text: &[u8], mut pos: usize) -> Option<StringEnd> {
    let mut high = false;
    let mut escaped = false;
    loop {
        match *text.get(pos)? {
            b'"' => break,
            b'\\' => {
                escaped = true;
                pos += escape_len(text, pos)?;
            }
            0..=0x1f => return None,
            byte => {
                high |= byte >= 0x80;
                pos += 1;
            }
        }
    }
    Some(StringEnd {
        end: pos,
        high,
        escaped,
    })
}

/// Length of the escape whose backslash is at `pos`; `None` if it is not an escape of RFC 8259.
#[inline]
pub fn escape_len(text: &[u8], pos: usize) -> Option<usize> {
    match *text.get(pos + 1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => text
            .get(pos + 2..pos + 6)?
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then_some(6),
        _ => None,
    }
}

/// See [`container_end`](super::container_end).
pub fn container_end(text: &[u8], mut pos: usize) -> Option<usize> {
    let mut in_string = false;
    let mut depth = 1;
    loop {
        match *text.get(pos)? {
            b'\\' if matches!(text.get(pos + 1), Some(b'"' | b'\\')) => pos += 1,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        pos += 1;
        if depth == 0 {
            return Some(pos);
        }
    }
}

/// The escape of each byte, padded to eight bytes, and its length; 0 if the byte needs no escape.
pub(super) const ESCAPES: [([u8; 8], u8); 256] = {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut table = [([0; 8], 0); 256];
    let mut byte = 0;
    while byte < 0x20 {
        let digits = (HEX[byte >> 4], HEX[byte & 15]);
        table[byte] = ([b'\\', b'u', b'0', b'0', digits.0, digits.1, 0, 0], 6);
        byte += 1;
    }
    let short = [
        (0x08, b'b'),
        (0x09, b't'),
        (0x0a, b'n'),
        (0x0c, b'f'),
        (0x0d, b'r'),
        (b'"', b'"'),
        (b'\\', b'\\'),
    ];
    let mut i = 0;
    while i < short.len() {
        table[short[i].0 as usize] = ([b'\\', short[i].1, 0, 0, 0, 0, 0, 0], 2);
        i += 1;
    }
    table
};

/// See [`escape_into`](super::escape_into).
pub fn escape_into(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len());
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let (spelling, len) = &ESCAPES[usize::from(byte)];
        if *len != 0 {
            out.extend_from_slice(&bytes[from..at]);
            out.extend_from_slice(&spelling[..usize::from(*len)]);
            from = at + 1;
        }
    }
    out.extend_from_slice(&bytes[from..]);
}
