//! Escapes text for a JSON string, 64 bytes at a time.
//!
//! ```text
//!   text:    | plain ……… "     plain …… ⏎     | next block
//!   spelled: | plain ……… "     plain …… n     each stop became the letter of its escape
//!   out:     | plain ……… \"   plain …… \n   eight bytes at a time move apart by a table
//! ```
//!
//! Whole words are stored, and the length counts only the valid bytes. No branch depends on where
//! the stops are, only on whether a block has any, and whether one needs six bytes (`\u001f`).
//!
//! Invariants of the `unsafe` blocks here and in [`escape_kernel`]'s expansions:
//!
//! * E1: [`Sink::room`] reserved [`ROOM`] bytes at `Sink::at` before a block, or four plain ones;
//!   a block advances `at` by at most 64 × 6 and stores at most 64 bytes from there on, four
//!   plain ones store 256.
//! * E2: everything below `at` was written, so it may become the vector's length.

use super::scalar::ESCAPES;

/// Most bytes that one block of 64 may write: six for each byte, and one store beyond.
const ROOM: usize = 64 * 6 + 64;

/// Shuffle table: the position of eight bytes when those in a mask get a backslash before them. The
/// backslash is at index 8.
static APART: [[u8; 16]; 256] = {
    let mut table = [[0; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut to = 0;
        let mut byte = 0;
        while byte < 8 {
            if mask >> byte & 1 == 1 {
                table[mask][to] = 8;
                to += 1;
            }
            table[mask][to] = byte;
            to += 1;
            byte += 1;
        }
        mask += 1;
    }
    table
};

/// The letters of the two-byte escapes, by the low nibble of their control characters.
pub(super) const LETTERS: [u8; 16] = {
    let mut letters = [0; 16];
    let mut low = 0;
    while low < 16 {
        let (spelling, len) = ESCAPES[low];
        if len == 2 {
            letters[low] = spelling[1];
        }
        low += 1;
    }
    letters
};

/// Writes to the end of a vector through a cursor.
pub(super) struct Sink<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, expected: usize) -> Self {
        out.reserve(expected + ROOM);
        let at = out.len();
        Self { out, at }
    }

    /// Ensures room for one block.
    #[inline(always)]
    pub(super) fn room(&mut self) {
        if self.out.capacity() - self.at < ROOM {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.commit();
        self.out.reserve(ROOM);
    }

    /// Stores `chunk`, of which the first `count` bytes are valid.
    #[inline(always)]
    pub(super) fn store<const N: usize>(&mut self, chunk: &[u8; N], count: usize) {
        const { assert!(N <= 256) };
        debug_assert!(count <= N && self.at + N <= self.out.capacity());
        // SAFETY: E1.
        unsafe {
            let to = self.out.as_mut_ptr().add(self.at);
            to.copy_from_nonoverlapping(chunk.as_ptr(), N);
        }
        self.at += count;
    }

    /// Stores the escape of one byte.
    #[inline(always)]
    fn escape(&mut self, byte: u8) {
        let (spelling, len) = &ESCAPES[usize::from(byte)];
        debug_assert!(*len != 0 && self.at + 8 <= self.out.capacity());
        // SAFETY: E1.
        unsafe {
            let to = self.out.as_mut_ptr().add(self.at);
            to.copy_from_nonoverlapping(spelling.as_ptr(), 8);
        }
        self.at += usize::from(*len);
    }

    /// Writes the first `len` bytes of a block. `stops` marks its stops, all within `len`; `window`
    /// holds the block and 64 bytes more.
    #[inline(always)]
    pub(super) fn block(&mut self, window: &[u8; 128], mut stops: u64, len: usize) {
        let mut from = 0;
        while stops != 0 {
            let stop = stops.trailing_zeros() as usize;
            stops &= stops - 1;
            if let Some(chunk) = window[from..].first_chunk::<64>() {
                self.store(chunk, stop - from);
            }
            self.escape(window[stop]);
            from = stop + 1;
        }
        if let Some(chunk) = window[from..].first_chunk::<64>() {
            self.store(chunk, len - from);
        }
    }

    /// Writes the first `len` bytes of a block. `stops` marks its stops, all within `len`, which
    /// have already been replaced by the letters of their escapes.
    #[inline]
    #[target_feature(enable = "ssse3,popcnt")]
    pub(super) fn spread(&mut self, spelled: &[u8; 64], stops: u64, len: usize) {
        use std::arch::x86_64::{
            _mm_loadl_epi64, _mm_loadu_si128, _mm_set1_epi8, _mm_shuffle_epi8, _mm_storeu_si128,
            _mm_unpacklo_epi64,
        };
        debug_assert!(self.at + 128 <= self.out.capacity());
        let slashes = _mm_set1_epi8(b'\\' as i8);
        let to = self.out.as_mut_ptr();
        let mut at = self.at;
        let words = spelled.as_chunks::<8>().0.iter().zip(stops.to_le_bytes());
        for (i, (word, stops)) in words.enumerate() {
            // SAFETY: S1 for the word and for the row of the table, E1 for the store.
            unsafe {
                let word = _mm_loadl_epi64(word.as_ptr().cast());
                let apart = _mm_loadu_si128(APART[usize::from(stops)].as_ptr().cast());
                let word = _mm_shuffle_epi8(_mm_unpacklo_epi64(word, slashes), apart);
                _mm_storeu_si128(to.add(at + 8 * i).cast(), word);
            }
            at += stops.count_ones() as usize;
        }
        self.at = at + len;
    }

    /// Sets the vector's length to the bytes written.
    pub(super) fn finish(mut self) {
        self.commit();
    }

    fn commit(&mut self) {
        debug_assert!(self.at <= self.out.capacity());
        // SAFETY: E2.
        unsafe { self.out.set_len(self.at) };
    }
}

/// Expands to `escape_into` for the named instruction sets.
macro_rules! escape_kernel {
    ($features:literal) => {
        /// See [`escape_into`](crate::scan::escape_into).
        #[target_feature(enable = $features)]
        pub(super) fn escape_into(out: &mut Vec<u8>, text: &[u8]) {
            let mut sink = Sink::new(out, text.len());
            // The last block, and any part of one, move to a buffer that has bytes after them.
            let body = (text.len() / 64).saturating_sub(1) * 64;
            let rest = text.get(body..).unwrap_or_default();
            let mut tail = [b' '; 192];
            if let Some(to) = tail.get_mut(..rest.len()) {
                to.copy_from_slice(rest);
            }
            let mut calm = true;
            for (mut source, mut left) in [(text, body), (&tail, rest.len())] {
                while left > 0
                    && let Some(window) = source.first_chunk::<128>()
                    && let Some((head, behind)) = source.split_first_chunk()
                {
                    sink.room();
                    if calm
                        && left >= 256
                        && let Some((four, behind)) = source.split_first_chunk()
                        && plain(four, none()).is_some()
                    {
                        sink.store(four, 256);
                        source = behind;
                        left -= 256;
                        continue;
                    }
                    let block = load(head);
                    let stops = stops(block);
                    let len = left.min(64);
                    calm = stops == 0;
                    if calm {
                        sink.store(head, len);
                    } else if !spread(&mut sink, block, stops, len) {
                        sink.block(window, stops, len);
                    }
                    source = behind;
                    left -= len;
                }
            }
            sink.finish();
        }
    };
}
pub(super) use escape_kernel;
