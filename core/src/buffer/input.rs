//! Fill at the tail, discard at the head.
//!
//! ```text
//!   0        start            end                     capacity
//!   |  free  |  not consumed  |  spare (driver reads) | PADDING |
//! ```
//!
//! Reading goes into `spare`, the deframer looks at `filled`, and consumed frames leave at the
//! head. The bytes move only when the spare room runs out, so each byte is moved O(1) times.

use bytes::Bytes;

use super::PADDING;
use crate::limits::{KEEP_BYTES, READ_BYTES, SHRINK_AFTER};

/// The bytes of one stream that have arrived and are not yet consumed.
#[derive(Debug, Default)]
pub struct Input {
    block: Vec<u8>,
    start: usize,
    end: usize,
    idle: u32,
}

impl Input {
    /// An empty buffer; allocates at the first [`spare`](Self::spare).
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with room for so many bytes: for what comes in one piece, or nearly.
    pub fn with_room(bytes: usize) -> Self {
        Self {
            block: Vec::with_capacity(bytes + PADDING),
            ..Self::default()
        }
    }

    /// Room for so many bytes in all, where it is known how many there will be: for
    /// [`extend`](Self::extend), which needs none that is filled.
    pub fn reserve(&mut self, bytes: usize) {
        let len = bytes + PADDING;
        if self.start == 0 && len > self.block.len() {
            self.block.reserve_exact(len - self.block.len());
        }
    }

    /// Room for the driver to read into: at least `want` bytes (or a default when `want` is 0).
    pub fn spare(&mut self, want: usize) -> &mut [u8] {
        let want = want.max(READ_BYTES / 4);
        if self.block.len() < self.end + want + PADDING {
            self.make_room(want);
        }
        let limit = self.block.len() - PADDING;
        &mut self.block[self.end..limit]
    }

    fn make_room(&mut self, want: usize) {
        let held = self.end - self.start;
        // Moving pays when at least half of the block is free at the head.
        if self.start > 0 && self.start >= held {
            self.block.copy_within(self.start..self.end, 0);
            self.start = 0;
            self.end = held;
        }
        if self.block.len() < self.end + want + PADDING {
            if self.start > 0 {
                self.block.copy_within(self.start..self.end, 0);
                self.start = 0;
                self.end = held;
            }
            let need = (held + want + PADDING).max(READ_BYTES + PADDING);
            let grown = if held == 0 {
                need
            } else {
                need.max(self.block.len() * 2)
            };
            if grown > self.block.len() {
                self.block.resize(grown, 0);
            }
        }
    }

    /// `n` bytes of the last spare room were filled.
    ///
    /// # Panics
    /// If `n` is more than the room that was offered: a fault of the driver.
    pub fn advance(&mut self, n: usize) {
        assert!(
            self.end + n + PADDING <= self.block.len(),
            "more bytes than the spare room holds"
        );
        self.end += n;
    }

    /// Copies `bytes` in, as a driver that owns its own buffer does.
    pub fn extend(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        let needed = self.end + len + PADDING;
        if self.block.len() < needed && self.block.capacity() >= needed {
            // Written once, not filled first.
            self.block.truncate(self.end);
            self.block.extend_from_slice(bytes);
            self.block.resize(needed, 0);
        } else {
            if self.block.len() < needed {
                self.spare(len);
            }
            self.block[self.end..self.end + len].copy_from_slice(bytes);
        }
        self.advance(len);
    }

    /// What has arrived and is not consumed.
    pub fn filled(&self) -> &[u8] {
        &self.block[self.start..self.end]
    }

    /// The same, followed by at least [`PADDING`] initialised bytes.
    pub fn padded(&self) -> &[u8] {
        if self.block.is_empty() {
            &[]
        } else {
            &self.block[self.start..self.end + PADDING]
        }
    }

    /// How many bytes have arrived and are not consumed.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The first `n` bytes are done with.
    ///
    /// # Panics
    /// If fewer have arrived.
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.len(), "consumed more than arrived");
        self.start += n;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            self.settle();
        }
    }

    /// Gives a block that one large message grew back to the allocator, but only after a run of
    /// small ones: shrinking after each large frame costs milliseconds of page faults.
    fn settle(&mut self) {
        if self.block.capacity() <= KEEP_BYTES + PADDING {
            return;
        }
        self.idle += 1;
        if self.idle >= SHRINK_AFTER {
            self.idle = 0;
            self.block = Vec::new();
        }
    }

    /// Hands the block over with everything in it and starts a new one that holds only the bytes
    /// after the first `n`; the returned bytes begin with those `n` and end in padding.
    ///
    /// Moves the block, copies only the rest: the way for a large frame to leave the driver.
    ///
    /// # Panics
    /// If fewer than `n` bytes have arrived.
    pub fn take_block(&mut self, n: usize) -> Bytes {
        assert!(n <= self.len(), "took more than arrived");
        let rest = self.block[self.start + n..self.end].to_vec();
        let (from, to) = (self.start, self.start + n + PADDING);
        let block = std::mem::take(&mut self.block);
        self.start = 0;
        self.end = 0;
        if !rest.is_empty() {
            self.extend(&rest);
        }
        Bytes::from(block).slice(from..to)
    }

    /// A copy of the first `n` bytes, followed by padding.
    ///
    /// # Panics
    /// If fewer than `n` bytes have arrived.
    pub fn copy_block(&self, n: usize) -> Bytes {
        assert!(n <= self.len(), "copied more than arrived");
        Bytes::copy_from_slice(&self.block[self.start..self.start + n + PADDING])
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.block.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_at_every_chunk_size() {
        let data: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
        for chunk in [1usize, 7, 4096, 65_536, 200_000] {
            let mut input = Input::new();
            let mut seen = Vec::new();
            for part in data.chunks(chunk) {
                input.extend(part);
                if input.len() > 1000 {
                    let take = input.len() - 13;
                    seen.extend_from_slice(&input.filled()[..take]);
                    input.consume(take);
                }
            }
            seen.extend_from_slice(input.filled());
            assert_eq!(seen, data, "chunks of {chunk}");
        }
    }

    #[test]
    fn padding_always_follows() {
        let mut input = Input::new();
        assert!(input.padded().is_empty());
        for n in [1, 100, 65_536, 1_000_000] {
            input.extend(&vec![7; n]);
            assert_eq!(input.padded().len(), input.len() + PADDING);
            input.consume(n / 2);
        }
    }

    #[test]
    fn capacity_falls_after_a_run_of_small_messages_only() {
        let mut input = Input::new();
        input.extend(&vec![1; 10 << 20]);
        input.consume(10 << 20);
        assert!(input.capacity() > 10 << 20);
        for _ in 0..SHRINK_AFTER {
            input.extend(&[1; 100]);
            input.consume(100);
        }
        assert!(input.capacity() <= KEEP_BYTES + PADDING);
    }

    #[test]
    fn a_taken_block_keeps_its_bytes_and_leaves_the_rest() {
        let mut input = Input::new();
        input.extend(b"xx");
        input.consume(2);
        input.extend(b"hello, world");
        let block = input.take_block(5);
        assert_eq!(&block[..5], b"hello");
        assert_eq!(block.len(), 5 + PADDING);
        assert_eq!(input.filled(), b", world");
    }
}
