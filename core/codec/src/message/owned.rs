//! Messages that outlive the buffer they arrived in.

use bytes::Bytes;

use super::envelope::Envelope;
use super::envelope::{Dialect, Field, Span};
use super::frame::Frame;
use super::view::MessageRef;
use crate::buffer::{Block, PADDING};

/// A message in its own reference-counted block; cloning copies no bytes.
#[derive(Clone, Debug)]
pub struct Message {
    /// The message and its padding; [`Message::from_bytes`] has no padding.
    block: Bytes,
    len: usize,
    envelope: Envelope,
}

impl Message {
    /// Takes over a block that holds a message of `len` bytes and its padding, and the record of
    /// the message. `None` if the block is too short.
    pub fn from_block(block: Bytes, len: usize, envelope: Envelope) -> Option<Self> {
        Frame::new(&block, len)?;
        Some(Self {
            block,
            len,
            envelope,
        })
    }

    /// Takes over bytes without padding, and their record. Everything but [`frame`](Self::frame)
    /// works.
    pub fn from_bytes(block: Bytes, envelope: Envelope) -> Self {
        Self {
            len: block.len(),
            block,
            envelope,
        }
    }

    pub(super) fn copy(bytes: &[u8], envelope: &Envelope) -> Self {
        let mut block = Block::with_capacity(bytes.len() + PADDING);
        block.extend_from_slice(bytes);
        block.resize(bytes.len() + PADDING);
        Self {
            block: block.into(),
            len: bytes.len(),
            envelope: *envelope,
        }
    }

    /// Decodes a copy of `bytes`.
    ///
    /// # Errors
    /// The errors of [`decode`](super::decode).
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

    /// The message as a frame, for decoding again or splitting a batch. `None` if its block has no
    /// padding; [`detach`](MessageRef::detach) makes a padded copy.
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        Frame::new(&self.block, self.len)
    }

    /// The bytes without padding; shares the block.
    pub fn to_bytes(&self) -> Bytes {
        self.block.slice(..self.len)
    }

    /// The block: the message and its padding.
    pub fn into_block(self) -> Bytes {
        self.block
    }

    /// This request with other arguments: `json`, a validated raw JSON object. `None` if the
    /// message would be too long, or has no `params` object that arguments could belong to.
    pub fn with_arguments(&self, json: &str) -> Option<Self> {
        let (text, envelope) = (self.bytes(), &self.envelope);
        let span = envelope.span(Field::Arguments);
        // Replaces the arguments, or inserts them before all members of the object they belong to.
        let (place, name) = match (span.is_some(), envelope.dialect()) {
            (true, _) => (span.start()..span.end(), ""),
            (false, Dialect::Rpc) => {
                let params = envelope.span(Field::Params);
                let at = params.is_some().then(|| params.start() + 1)?;
                (at..at, "\"arguments\":")
            }
            (false, _) => {
                let at = text.iter().position(|byte| *byte == b'{')? + 1;
                (at..at, "\"params\":")
            }
        };
        let comma = if name.is_empty() { "" } else { "," };
        let parts: [&[u8]; 5] = [
            text.get(..place.start)?,
            name.as_bytes(),
            json.as_bytes(),
            comma.as_bytes(),
            text.get(place.end..)?,
        ];
        let mut block = parts.concat();
        let len = block.len();
        u32::try_from(len + PADDING).ok()?;
        block.resize(len + PADDING, 0);
        let begin = place.start + name.len();
        let mut envelope = envelope.moved(place, |at| at + len - text.len());
        envelope.set(Field::Arguments, Span::new(begin, begin + json.len()));
        Self::from_block(block.into(), len, envelope)
    }

    /// A member's bytes, sharing the block; `None` when the member is absent.
    pub fn slice(&self, field: super::Field) -> Option<Bytes> {
        let span = self.envelope.span(field);
        span.get(self.bytes())
            .map(|_| self.block.slice(span.start()..span.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Field;

    /// A message with replaced arguments has the same record as one decoded anew.
    #[test]
    fn other_arguments_move_what_is_behind_them() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"x":1},"_meta":{"progressToken":3}}}"#,
            r#" { "params" : { "arguments" : { } , "name" : "a" } , "method" : "tools/call", "id" : "7", "jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":3}}}"#,
        ] {
            for json in [
                "{}",
                r#"{"text":"longer than what was there before","n":[1,{}]}"#,
            ] {
                let message = Message::parse(text.as_bytes(), 64).unwrap();
                let other = message.with_arguments(json).unwrap();
                assert_eq!(other.as_ref().arguments(), Some(json), "{text}");
                let anew = Message::parse(other.bytes(), 64).unwrap();
                assert_eq!(other.envelope, anew.envelope, "{text} {json}");
                assert_eq!(other.as_ref().name(), message.as_ref().name());
                assert!(other.slice(Field::Id).is_some() && other.frame().is_some());
            }
        }
    }
}
