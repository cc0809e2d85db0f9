//! The head of a frame.

use super::{WebSocketError, protocol};

/// The opcode of a frame (RFC 6455, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A text message, or its first fragment.
    Text,
    /// A binary message, or its first fragment.
    Binary,
    /// The end of the connection.
    Close,
    /// A ping.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Opcode {
    fn parse(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    pub(super) fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Text => 1,
            Self::Binary => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    /// Whether this is a control frame, which may come between the fragments of a message.
    pub fn is_control(self) -> bool {
        self.bits() & 8 != 0
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSocketHead {
    /// Whether the frame ends a message (FIN).
    pub last: bool,
    /// The opcode.
    pub opcode: Opcode,
    /// The mask of the payload, if it is masked.
    pub mask: Option<[u8; 4]>,
    /// The claimed length of the payload, in bytes.
    pub len: u64,
    /// The length of the head, in bytes.
    pub head_len: usize,
}

impl WebSocketHead {
    /// Parses the head at the start of `bytes`; `None` if it is incomplete.
    ///
    /// # Errors
    /// The head violates RFC 6455.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, WebSocketError> {
        let Some(&[first, second]) = bytes.first_chunk() else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(protocol("no extension was agreed on"));
        }
        let opcode = Opcode::parse(first & 0x0f).ok_or(protocol("an unknown kind of frame"))?;
        let rest = &bytes[2..];
        let (len, extended) = match second & 0x7f {
            126 => (
                rest.first_chunk()
                    .map(|len| u16::from_be_bytes(*len).into()),
                2,
            ),
            127 => (rest.first_chunk().map(|len| u64::from_be_bytes(*len)), 8),
            len => (Some(len.into()), 0),
        };
        let Some(len) = len else {
            return Ok(None);
        };
        if len > i64::MAX as u64 {
            return Err(protocol("a length has 63 bits"));
        }
        let masked = second & 0x80 != 0;
        let mask = match masked {
            true => match rest[extended..].first_chunk() {
                Some(mask) => Some(*mask),
                None => return Ok(None),
            },
            false => None,
        };
        Ok(Some(Self {
            last: first & 0x80 != 0,
            opcode,
            mask,
            len,
            head_len: 2 + extended + if masked { 4 } else { 0 },
        }))
    }

    /// Copies a part of the payload, which begins at offset `at`, and removes the mask.
    ///
    /// # Panics
    /// If `to` is not as long as `from`.
    pub fn unmask(&self, at: u64, from: &[u8], to: &mut [u8]) {
        to.copy_from_slice(from);
        if let Some(mut mask) = self.mask {
            mask.rotate_left((at % 4) as usize);
            apply(mask, to);
        }
    }
}

/// Applies the mask, or removes it.
pub(super) fn apply(mask: [u8; 4], bytes: &mut [u8]) {
    let wide = u64::from(u32::from_ne_bytes(mask));
    let wide = wide | wide << 32;
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.into_iter().cycle()) {
        *byte ^= mask;
    }
}
