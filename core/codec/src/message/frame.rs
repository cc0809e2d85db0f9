//! The bytes of one message, with padding after them.

use crate::buffer::PADDING;

/// The bytes of one message, followed by [`PADDING`] readable bytes of any content.
///
/// ```text
///   buf: | message (len) | at least PADDING initialised bytes: zeros, or the next message |
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    buf: &'a [u8],
    len: usize,
}

impl<'a> Frame<'a> {
    /// The first `len` bytes of `buf`; `None` if fewer than [`PADDING`] bytes follow them.
    #[inline]
    pub fn new(buf: &'a [u8], len: usize) -> Option<Self> {
        (buf.len() >= len.checked_add(PADDING)?).then_some(Self { buf, len })
    }

    /// The message without its padding.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.buf.get(..self.len).unwrap_or_default()
    }

    /// The message and the bytes after it.
    #[inline]
    pub fn padded(&self) -> &'a [u8] {
        self.buf
    }

    /// Length of the message, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the message is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of this frame as a frame; the bytes that follow the part are its padding.
    #[inline]
    pub fn part(&self, start: usize, end: usize) -> Option<Frame<'a>> {
        Frame::new(self.buf.get(start..)?, end.checked_sub(start)?)
    }
}
