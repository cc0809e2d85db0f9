//! A stream whose framing is said beforehand, or told by its first byte.

use super::length::LengthDeframer;
use super::line::LineDeframer;
use super::{Event, Framing};

/// Splits a byte stream into messages, however they are framed.
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    line: LineDeframer,
    length: LengthDeframer,
    /// Of a stream that is one message: whether it has come to its end, and how long it was.
    ended: bool,
    whole: usize,
}

impl Deframer {
    /// For messages of up to `max_len` bytes, their framing not counted.
    pub fn new(framing: Framing, max_len: usize) -> Self {
        Self {
            framing,
            line: LineDeframer::new(max_len),
            length: LengthDeframer::new(max_len),
            ended: false,
            whole: 0,
        }
    }

    /// How the stream is framed: what was said, or, if its first byte is to tell, what that byte
    /// of `buf`, all bytes that are not yet consumed, has told.
    #[inline]
    pub fn framing(&mut self, buf: &[u8]) -> Framing {
        if self.framing == Framing::Detect
            && let Some(&first) = buf.first()
        {
            self.framing = Framing::detect(first);
        }
        self.framing
    }

    /// The next event in `buf`, all bytes that are not yet consumed; `None` when more are needed.
    #[inline]
    pub fn next(&mut self, buf: &[u8]) -> Option<Event> {
        match self.framing {
            Framing::Line => self.line.next(buf),
            Framing::Length | Framing::WebSocket { .. } => self.length.next(buf),
            Framing::Detect => self.first(buf),
            Framing::Whole => self.all(buf),
        }
    }

    /// Whether the stream is one message.
    pub fn is_whole(&self) -> bool {
        self.framing == Framing::Whole
    }

    /// Nothing follows what is in the buffer.
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

    /// How many bytes at the head of the buffer are done with. The caller consumes them before
    /// the next call of [`next`](Self::next).
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
