//! Message framing for transports that do not delimit messages themselves.
//!
//! All deframers work alike. The caller owns the bytes: it passes all bytes not yet consumed, takes
//! events until there are none, then consumes as many bytes as `drain` returns. No byte is searched
//! twice, however the input is split. A message longer than the limit is reported once and
//! discarded as it arrives.

mod deframer;
pub mod event_stream;
pub mod length;
pub mod line;
pub mod websocket;
pub mod whole;

use std::ops::Range;

pub use deframer::Deframer;

/// An event of a deframer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message: its range in the bytes passed in, without framing.
    Frame(Range<usize>),
    /// A message is longer than the limit. Reported once, as soon as it is known; the rest of the
    /// message is discarded as it arrives.
    Oversize {
        /// The bytes of the message that have arrived, up to the limit.
        prefix: Range<usize>,
    },
}

/// How a byte stream is split into messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One message per line (R-STD-01).
    #[default]
    Line,
    /// A four-byte length before each message (R-ACT-19); not supported by the clients of the
    /// official SDKs.
    Length,
    /// Detected from the first byte that the peer sends; lines until then.
    Detect,
    /// WebSocket (RFC 6455). Received frames must first be converted by [`websocket::WebSocketReader`],
    /// which puts a four-byte length before each message; each message is sent as one text frame.
    WebSocket {
        /// Whether sent frames are masked, as required of a client.
        masked: bool,
    },
    /// Everything up to the end of the stream is one message, like the body of an HTTP request.
    /// Messages are sent one per line.
    Whole,
}

impl Framing {
    /// The byte-stream framing with that name in lower case: `line`, `length` or `detect`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "line" => Self::Line,
            "length" => Self::Length,
            "detect" => Self::Detect,
            _ => return None,
        })
    }

    /// The framing of a stream that begins with `first`: a length below 2^24 begins with a zero
    /// byte, which no line does.
    pub fn detect(first: u8) -> Self {
        match first {
            0 => Self::Length,
            _ => Self::Line,
        }
    }
}
