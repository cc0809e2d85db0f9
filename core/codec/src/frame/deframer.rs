//! A deframer whose framing is configured, or detected from the first byte.

use std::ops::Range;

use super::length::LengthDeframer;
use super::line::LineDeframer;
use super::{Event, Framing};

/// Splits a byte stream into messages with any framing.
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    line: LineDeframer,
    length: LengthDeframer,
    /// For [`Framing::Whole`]: whether the stream has ended, and the length of its message.
    ended: bool,
    whole: usize,
}

impl Deframer {
    /// A deframer for messages of at most `max_len` bytes, not counting the framing.
    pub fn new(framing: Framing, max_len: usize) -> Self {
        Self {
            framing,
            line: LineDeframer::new(max_len),
            length: LengthDeframer::new(max_len),
            ended: false,
            whole: 0,
        }
    }

    /// The framing of the stream: as configured or, for [`Framing::Detect`], as the first byte of
    /// `buf` tells. `buf` holds all bytes not yet consumed.
    #[inline]
    pub fn framing(&mut self, buf: &[u8]) -> Framing {
        if self.framing == Framing::Detect
            && let Some(&first) = buf.first()
        {
            self.framing = Framing::detect(first);
        }
        self.framing
    }

    /// The next event in `buf`, which holds all bytes not yet consumed; `None` when more are
    /// needed.
    #[inline]
    pub fn next(&mut self, buf: &[u8]) -> Option<Event> {
        match self.framing {
            Framing::Line => self.line.next(buf),
            Framing::Length | Framing::WebSocket { .. } => self.length.next(buf),
            Framing::Detect => self.first(buf),
            Framing::Whole => self.all(buf),
        }
    }

    /// Discards the unfinished message in `buf`, which holds all bytes not yet consumed, and the
    /// rest of it as it arrives. Returns the range of the bytes that have arrived; `None` if the
    /// framing cannot skip a message.
    pub fn give_up(&mut self, buf: &[u8]) -> Option<Range<usize>> {
        match self.framing {
            Framing::Line => Some(self.line.give_up(buf)),
            Framing::Length | Framing::WebSocket { .. } => Some(self.length.give_up(buf)),
            Framing::Detect | Framing::Whole => None,
        }
    }

    /// Whether the whole stream is one message.
    pub fn is_whole(&self) -> bool {
        self.framing == Framing::Whole
    }

    /// Marks the end of the stream: no bytes follow those in the buffer.
    pub fn end(&mut self) {
        self.ended = true;
    }

    fn all(&mut self, buf: &[u8]) -> Option<Event> {
        if !self.ended || self.whole > 0 || buf.is_empty() {
            return None;
        }
        self.whole = buf.len();
        Some(Event::Frame(0..buf.len()))
    }

    #[cold]
    fn first(&mut self, buf: &[u8]) -> Option<Event> {
        match self.framing(buf) {
            Framing::Detect => None,
            _ => self.next(buf),
        }
    }

    /// The number of bytes at the head of the buffer that are done with. The caller must consume
    /// them before the next call of [`next`](Self::next).
    #[must_use = "the bytes stay in front of the next call unless they are consumed"]
    pub fn drain(&mut self) -> usize {
        match self.framing {
            Framing::Line => self.line.drain(),
            Framing::Length | Framing::WebSocket { .. } => self.length.drain(),
            Framing::Detect => 0,
            Framing::Whole => self.whole,
        }
    }
}
