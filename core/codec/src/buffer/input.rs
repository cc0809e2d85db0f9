//! The receive buffer: filled at the tail, consumed at the head.
//!
//! ```text
//!   0        start            end                     capacity
//!   |  free  |  not consumed  |  spare (driver reads) | PADDING |
//! ```
//!
//! The driver reads into `spare`, the deframer looks at `filled`, and consumed frames leave at the
//! head. Bytes move only when the spare room runs out, so each byte moves O(1) times. A block of
//! 128 KiB or more is a memory map.

use bytes::Bytes;

use super::{Block, PADDING};
use crate::limits::{KEEP_BYTES, READ_BYTES, SHRINK_AFTER};

/// The bytes of one stream that have arrived and are not yet consumed.
#[derive(Debug, Default)]
pub struct Input {
    block: Block,
    start: usize,
    end: usize,
    idle: u32,
}

impl Input {
    /// An empty buffer; allocates at the first [`spare`](Self::spare).
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with room for `bytes` bytes, for input that comes in one piece or nearly so.
    pub fn with_room(bytes: usize) -> Self {
        Self {
            block: Block::with_capacity(bytes + PADDING),
            ..Self::default()
        }
    }

    /// Reserves room for `bytes` bytes in all, if their number is known. The room is meant for
    /// [`extend`](Self::extend), which does not need it to be initialised.
    pub fn reserve(&mut self, bytes: usize) {
        if self.start == 0 {
            self.block.reserve(bytes + PADDING);
        }
    }

    /// Room for the driver to read into: at least `want` bytes, and at least 16 KiB.
    pub fn spare(&mut self, want: usize) -> &mut [u8] {
        let want = want.max(READ_BYTES / 4);
        if self.block.len() < self.end + want + PADDING {
            self.make_room(want);
        }
        let block = &mut *self.block;
        let limit = block.len() - PADDING;
        &mut block[self.end..limit]
    }

    fn make_room(&mut self, want: usize) {
        let held = self.end - self.start;
        // Moving pays off when at least half of the used block is free at the head.
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
                self.block.resize(grown);
            }
        }
    }

    /// Records that the driver filled the first `n` bytes of the last spare room.
    ///
    /// # Panics
    /// If `n` is more than the room that was offered: a bug in the driver.
    pub fn advance(&mut self, n: usize) {
        assert!(
            self.end + n + PADDING <= self.block.len(),
            "more bytes than the spare room holds"
        );
        self.end += n;
    }

    /// Copies `bytes` in, for a driver that has its own buffer.
    pub fn extend(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        match self.block.get_mut(self.end..end + PADDING) {
            Some(room) => room[..bytes.len()].copy_from_slice(bytes),
            None => self.extend_grown(bytes),
        }
        self.end += bytes.len();
    }

    #[cold]
    fn extend_grown(&mut self, bytes: &[u8]) {
        let needed = self.end + bytes.len() + PADDING;
        if self.block.capacity() >= needed {
            // Written once, instead of first being filled with zeros.
            self.block.resize(self.end);
            self.block.extend_from_slice(bytes);
            self.block.resize(needed);
        } else {
            self.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The bytes that have arrived and are not consumed.
    pub fn filled(&self) -> &[u8] {
        &self.block[self.start..self.end]
    }

    /// The unconsumed bytes, followed by at least [`PADDING`] initialised bytes.
    pub fn padded(&self) -> &[u8] {
        match &*self.block {
            [] => &[],
            block => &block[self.start..self.end + PADDING],
        }
    }

    /// The number of bytes that have arrived and are not consumed.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are no unconsumed bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Consumes the first `n` bytes.
    ///
    /// # Panics
    /// If fewer have arrived.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.len(), "consumed more than arrived");
        self.start += n;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.block.held() > KEEP_BYTES + PADDING {
                self.settle();
            }
        }
    }

    /// Gives a block that one large message grew back to the allocator, but only after a run of
    /// small ones: shrinking after each large frame costs milliseconds of page faults.
    #[cold]
    fn settle(&mut self) {
        self.idle += 1;
        if self.idle >= SHRINK_AFTER {
            self.idle = 0;
            self.block = Block::default();
        }
    }

    /// Hands over the whole block and starts a new one with the bytes after the first `n`. The
    /// returned bytes are the first `n`, followed by padding.
    ///
    /// Moves the block and copies only the rest: this is how a large frame leaves the driver.
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

    /// The number of bytes by which the block will grow when room for the next read is requested.
    pub fn growth(&self) -> usize {
        let room = self.block.len() - self.end;
        match self.start == 0 && self.end > 0 && room < READ_BYTES / 4 + PADDING {
            true => self.block.len(),
            false => 0,
        }
    }

    /// Frees a block that has grown beyond the usual size, if the unconsumed bytes fit into one of
    /// the usual size.
    pub fn shrink(&mut self) {
        if self.held() > READ_BYTES + PADDING && self.len() <= READ_BYTES {
            let rest = self.filled().to_vec();
            *self = Self::new();
            if !rest.is_empty() {
                self.extend(&rest);
            }
        }
    }

    /// Frees memory that the message at hand does not need.
    pub fn give_back(&mut self) {
        self.block.give_back();
    }

    /// The memory to account for, in bytes: the unconsumed bytes, or the whole block if it has
    /// grown beyond the usual size.
    pub fn held(&self) -> usize {
        match self.block.held() {
            block if block > READ_BYTES + PADDING => block,
            _ => self.len(),
        }
    }

    /// The number of bytes there is room for.
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
    fn a_block_counts_whole_when_it_has_grown() {
        let mut input = Input::new();
        input.extend(&[1; 100]);
        assert_eq!(input.held(), 100);
        input.extend(&vec![1; 1 << 20]);
        assert!(input.held() > 1 << 20);
        input.consume(input.len());
        assert!(input.held() > 1 << 20, "the block is still there");
        input.extend(b"rest");
        input.shrink();
        assert_eq!((input.filled(), input.held()), (&b"rest"[..], 4));
        input.consume(4);
        input.shrink();
        assert_eq!(input.held(), 0);
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

    #[test]
    fn a_buffer_is_no_larger_than_one_read() {
        let mut input = Input::new();
        let room = input.spare(0).len();
        assert_eq!(room, READ_BYTES);
        input.advance(READ_BYTES / 2);
        assert_eq!(
            input.capacity(),
            READ_BYTES + PADDING,
            "a part of it is free"
        );
        input.spare(0);
        assert_eq!(input.capacity(), READ_BYTES + PADDING);
    }
}
