//! WebSocket frames (RFC 6455, section 5): messages, whole or fragmented, and control frames.
//!
//! ```text
//!   the wire: | head | payload, masked by a client … | head | … |
//!                       │ unmasked, UTF-8 checked, as it comes
//!                       ▼
//!   messages: | length, 4 bytes | payload … | length | … |     for a deframer of lengths
//! ```
//!
//! Allocates nothing for a claimed length, and reads no byte twice. Supports no extensions.

mod head;
mod utf8;
mod write;

pub use self::head::{Opcode, WebSocketHead};
use self::utf8::Utf8;
pub use self::write::{append_control, append_head, finish_message, reserve_head};
use super::length;
use crate::buffer::{Block, Input};

/// Status codes of close frames (RFC 6455, 7.4.1).
pub mod close {
    /// Normal closure.
    pub const NORMAL: u16 = 1000;
    /// This side is going away.
    pub const GOING_AWAY: u16 = 1001;
    /// The peer violated RFC 6455.
    pub const PROTOCOL: u16 = 1002;
    /// A kind of message that is not accepted.
    pub const UNSUPPORTED: u16 = 1003;
    /// A text message that is not UTF-8.
    pub const NOT_UTF8: u16 = 1007;
    /// The peer violated a policy of this side.
    pub const POLICY: u16 = 1008;
    /// A message longer than the limit.
    pub const TOO_BIG: u16 = 1009;
    /// An internal error of this side.
    pub const INTERNAL: u16 = 1011;
    /// Try again later (registered with IANA).
    pub const TRY_AGAIN: u16 = 1013;

    /// Whether a peer may send this code.
    pub fn is_sendable(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

/// Why reading from a peer stopped, and the status code to close with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketError {
    /// One of the codes in [`close`].
    pub code: u16,
    /// A description for the peer's developer.
    pub why: &'static str,
}

impl std::fmt::Display for WebSocketError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for WebSocketError {}

const fn protocol(why: &'static str) -> WebSocketError {
    let code = close::PROTOCOL;
    WebSocketError { code, why }
}

/// Longest payload of a control frame, in bytes.
pub const MAX_CONTROL_BYTES: usize = 125;

/// A control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A ping, to be answered with the same payload.
    Ping(Payload),
    /// A pong: the answer to a ping, or unsolicited.
    Pong,
    /// A close, with its status code, if present. No frames follow.
    Close(Option<u16>),
}

/// The payload of a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    bytes: [u8; MAX_CONTROL_BYTES],
    len: usize,
}

impl Payload {
    const EMPTY: Self = Self {
        bytes: [0; MAX_CONTROL_BYTES],
        len: 0,
    };

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Decodes the frames of one peer.
#[derive(Debug)]
pub struct WebSocketReader {
    /// Whether the peer masks its frames: a client does, a server does not.
    masked: bool,
    /// Whether messages may also come in binary frames.
    binary: bool,
    max_len: usize,
    /// The frame whose payload is being read, and how much of it has arrived.
    frame: Option<(WebSocketHead, u64)>,
    control: Payload,
    /// The message being assembled from fragments; `None` for a message in one frame.
    fragments: Option<Block>,
    utf8: Utf8,
}

impl WebSocketReader {
    /// A reader for messages of at most `max_len` bytes. `masked` is true for the frames of a
    /// client.
    pub fn new(masked: bool, max_len: usize) -> Self {
        Self {
            masked,
            binary: false,
            max_len: max_len.min(u32::MAX as usize),
            frame: None,
            control: Payload::EMPTY,
            fragments: None,
            utf8: Utf8::default(),
        }
    }

    /// Accepts messages in binary frames too; their content must be UTF-8, as in text frames.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.binary = true;
        self
    }

    /// The memory that the message being assembled takes, in bytes.
    pub fn held(&self) -> usize {
        self.fragments.as_ref().map_or(0, Block::held)
    }

    /// Frees the message being assembled; nothing more may be read.
    pub fn forget(&mut self) {
        self.fragments = None;
    }

    /// Whether a frame or a message has arrived in part.
    pub fn is_partial(&self) -> bool {
        self.frame.is_some() || self.fragments.is_some()
    }

    /// Decodes the bytes of `wire` and appends messages to `messages`, each after its length in
    /// four bytes. Returns at a control frame, or with `None` when more bytes are needed.
    ///
    /// # Errors
    /// The peer violates the protocol: nothing more can be read. An unfinished message in
    /// `messages` then remains incomplete.
    pub fn read(
        &mut self,
        wire: &mut Input,
        messages: &mut Input,
    ) -> Result<Option<Control>, WebSocketError> {
        loop {
            let Some((head, there)) = self.frame else {
                let Some(head) = WebSocketHead::parse(wire.filled())? else {
                    return Ok(None);
                };
                self.begin(&head, messages)?;
                wire.consume(head.head_len);
                self.frame = Some((head, 0));
                continue;
            };
            let left = usize::try_from(head.len - there).unwrap_or(usize::MAX);
            let took = left.min(wire.len());
            self.payload(&head, there, &wire.filled()[..took], messages)?;
            wire.consume(took);
            if took < left {
                self.frame = Some((head, there + took as u64));
                return Ok(None);
            }
            self.frame = None;
            if let Some(control) = self.end(&head, messages)? {
                return Ok(Some(control));
            }
        }
    }

