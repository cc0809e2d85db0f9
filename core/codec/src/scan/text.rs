//! UTF-8 checks for bytes that are nearly always ASCII.
//!
//! T1: text is made without a further check only from bytes that are all ASCII, which is valid
//! UTF-8.

/// Longest token, in bytes, that is checked here; for longer ones the general check is faster.
const SHORT_BYTES: usize = 128;

/// `bytes` as text, if they are UTF-8. For short tokens, which make up most of a message, several
/// times as fast as the general check.
#[inline]
pub fn text(bytes: &[u8]) -> Option<&str> {
    if bytes.len() <= SHORT_BYTES && is_ascii(bytes) {
        // SAFETY: T1, every byte was checked.
        return Some(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    checked(bytes)
}

#[cold]
fn checked(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// Whether no byte has its top bit set. The last step overlaps the one before if the length is not
/// a multiple of the step.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const TOP: u64 = 0x8080_8080_8080_8080;
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        if bytes.len() > 16 {
            return has_only_ascii(bytes);
        }
        return (u64::from_le_bytes(*first) | u64::from_le_bytes(*last)) & TOP == 0;
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let both = u32::from_le_bytes(*first) | u32::from_le_bytes(*last);
        return both & TOP as u32 == 0;
    }
    bytes.iter().fold(0, |all, byte| all | byte) < 0x80
}

fn has_only_ascii(bytes: &[u8]) -> bool {
    let low = |chunk: &[u8]| chunk.iter().fold(0, |all, byte| all | byte) < 0x80;
    let last = bytes.last_chunk::<16>();
    bytes.chunks_exact(16).all(low) && last.is_none_or(|last| low(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_the_standard_library_takes_for_text() {
        let mut bytes = [0; SHORT_BYTES + 40];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = b' ' + place as u8 % 64;
        }
        for len in 0..bytes.len() {
            for at in 0..=len {
                for strange in [0x00, 0x7f, 0x80, 0xc3, 0xff] {
                    let mut bytes = bytes;
                    if at < len {
                        bytes[at] = strange;
                    }
                    let whole = &bytes[..len];
                    assert_eq!(text(whole), std::str::from_utf8(whole).ok(), "{whole:?}");
                }
            }
        }
        for sentence in ["größer", "an ordinary sentence with one ß in it", "😀"] {
            assert_eq!(text(sentence.as_bytes()), Some(sentence));
        }
    }
}
