//! Length-prefixed messages: four bytes, unsigned, big-endian, before each message (R-ACT-19).

use std::ops::Range;

use super::Event;

/// Length of the prefix, in bytes.
pub const PREFIX_LEN: usize = 4;

/// Longest message, in bytes, whose length begins with a zero byte, so that the framing can be told
/// from lines by its first byte.
pub const MAX_DETECTABLE_LEN: usize = (1 << 24) - 1;

/// Splits a byte stream by length prefixes. Allocates nothing for a claimed length.
///
/// ```text
///   buf: | delivered | 00 00 01 2c | message … | 00 00 …
///        0           start
/// ```
#[derive(Clone, Debug)]
pub struct LengthDeframer {
    max_len: usize,
    start: usize,
    /// Bytes of a refused message that have not arrived.
    discard: usize,
}

impl LengthDeframer {
    /// A deframer for messages of at most `max_len` bytes, not counting the prefix.
    pub fn new(max_len: usize) -> Self {
        Self {
            max_len,
            start: 0,
            discard: 0,
        }
    }

    /// The next event in `buf`, which holds all bytes not yet consumed; `None` when more are
    /// needed.
    pub fn next(&mut self, buf: &[u8]) -> Option<Event> {
        loop {
            let rest = buf.get(self.start..)?;
            if self.discard > 0 {
                let gone = self.discard.min(rest.len());
                self.discard -= gone;
                self.start += gone;
                if self.discard > 0 {
                    return None;
                }
                continue;
            }
            let len = u32::from_be_bytes(*rest.first_chunk::<PREFIX_LEN>()?) as usize;
            let from = self.start + PREFIX_LEN;
            if len > self.max_len {
                let there = (buf.len() - from).min(self.max_len);
                self.discard = len;
                self.start = from;
                return Some(Event::Oversize {
                    prefix: from..from + there,
                });
            }
            if buf.len() - from < len {
                return None;
            }
            self.start = from + len;
            if len > 0 {
                return Some(Event::Frame(from..from + len));
            }
        }
    }

    /// Discards the unfinished message in `buf`, and the rest of it as it arrives. Returns the
    /// range of the bytes that have arrived. Call this only after [`next`](Self::next) has returned
    /// `None`.
    pub fn give_up(&mut self, buf: &[u8]) -> Range<usize> {
        let from = (self.start + PREFIX_LEN).min(buf.len());
        if let Some(prefix) = buf.get(self.start..).and_then(<[u8]>::first_chunk) {
            let len = u32::from_be_bytes(*prefix) as usize;
            self.discard = len.saturating_sub(buf.len() - from);
            self.start = buf.len();
        }
        from..buf.len()
    }

    /// The number of bytes at the head of the buffer that are done with. The caller must consume
    /// them before the next call of [`next`](Self::next).
    #[must_use = "the bytes stay in front of the next call unless they are consumed"]
    pub fn drain(&mut self) -> usize {
        std::mem::take(&mut self.start)
    }
}

/// Fills in the reserved prefix at `at` for the message that follows it to the end of `out`. If the
/// length does not fit into four bytes, removes both and returns `false`.
pub fn fill_prefix(out: &mut Vec<u8>, at: usize) -> bool {
    let len = u32::try_from(out.len().saturating_sub(at + PREFIX_LEN));
    match (len, out.get_mut(at..at + PREFIX_LEN)) {
        (Ok(len), Some(prefix)) => {
            prefix.copy_from_slice(&len.to_be_bytes());
            true
        }
        _ => {
            out.truncate(at);
            false
        }
    }
}

/// Appends the prefix of a message of `len` bytes. If the length does not fit into four bytes,
/// appends nothing and returns `false`.
pub fn append_prefix(out: &mut Vec<u8>, len: usize) -> bool {
    let Ok(len) = u32::try_from(len) else {
        return false;
    };
    out.extend_from_slice(&len.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(stream: &[u8], step: usize, max_len: usize) -> Vec<Option<Vec<u8>>> {
        let mut deframer = LengthDeframer::new(max_len);
        let mut held: Vec<u8> = Vec::new();
        let mut seen = Vec::new();
        for chunk in stream.chunks(step) {
            held.extend_from_slice(chunk);
            while let Some(event) = deframer.next(&held) {
                seen.push(match event {
                    Event::Frame(range) => Some(held[range].to_vec()),
                    Event::Oversize { prefix } => {
                        assert!(prefix.len() <= max_len && prefix.end <= held.len());
                        None
                    }
                });
            }
            held.drain(..deframer.drain());
            assert!(held.len() < max_len + PREFIX_LEN + step);
        }
        seen
    }

    #[test]
    fn messages_are_the_same_in_any_chunks_and_one_too_long_is_passed_over() {
        let mut stream = Vec::new();
        for len in [1, 300, 0, 299, 301, 5, 100_000, 7] {
            assert!(append_prefix(&mut stream, len));
            stream.extend(std::iter::repeat_n(len as u8, len));
        }
        let expected: Vec<_> = [1usize, 300, 299, 301, 5, 100_000, 7]
            .map(|len| (len <= 300).then(|| vec![len as u8; len]))
            .into();
        for step in [1, 2, 3, 5, 304, 4096, stream.len()] {
            assert_eq!(split(&stream, step, 300), expected, "chunks of {step}");
        }
    }

    #[test]
    fn the_first_byte_tells_the_framing() {
        let mut stream = Vec::new();
        append_prefix(&mut stream, MAX_DETECTABLE_LEN);
        assert_eq!(
            super::super::Framing::detect(stream[0]),
            super::super::Framing::Length
        );
        assert_eq!(
            super::super::Framing::detect(b'{'),
            super::super::Framing::Line
        );
        assert_eq!(
            super::super::Framing::detect(0xef),
            super::super::Framing::Line
        );
    }
}
