//! The send buffer: frames are appended at the tail, and drained at the head with vectored writes.
//!
//! ```text
//!   segments: [ large frame | coalesced small frames | large frame ]  tail: [ small frames … ]
//!               ^ written so far
//! ```
//!
//! Small frames are copied together, because a system call costs as much as fifty encodes; a large
//! frame is queued without a copy. Written segments are freed one by one, so a peer that is always
//! a little behind costs no more memory than the bytes that wait.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

use crate::limits::{COPY_IN_BYTES, KEEP_BYTES};

/// Initial capacity of the tail, in bytes: a first frame is appended in pieces.
const FIRST_BYTES: usize = 512;
/// Length of the tail from which on small frames go to a new segment, in bytes.
const SEGMENT_BYTES: usize = 64 << 10;

/// The bytes of one stream that are encoded and not yet written.
#[derive(Debug, Default)]
pub struct Output {
    segments: VecDeque<Bytes>,
    tail: Vec<u8>,
    /// Written bytes of the first segment, or of the tail if there are no segments.
    written: usize,
    len: usize,
    taken: u64,
}

impl Output {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of bytes that wait to be written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Number of bytes written or handed over since the start.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends what `write` encodes; `write` must only append to the buffer it is given.
    pub fn append_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        if self.tail.len() >= SEGMENT_BYTES {
            self.seal();
        }
        if self.tail.capacity() == 0 {
            self.tail.reserve(FIRST_BYTES);
        }
        let before = self.tail.len();
        let answer = write(&mut self.tail);
        debug_assert!(self.tail.len() >= before, "an encoder only appends");
        self.len += self.tail.len() - before;
        answer
    }

    /// Appends a copy of `bytes`.
    pub fn append(&mut self, bytes: &[u8]) {
        self.append_with(|tail| tail.extend_from_slice(bytes));
    }

    /// Queues `bytes`; long ones without a copy.
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() <= COPY_IN_BYTES {
            return self.append(&bytes);
        }
        self.seal();
        self.len += bytes.len();
        self.segments.push_back(bytes);
    }

    /// Turns the tail into a segment, so that later frames are written after it.
    fn seal(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let mut tail = Bytes::from(std::mem::take(&mut self.tail));
        if self.segments.is_empty() && self.written > 0 {
            tail = tail.slice(self.written..);
            self.written = 0;
        }
        self.segments.push_back(tail);
    }

    /// Fills `slices` with the next bytes to write, in order; returns the number of slices used.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let parts = self
            .segments
            .iter()
            .map(|s| &s[..])
            .chain(std::iter::once(&self.tail[..]));
        let mut used = 0;
        let mut skip = self.written;
        for part in parts {
            if used == slices.len() {
                break;
            }
            let part = &part[skip..];
            skip = 0;
            if !part.is_empty() {
                slices[used] = IoSlice::new(part);
                used += 1;
            }
        }
        used
    }

    /// The next bytes to write, as one slice; empty when none wait.
    pub fn head(&self) -> &[u8] {
        match self.segments.front() {
            Some(segment) => &segment[self.written..],
            None => &self.tail[self.written..],
        }
    }

    /// Records that the first `n` bytes were written.
    ///
    /// # Panics
    /// If fewer than `n` bytes wait.
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.len, "wrote more than was waiting");
        self.len -= n;
        self.taken += n as u64;
        self.written += n;
        while let Some(segment) = self.segments.front() {
            if self.written < segment.len() {
                return;
            }
            self.written -= segment.len();
            self.segments.pop_front();
        }
        if self.written == self.tail.len() {
            self.written = 0;
            self.tail.clear();
            if self.tail.capacity() > KEEP_BYTES {
                self.tail = Vec::new();
            }
        }
    }

    /// Hands over all waiting bytes, in order and without a copy.
    pub fn take(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        self.taken += self.len as u64;
        self.len = 0;
        let mut skip = std::mem::take(&mut self.written);
        let tail = std::mem::take(&mut self.tail);
        let tail = (!tail.is_empty()).then(|| Bytes::from(tail));
        let segments = std::mem::take(&mut self.segments).into_iter().chain(tail);
        segments.map(move |segment| match std::mem::take(&mut skip) {
            0 => segment,
            skip => segment.slice(skip..),
        })
    }

    /// Discards all waiting bytes, and resets the count of written ones.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drains `step` bytes at a time and returns the bytes.
    fn drain(output: &mut Output, step: usize) -> Vec<u8> {
        let mut seen = Vec::new();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 3];
            let used = output.io_slices(&mut slices);
            let flat: Vec<u8> = slices[..used]
                .iter()
                .flat_map(|s| s.iter().copied())
                .collect();
            assert!(!flat.is_empty() && flat.starts_with(output.head()));
            let n = step.min(flat.len());
            seen.extend_from_slice(&flat[..n]);
            output.advance(n);
        }
        seen
    }

    #[test]
    fn what_is_written_is_let_go_although_it_never_drains() {
        let mut output = Output::new();
        let frame = [7; 1000];
        (0..100).for_each(|_| output.append(&frame));
        for _ in 0..10_000 {
            output.append(&frame);
            output.advance(frame.len());
            let held: usize = output.segments.iter().map(Bytes::len).sum();
            let held = held + output.tail.capacity();
            assert!(held <= output.len() + 4 * SEGMENT_BYTES, "{held} bytes");
        }
    }

    #[test]
    fn order_is_kept_across_copies_and_segments() {
        for step in [1usize, 3, 1000, 1 << 20] {
            let mut output = Output::new();
            let mut expected = Vec::new();
            for i in 0..20u8 {
                let large = vec![i; COPY_IN_BYTES + 1 + i as usize];
                let small = [i; 5];
                output.append(&small);
                expected.extend_from_slice(&small);
                if i == 7 {
                    output.advance(3);
                    expected.drain(..3);
                }
                if i % 5 == 0 && (step > 3 || i == 0) {
                    output.push(Bytes::from(large.clone()));
                    expected.extend_from_slice(&large);
                }
                output.append_with(|out| out.extend_from_slice(b"!"));
                expected.push(b'!');
                assert_eq!(output.len(), expected.len());
            }
            assert!(drain(&mut output, step) == expected, "steps of {step}");
            assert!(output.is_empty() && output.head().is_empty());
        }
    }

    #[test]
    fn what_is_long_is_queued_without_a_copy() {
        for (len, is_copied) in [(COPY_IN_BYTES, true), (COPY_IN_BYTES + 1, false)] {
            let bytes = Bytes::from(vec![b'x'; len]);
            let mut output = Output::new();
            output.push(bytes.clone());
            assert_eq!(output.head().as_ptr() != bytes.as_ptr(), is_copied, "{len}");
        }
    }
}
