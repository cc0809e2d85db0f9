//! Where one message ends and the next begins, on carriers that do not say so themselves.
//!
//! All deframers work alike: the caller owns the bytes and hands in everything not yet
//! consumed, takes events until there are none, then consumes what `drain` says. What was
//! searched once is not searched again, whatever the chunks are; what exceeds the limit is
//! reported once and discarded as it comes.

mod deframer;
pub mod event_stream;
pub mod length;
pub mod line;
pub mod websocket;
pub mod whole;

use std::ops::Range;

pub use deframer::Deframer;

/// What a deframer found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// One message: where it lies in the bytes handed in, without its framing.
    Frame(Range<usize>),
    /// A message is longer than the limit. Reported once, as soon as it is known; the rest of
    /// it will be discarded as it comes.
    Oversize {
        /// The bytes of it that are there, at most the limit.
        prefix: Range<usize>,
    },
}

/// How messages are told apart on a stream of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One message a line (R-STD-01).
    #[default]
    Line,
    /// A length of four bytes before each message (R-ACT-19); no client of the official SDKs
    /// speaks it.
    Length,
    /// As the first byte of the peer tells; lines, as long as there is none.
    Detect,
    /// WebSocket (RFC 6455), from a client `masked`: who takes its frames apart puts a length of
    /// four bytes before each message, as [`websocket::Reader`] does; what leaves is a text frame
    /// each.
    WebSocket {
        /// Whether what leaves is masked, as a client has to.
        masked: bool,
    },
    /// All that comes until the end is one message, as the body of an HTTP request is; what
    /// leaves is one message a line.
    Whole,
}

impl Framing {
    /// One of those of a stream of bytes, by its name in lower case.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "line" => Self::Line,
            "length" => Self::Length,
            "detect" => Self::Detect,
            _ => return None,
        })
    }

    /// Which framing a stream that begins with `first` uses: a length below 2^24 begins with a
    /// zero byte, which no line does.
    pub fn detect(first: u8) -> Self {
        match first {
            0 => Self::Length,
            _ => Self::Line,
        }
    }
}
