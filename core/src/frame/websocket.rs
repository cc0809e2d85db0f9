//! WebSocket's frames (RFC 6455, section 5): messages, whole or in fragments, and what is said
//! between them.
//!
//! ```text
//!   the wire: | head | payload, masked by a client … | head | … |
//!                       │ unmasked, UTF-8 checked, as it comes
//!                       ▼
//!   messages: | length, 4 bytes | payload … | length | … |     for a deframer of lengths
//! ```
//!
//! Nothing is reserved from a claimed length, and what is under way is never looked at twice. No
//! extension is spoken.

mod head;
mod utf8;
mod write;

pub use self::head::{Head, Opcode};
use self::utf8::Utf8;
pub use self::write::{append_control, append_head, finish_message, reserve_head};
use super::length;
use crate::buffer::Input;

/// What a close says (RFC 6455, 7.4.1).
pub mod close {
    /// It is done.
    pub const NORMAL: u16 = 1000;
    /// This side goes away.
    pub const GOING_AWAY: u16 = 1001;
    /// The other side does not keep to RFC 6455.
    pub const PROTOCOL: u16 = 1002;
    /// A kind of message that is not taken here.
    pub const UNSUPPORTED: u16 = 1003;
    /// A text that is not UTF-8.
    pub const NOT_UTF8: u16 = 1007;
    /// The other side does not keep to what is allowed here.
    pub const POLICY: u16 = 1008;
    /// A message longer than the limit.
    pub const TOO_BIG: u16 = 1009;
    /// A failure of this side.
    pub const INTERNAL: u16 = 1011;

    /// Whether a peer may send it.
    pub fn is_sendable(code: u16) -> bool {
        matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }
}

/// Why nothing more is read from a peer, and with what code it is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// One of [`close`].
    pub code: u16,
    /// A sentence for its author.
    pub why: &'static str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for Fault {}

const fn protocol(why: &'static str) -> Fault {
    let code = close::PROTOCOL;
    Fault { code, why }
}

/// Longest payload of a frame that is no part of a message, in bytes.
pub const MAX_CONTROL_BYTES: usize = 125;

/// What is said between messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Is to be answered with the same payload.
    Ping(Payload),
    /// An answer to a ping, or said of its own accord.
    Pong,
    /// Nothing more comes; why, if it is said.
    Close(Option<u16>),
}

/// The payload of a frame that is no part of a message.
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

/// Takes one side's frames apart.
#[derive(Debug)]
pub struct Reader {
    /// Whether the peer masks: a client does, a server does not.
    masked: bool,
    /// Whether a message may come in frames of bytes, too.
    binary: bool,
    max_len: usize,
    /// The frame whose payload comes now, and how much of it is there.
    frame: Option<(Head, u64)>,
    control: Payload,
    /// The message whose fragments come now, if it did not come whole.
    fragments: Option<Vec<u8>>,
    utf8: Utf8,
}

impl Reader {
    /// For messages of up to `max_len` bytes; `masked` when they come from a client.
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

    /// Takes messages in frames of bytes for what they are in frames of text: the same UTF-8.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.binary = true;
        self
    }

    /// Takes what `wire` holds and appends messages, each behind its length of four bytes, to
    /// `messages`; returns at what is said between them, or with `None` when more is needed.
    ///
    /// # Errors
    /// The peer does not keep to the protocol: nothing more can be read. A message that is under
    /// way then is not complete in `messages`.
    pub fn read(
        &mut self,
        wire: &mut Input,
        messages: &mut Input,
    ) -> Result<Option<Control>, Fault> {
        loop {
            let Some((head, there)) = self.frame else {
                let Some(head) = Head::parse(wire.filled())? else {
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

    /// A frame begins: what it may not do is known before any of its payload.
    fn begin(&mut self, head: &Head, messages: &mut Input) -> Result<(), Fault> {
        if head.mask.is_some() != self.masked {
            return Err(protocol(match self.masked {
                true => "a client masks its frames",
                false => "a server does not mask its frames",
            }));
        }
        if head.opcode.is_control() {
            self.control.len = 0;
            return match head {
                Head { last: false, .. } => Err(protocol("a ping, pong or close is one frame")),
                head if head.len > MAX_CONTROL_BYTES as u64 => {
                    Err(protocol("a ping, pong or close has up to 125 bytes"))
                }
                _ => Ok(()),
            };
        }
        match (head.opcode, &self.fragments) {
            (Opcode::Binary, _) if !self.binary => {
                return Err(Fault {
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
        let before = self.fragments.as_ref().map_or(0, Vec::len) as u64;
        if head.len > self.max_len as u64 - before {
            return Err(Fault {
                code: close::TOO_BIG,
                why: "the message is longer than the limit",
            });
        }
        if matches!(head.opcode, Opcode::Text | Opcode::Binary) {
            match head.last {
                true => put_length(messages, head.len as usize),
                false => self.fragments = Some(Vec::new()),
            }
        }
        Ok(())
    }

    /// More of a frame's payload, from `at` on.
    fn payload(
        &mut self,
        head: &Head,
        at: u64,
        bytes: &[u8],
        messages: &mut Input,
    ) -> Result<(), Fault> {
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
                fragments.resize(from + bytes.len(), 0);
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

    /// A frame is complete.
    fn end(&mut self, head: &Head, messages: &mut Input) -> Result<Option<Control>, Fault> {
        match head.opcode {
            Opcode::Ping => return Ok(Some(Control::Ping(self.control))),
            Opcode::Pong => return Ok(Some(Control::Pong)),
            Opcode::Close => return reason(self.control.as_bytes()).map(Some),
            _ => {}
        }
        if !head.last {
            return Ok(None);
        }
        // Of a last fragment without payload.
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

const NOT_UTF8: Fault = Fault {
    code: close::NOT_UTF8,
    why: "a text is UTF-8",
};

/// `len` is within the limit, which four bytes can say.
fn put_length(messages: &mut Input, len: usize) {
    let mut prefix = Vec::with_capacity(length::PREFIX_LEN);
    length::append_prefix(&mut prefix, len);
    messages.extend(&prefix);
}

/// What a close says.
fn reason(payload: &[u8]) -> Result<Control, Fault> {
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
