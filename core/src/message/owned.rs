//! Messages that outlive the buffer they arrived in.

use bytes::Bytes;

use super::envelope::Envelope;
use super::frame::Frame;
use super::view::MessageRef;
use crate::buffer::PADDING;

/// A message with a refcounted block of its own; cloning copies no bytes.
#[derive(Clone, Debug)]
pub struct Message {
    /// The message and, but for [`Message::from_bytes`], its padding.
    block: Bytes,
    len: usize,
    envelope: Envelope,
}

impl Message {
    /// Takes over a block that holds a message of `len` bytes and its padding, and the record
    /// of that message; `None` if the block is too short.
    pub fn from_block(block: Bytes, len: usize, envelope: Envelope) -> Option<Self> {
        Frame::new(&block, len)?;
        Some(Self {
            block,
            len,
            envelope,
        })
    }

    /// Takes over bytes that have no padding, and their record: everything but
    /// [`frame`](Self::frame) works.
    pub fn from_bytes(block: Bytes, envelope: Envelope) -> Self {
        Self {
            len: block.len(),
            block,
            envelope,
        }
    }

    pub(super) fn copy(bytes: &[u8], envelope: &Envelope) -> Self {
        let mut block = Vec::with_capacity(bytes.len() + PADDING);
        block.extend_from_slice(bytes);
        block.resize(bytes.len() + PADDING, 0);
        Self {
            block: block.into(),
            len: bytes.len(),
            envelope: *envelope,
        }
    }

    /// Decodes a copy of `bytes`.
    ///
    /// # Errors
    /// As [`decode`](super::decode).
    pub fn parse(bytes: &[u8], max_depth: usize) -> Result<Self, crate::json::DecodeError> {
        let mut message = Self::copy(bytes, &Envelope::default());
        let mut envelope = Envelope::default();
        if let Some(frame) = message.frame() {
            super::decode(frame, max_depth, &mut envelope)?;
        }
        message.envelope = envelope;
        Ok(message)
    }

    /// The message, borrowed.
    #[inline]
    pub fn as_ref(&self) -> MessageRef<'_> {
        MessageRef::from_bytes(self.bytes(), &self.envelope)
    }

    /// The whole message without its padding.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.block.get(..self.len).unwrap_or_default()
    }

    /// The message as a frame, to decode again or batch-iterate; `None` if its block has no
    /// padding ([`detach`](MessageRef::detach) makes a copy that has).
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        Frame::new(&self.block, self.len)
    }

    /// The bytes without their padding, sharing the block.
    pub fn to_bytes(&self) -> Bytes {
        self.block.slice(..self.len)
    }

    /// The block: the message and its padding.
    pub(crate) fn into_block(self) -> Bytes {
        self.block
    }

    /// Part of the message, sharing the block; `None` when absent.
    pub fn slice(&self, field: super::Field) -> Option<Bytes> {
        let span = self.envelope.span(field);
        span.get(self.bytes())
            .map(|_| self.block.slice(span.start()..span.end()))
    }
}
