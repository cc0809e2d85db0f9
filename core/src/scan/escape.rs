//! Escaping text into a string, 64 bytes at a time.
//!
//! ```text
//!   text: | plain ……… " plain …… \n | next block
//!   out:  | plain ……… \" plain …… \n  ← whole words are stored, the length counts what is real
//! ```
//!
//! Invariants of the `unsafe` blocks here and in [`escape_kernel`]'s expansions:
//!
//! * E1: [`Sink::room`] reserved [`BLOCK_ROOM`] bytes at `Sink::at` before a block; a block
//!   advances `at` by at most 64 × 6 and stores at most 64 bytes from `at` on.
//! * E2: everything below `at` was written, so it may become the vector's length.

use super::scalar::ESCAPES;

/// Most that one block of 64 bytes may write: six for each, and one store beyond.
const BLOCK_ROOM: usize = 64 * 6 + 64;

/// The end of a vector, written through a cursor.
pub(super) struct Sink<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, expected: usize) -> Self {
        out.reserve(expected + BLOCK_ROOM);
        let at = out.len();
        Self { out, at }
    }

    /// Makes sure of room for one block.
    #[inline(always)]
    pub(super) fn room(&mut self) {
        if self.out.capacity() - self.at < BLOCK_ROOM {
            self.commit();
            self.out.reserve(BLOCK_ROOM);
        }
    }

    /// Stores 64 bytes of which the first `count` are real.
    #[inline(always)]
    fn store(&mut self, chunk: &[u8; 64], count: usize) {
        debug_assert!(count <= 64 && self.at + 64 <= self.out.capacity());
        // SAFETY: E1.
        unsafe {
            let to = self.out.as_mut_ptr().add(self.at);
            to.copy_from_nonoverlapping(chunk.as_ptr(), 64);
        }
        self.at += count;
    }

    /// Stores the spelling of one byte that cannot stand for itself.
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

    /// Writes the first `len` bytes of one block whose stops, all among them, are `stops`;
    /// `window` holds the block and 64 bytes more.
    #[inline(always)]
    pub(super) fn block(&mut self, window: &[u8; 128], mut stops: u64, len: usize) {
        let mut from = 0;
        while stops != 0 {
            let stop = stops.trailing_zeros() as usize;
            stops &= stops - 1;
            if let Some(chunk) = window[from..].first_chunk() {
                self.store(chunk, stop - from);
            }
            self.escape(window[stop]);
            from = stop + 1;
        }
        if let Some(chunk) = window[from..].first_chunk() {
            self.store(chunk, len - from);
        }
    }

    /// Ends the writing.
    pub(super) fn finish(mut self) {
        self.commit();
    }

    fn commit(&mut self) {
        debug_assert!(self.at <= self.out.capacity());
        // SAFETY: E2.
        unsafe { self.out.set_len(self.at) };
    }
}

/// Expands to `escape_into` for the instruction sets named.
#[cfg(target_arch = "x86_64")]
macro_rules! escape_kernel {
    ($features:literal) => {
        /// See [`escape_into`](crate::scan::escape_into).
        #[target_feature(enable = $features)]
        pub(super) fn escape_into(out: &mut Vec<u8>, text: &[u8]) {
            let mut sink = crate::scan::escape::Sink::new(out, text.len());
            let mut rest = text;
            while let Some(window) = rest.first_chunk::<128>() {
                sink.room();
                let Some(head) = window.first_chunk() else {
                    break;
                };
                sink.block(window, stops(load(head)), 64);
                rest = &rest[64..];
            }
            // What is left is less than a window: it moves to one, followed by spaces.
            let mut tail = [b' '; 256];
            tail[..rest.len()].copy_from_slice(rest);
            for start in (0..rest.len()).step_by(64) {
                sink.room();
                if let Some(window) = tail[start..].first_chunk::<128>()
                    && let Some(head) = window.first_chunk()
                {
                    sink.block(window, stops(load(head)), (rest.len() - start).min(64));
                }
            }
            sink.finish();
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use escape_kernel;
