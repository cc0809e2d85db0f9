//! One message per line (R-STD-01 ff.).

use std::ops::Range;

pub use super::Event as LineEvent;
use crate::scan;

/// Splits a byte stream into lines. Searches each byte once, however the input is split.
///
/// The caller owns the bytes. It passes all bytes not yet consumed, takes events until there are
/// none, and then consumes as many bytes as [`drain`](Self::drain) returns:
///
/// ```text
///   buf: | delivered lines | searched, no line end | a block of 64 and its ends | not yet searched |
///        0                 start                   block                        searched
/// ```
///
/// A CR before the LF belongs to the line end. Blank lines are skipped, as is one byte order mark
/// at the start of the stream.
#[derive(Clone, Debug)]
pub struct LineDeframer {
    max_len: usize,
    start: usize,
    searched: usize,
    /// The line ends in the block searched last that are not yet delivered; `block` is its offset.
    ends: u64,
    block: usize,
    discarding: bool,
    begun: bool,
}

/// Blocks without a line end after which a search for the end of a long line begins.
const LONG_LINE_BLOCKS: usize = 8;

const BOM: &[u8] = b"\xef\xbb\xbf";

impl LineDeframer {
    /// A deframer for messages of at most `max_len` bytes, not counting the line end.
    pub fn new(max_len: usize) -> Self {
        Self {
            max_len,
            start: 0,
            searched: 0,
            ends: 0,
            block: 0,
            discarding: false,
            begun: false,
        }
    }

    /// The next event in `buf`, which holds all bytes not yet consumed; `None` when more are
    /// needed.
    pub fn next(&mut self, buf: &[u8]) -> Option<LineEvent> {
        loop {
            let Some(end) = self.line_end(buf) else {
                return self.unfinished(buf);
            };
            let line = self.start..end;
            self.start = end + 1;
            if !self.discarding && self.is_plain(buf, &line) {
                return Some(LineEvent::Frame(line));
            }
            if std::mem::take(&mut self.discarding) {
                self.begun = true;
                continue;
            }
            let line = self.trim(buf, line);
            if line.len() > self.max_len {
                let prefix = line.start..line.start + self.max_len;
                return Some(LineEvent::Oversize { prefix });
            }
            if !line.is_empty() {
                return Some(LineEvent::Frame(line));
            }
        }
    }

    /// The end of the next line. Short lines share one vector comparison per block; for long lines,
    /// a search is faster.
    #[inline]
    fn line_end(&mut self, buf: &[u8]) -> Option<usize> {
        let mut blocks = 0;
        while self.ends == 0 {
            let rest = buf.get(self.searched..)?;
            let chunk = rest.first_chunk().filter(|_| blocks < LONG_LINE_BLOCKS);
            let Some(chunk) = chunk else {
                let end = self.searched + memchr::memchr(b'\n', rest)?;
                self.searched = end + 1;
                return Some(end);
            };
            self.ends = scan::line_ends(chunk);
            self.block = self.searched;
            self.searched += chunk.len();
            blocks += 1;
        }
        let end = self.block + self.ends.trailing_zeros() as usize;
        self.ends &= self.ends - 1;
        Some(end)
    }

    /// Handles a line without an end: remembers how far it was searched, and enforces the limit.
    fn unfinished(&mut self, buf: &[u8]) -> Option<LineEvent> {
        self.searched = buf.len();
        if self.discarding {
            self.start = buf.len();
            return None;
        }
        // A byte order mark and a CR do not count towards the limit.
        if buf.len() - self.start <= self.max_len.saturating_add(BOM.len() + 1) {
            return None;
        }
        let prefix = self.give_up(buf);
        Some(LineEvent::Oversize { prefix })
    }

    /// Discards the unfinished line in `buf`, and the rest of it as it arrives. Returns the range
    /// of the bytes that have arrived, up to the limit. Call this only after [`next`](Self::next)
    /// has returned `None`.
    pub fn give_up(&mut self, buf: &[u8]) -> Range<usize> {
        let line = self.trim(buf, self.start..buf.len());
        self.searched = buf.len();
        self.start = buf.len();
        self.discarding = true;
        line.start..line.start + self.max_len.min(line.len())
    }

    /// Whether the line is a message as it is: nothing to trim, not blank and not too long.
    #[inline]
    fn is_plain(&self, buf: &[u8], line: &Range<usize>) -> bool {
        match buf.get(line.clone()) {
            Some([b'!'..=b'~', .., last]) => {
                self.begun && *last != b'\r' && line.len() <= self.max_len
            }
            _ => false,
        }
    }

    /// The line without byte order mark and CR; empty if it is blank and within the limit.
    fn trim(&mut self, buf: &[u8], mut line: Range<usize>) -> Range<usize> {
        let text = |line: &Range<usize>| buf.get(line.clone()).unwrap_or_default();
        if !std::mem::replace(&mut self.begun, true) && text(&line).starts_with(BOM) {
            line.start += BOM.len();
        }
        if text(&line).ends_with(b"\r") {
            line.end -= 1;
        }
        match text(&line).first() {
            Some(b' ' | b'\t' | b'\r') if line.len() <= self.max_len && blank(text(&line)) => {
                line.end..line.end
            }
            _ => line,
        }
    }

    /// The number of bytes at the head of the buffer that are done with. The caller must consume
    /// them before the next call of [`next`](Self::next).
    #[must_use = "the bytes stay in front of the next call unless they are consumed"]
    pub fn drain(&mut self) -> usize {
        let done = self.start;
        if done > self.block {
            self.ends = self
                .ends
                .checked_shr((done - self.block) as u32)
                .unwrap_or(0);
        }
        self.block = self.block.saturating_sub(done);
        self.searched -= done;
        self.start = 0;
        done
    }

    /// Ends the stream: returns the last line if it has no line end and is not blank.
    pub fn finish(&mut self, buf: &[u8]) -> Option<LineEvent> {
        let line = self.start..buf.len();
        self.start = buf.len();
        self.searched = buf.len();
        self.ends = 0;
        if std::mem::take(&mut self.discarding) || line.is_empty() {
            return None;
        }
        let line = self.trim(buf, line);
        if line.len() > self.max_len {
            let prefix = line.start..line.start + self.max_len;
            return Some(LineEvent::Oversize { prefix });
        }
        (!line.is_empty()).then_some(LineEvent::Frame(line))
    }

    /// Resets the search positions, after the caller has dropped all bytes.
    pub fn reset(&mut self) {
        self.start = 0;
        self.searched = 0;
        self.ends = 0;
    }
}

/// Whether the line holds only JSON whitespace, which excludes form feeds.
fn blank(line: &[u8]) -> bool {
    line.iter().all(|byte| b" \t\r".contains(byte))
}
