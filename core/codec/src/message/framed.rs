//! The engine's line framing and decoding for tokio-util's `Framed`.
//!
//! A message is a slice of the buffer that `Framed` reads into: it is neither copied nor allocated,
//! and keeps that buffer alive. Messages that are kept for long should be copied with
//! [`detach`](super::MessageRef::detach). The frames that follow a message serve as its padding; the
//! last message of a buffer is decoded without padding.
//!
//! ```
//! use futures::{SinkExt, StreamExt};
//! use mcpbolt_codec::message::encode;
//! use mcpbolt_codec::message::framed::{DecodedLine, MessageCodec};
//! use tokio_util::codec::Framed;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let (near, far) = tokio::io::duplex(4096);
//! let mut near = Framed::new(near, MessageCodec::new(1 << 20, 128));
//! let mut far = Framed::new(far, MessageCodec::new(1 << 20, 128));
//!
//! let mut ping = Vec::new();
//! encode::request(&mut ping, 1u64, "ping", None);
//! near.send(&ping[..]).await?;
//!
//! let Some(Ok(DecodedLine::Message(message))) = far.next().await else { panic!("no message") };
//! assert_eq!(message.as_ref().method().as_deref(), Some("ping"));
//! # Ok(())
//! # }
//! ```

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::{Envelope, Field, Frame, Kind, Message, OwnedId, RequestId, decode, decode_unpadded};
use crate::frame::line::{LineDeframer, LineEvent};
use crate::json::DecodeError;

/// A codec of one message per line. Invalid lines are items rather than errors, so that they do not
/// end the stream.
#[derive(Clone, Debug)]
pub struct MessageCodec {
    deframer: LineDeframer,
    max_depth: usize,
}

/// An item of the stream.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every item is the large one, and a box would be an allocation per message"
)]
#[derive(Clone, Debug)]
pub enum DecodedLine {
    /// A message of any [`Kind`], including [`Kind::Invalid`].
    Message(Message),
    /// A line that is not JSON, and its id if that was complete before the fault.
    Malformed(DecodeError, Option<OwnedId>),
    /// A line longer than the limit; the line is skipped.
    Oversize,
}

impl MessageCodec {
    /// A codec for messages of at most `max_len` bytes and `max_depth` nesting levels.
    pub fn new(max_len: usize, max_depth: usize) -> Self {
        Self {
            deframer: LineDeframer::new(max_len),
            max_depth,
        }
    }

    fn incoming(&mut self, event: LineEvent, src: &mut BytesMut) -> DecodedLine {
        let LineEvent::Frame(range) = event else {
            src.advance(self.deframer.drain());
            return DecodedLine::Oversize;
        };
        let mut envelope = Envelope::new();
        let behind = src.get(range.start..).unwrap_or_default();
        let verdict = match Frame::new(behind, range.len()) {
            Some(frame) => decode(frame, self.max_depth, &mut envelope),
            None => {
                let bytes = behind.get(..range.len()).unwrap_or_default();
                decode_unpadded(bytes, self.max_depth, &mut envelope)
            }
        };
        let mut line = src.split_to(self.deframer.drain());
        line.advance(range.start);
        line.truncate(range.len());
        match verdict {
            Ok(()) => DecodedLine::Message(message(line.freeze(), envelope)),
            Err(error) => DecodedLine::Malformed(error, id(&line, &envelope)),
        }
    }
}

/// Batches are copied, because decoding their elements needs padding; other messages share the
/// buffer.
fn message(bytes: Bytes, envelope: Envelope) -> Message {
    let message = Message::from_bytes(bytes, envelope);
    match envelope.kind() {
        Kind::Batch => message.as_ref().detach(),
        _ => message,
    }
}

fn id(line: &[u8], envelope: &Envelope) -> Option<OwnedId> {
    let token = std::str::from_utf8(envelope.span(Field::Id).get(line)?).ok()?;
    RequestId::from_token(token).map(RequestId::to_owned)
}

impl Decoder for MessageCodec {
    type Item = DecodedLine;
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> io::Result<Option<DecodedLine>> {
        let event = self.deframer.next(src);
        let Some(event) = event else {
            src.advance(self.deframer.drain());
            return Ok(None);
        };
        Ok(Some(self.incoming(event, src)))
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> io::Result<Option<DecodedLine>> {
        if let Some(incoming) = self.decode(src)? {
            return Ok(Some(incoming));
        }
        let event = self.deframer.finish(src);
        let incoming = event.map(|event| self.incoming(event, src));
        src.clear();
        self.deframer.reset();
        Ok(incoming)
    }
}

impl Encoder<&[u8]> for MessageCodec {
    type Error = io::Error;

    /// Appends an encoded message and a line end. The bytes must not contain raw line breaks; the
    /// functions of [`encode`](super::encode) never write any.
    fn encode(&mut self, message: &[u8], dst: &mut BytesMut) -> io::Result<()> {
        dst.reserve(message.len() + 1);
        dst.extend_from_slice(message);
        dst.extend_from_slice(b"\n");
        Ok(())
    }
}

impl Encoder<&Message> for MessageCodec {
    type Error = io::Error;

    /// Appends a received message unchanged, and a line end.
    fn encode(&mut self, message: &Message, dst: &mut BytesMut) -> io::Result<()> {
        self.encode(message.bytes(), dst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_slices_of_the_buffer_and_bad_lines_are_items() {
        let stream = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\r\n\n{\"id\":2,\"x\"\n\
                      [{\"jsonrpc\":\"2.0\",\"method\":\"b\"}]\nyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n\
                      {\"jsonrpc\":\"2.0\",\"method\":\"c\"}";
        for step in [1, 7, stream.len()] {
            let mut codec = MessageCodec::new(50, 8);
            let mut src = BytesMut::with_capacity(1000);
            let mut seen = Vec::new();
            let mut note = |incoming, held: std::ops::Range<*const u8>| {
                seen.push(match incoming {
                    DecodedLine::Message(message) => {
                        let kind = message.as_ref().kind();
                        let there = held.contains(&message.bytes().as_ptr());
                        assert_eq!(there, kind != Kind::Batch, "{kind:?}");
                        format!("{kind:?}")
                    }
                    DecodedLine::Malformed(error, id) => format!("{:?} {id:?}", error.kind),
                    DecodedLine::Oversize => "oversize".to_owned(),
                });
            };
            for chunk in stream.as_bytes().chunks(step) {
                src.extend_from_slice(chunk);
                loop {
                    let held = src.as_ptr_range();
                    let Some(incoming) = codec.decode(&mut src).unwrap() else {
                        break;
                    };
                    note(incoming, held);
                }
            }
            loop {
                let held = src.as_ptr_range();
                let Some(incoming) = codec.decode_eof(&mut src).unwrap() else {
                    break;
                };
                note(incoming, held);
            }
            let expected = [
                "Request",
                "UnexpectedEnd Some(OwnedId(2))",
                "Batch",
                "oversize",
                "Notification",
            ];
            assert_eq!(seen, expected, "chunks of {step}");
        }
    }
}