    /// Checks the head of a frame before any of its payload is read.
    fn begin(&mut self, head: &WebSocketHead, messages: &mut Input) -> Result<(), WebSocketError> {
        if head.mask.is_some() != self.masked {
            return Err(protocol(match self.masked {
                true => "a client masks its frames",
                false => "a server does not mask its frames",
            }));
        }
        if head.opcode.is_control() {
            self.control.len = 0;
            return match head {
                WebSocketHead { last: false, .. } => {
                    Err(protocol("a ping, pong or close is one frame"))
                }
                head if head.len > MAX_CONTROL_BYTES as u64 => {
                    Err(protocol("a ping, pong or close has up to 125 bytes"))
                }
                _ => Ok(()),
            };
        }
        match (head.opcode, &self.fragments) {
            (Opcode::Binary, _) if !self.binary => {
                return Err(WebSocketError {
                    code: close::UNSUPPORTED,
                    why: "messages are texts",
                });
            }
            (Opcode::Continuation, None) => return Err(protocol("nothing is to be continued")),
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(protocol("a message begins within another"));
            }
            _ => {}
        }
        let before = self.fragments.as_ref().map_or(0, |held| held.len()) as u64;
        if head.len > self.max_len as u64 - before {
            return Err(WebSocketError {
                code: close::TOO_BIG,
                why: "the message is longer than the limit",
            });
        }
        if matches!(head.opcode, Opcode::Text | Opcode::Binary) {
            match head.last {
                true => put_length(messages, head.len as usize),
                false => self.fragments = Some(Block::default()),
            }
        }
        Ok(())
    }

    /// Adds a part of a frame's payload, which begins at offset `at` of the payload.
    fn payload(
        &mut self,
        head: &WebSocketHead,
        at: u64,
        bytes: &[u8],
        messages: &mut Input,
    ) -> Result<(), WebSocketError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if head.opcode.is_control() {
            let to = self.control.len + bytes.len();
            if let Some(room) = self.control.bytes.get_mut(self.control.len..to) {
                head.unmask(at, bytes, room);
                self.control.len = to;
            }
            return Ok(());
        }
        let room = match &mut self.fragments {
            Some(fragments) => {
                let from = fragments.len();
                fragments.resize(from + bytes.len());
                &mut fragments[from..]
            }
            None => &mut messages.spare(bytes.len())[..bytes.len()],
        };
        head.unmask(at, bytes, room);
        let complete = head.last && at + bytes.len() as u64 == head.len;
        if !self.utf8.goes_on(room) || (complete && !self.utf8.ends()) {
            return Err(NOT_UTF8);
        }
        if self.fragments.is_none() {
            messages.advance(bytes.len());
        }
        Ok(())
    }

    /// Ends a frame.
    fn end(
        &mut self,
        head: &WebSocketHead,
        messages: &mut Input,
    ) -> Result<Option<Control>, WebSocketError> {
        match head.opcode {
            Opcode::Ping => return Ok(Some(Control::Ping(self.control))),
            Opcode::Pong => return Ok(Some(Control::Pong)),
            Opcode::Close => return reason(self.control.as_bytes()).map(Some),
            _ => {}
        }
        if !head.last {
            return Ok(None);
        }
        // A last fragment without payload does not pass through `payload`.
        if !self.utf8.ends() {
            return Err(NOT_UTF8);
        }
        if let Some(fragments) = self.fragments.take() {
            put_length(messages, fragments.len());
            messages.extend(&fragments);
        }
        Ok(None)
    }
}

const NOT_UTF8: WebSocketError = WebSocketError {
    code: close::NOT_UTF8,
    why: "a text is UTF-8",
};

/// Appends a length prefix. `len` is within the limit, so it fits into four bytes.
fn put_length(messages: &mut Input, len: usize) {
    let mut prefix = Vec::with_capacity(length::PREFIX_LEN);
    length::append_prefix(&mut prefix, len);
    messages.extend(&prefix);
}

/// Parses the payload of a close frame.
fn reason(payload: &[u8]) -> Result<Control, WebSocketError> {
    let Some((code, why)) = payload.split_first_chunk() else {
        return match payload {
            [] => Ok(Control::Close(None)),
            _ => Err(protocol("a close says nothing, or a code of two bytes")),
        };
    };
    let code = u16::from_be_bytes(*code);
    if !close::is_sendable(code) {
        return Err(protocol("a code that no close has"));
    }
    match std::str::from_utf8(why) {
        Ok(_) => Ok(Control::Close(Some(code))),
        Err(_) => Err(NOT_UTF8),
    }
}

#[cfg(test)]
mod tests;
