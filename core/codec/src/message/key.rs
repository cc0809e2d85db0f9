//! Recognizes the member names that a decoder records, eight bytes at a time.

use super::envelope::Field;

/// Bytes of a frame that are looked at to recognize a name and what follows it.
pub(super) type Window = [u8; 32];

/// A recorded name, and the field for its value.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) field: Field,
    /// The name and its closing quote.
    bytes: [u8; Self::SIZE],
    len: usize,
    /// The first eight bytes of the name, and the mask of the bytes that count.
    word: u64,
    mask: u64,
}

impl Key {
    /// Room for the longest name and its quote.
    const SIZE: usize = 22;

    pub(super) const fn new((name, field): (&'static str, Field)) -> Self {
        let (mut bytes, len) = ([0; Self::SIZE], name.len() + 1);
        let (mut word, mut mask, mut i) = (0, 0, 0);
        while i < len {
            bytes[i] = if i < name.len() {
                name.as_bytes()[i]
            } else {
                b'"'
            };
            if i < 8 {
                word |= (bytes[i] as u64) << (8 * i);
                mask |= 0xff << (8 * i);
            }
            i += 1;
        }
        Self {
            field,
            bytes,
            len,
            word,
            mask,
        }
    }

    /// Whether this name and its quote stand at `at` of the window; `word` holds the eight bytes there.
    #[inline(always)]
    pub(super) fn stands_at(&self, at: usize, word: u64, window: &Window) -> bool {
        // The first comparison decides alone if the name and its quote fit into a word.
        word & self.mask == self.word
            && (self.len <= 8 || window[at..].starts_with(&self.bytes[..self.len]))
    }

    /// Length of the name and its quote.
    #[inline(always)]
    pub(super) const fn spelled_len(&self) -> usize {
        self.len
    }
}

/// The eight bytes at `at`, little-endian.
#[inline(always)]
pub(super) fn word_at(window: &Window, at: usize) -> u64 {
    match window[at..].first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => 0,
    }
}
