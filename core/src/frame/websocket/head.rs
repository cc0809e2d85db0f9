//! The head of one frame.

use super::{Fault, protocol};

/// What a frame is (RFC 6455, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// The next fragment of a message.
    Continuation,
    /// A text, or its first fragment.
    Text,
    /// Bytes, or their first fragment.
    Binary,
    /// Nothing more comes.
    Close,
    /// Are you there?
    Ping,
    /// Here I am.
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

    /// Whether it is no part of a message, and may come between fragments of one.
    pub fn is_control(self) -> bool {
        self.bits() & 8 != 0
    }
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whether a message ends with it.
    pub last: bool,
    /// What it is.
    pub opcode: Opcode,
    /// What its payload is masked with, if it is.
    pub mask: Option<[u8; 4]>,
    /// How long the payload is, in bytes, as the peer claims.
    pub len: u64,
    /// How long the head is, in bytes.
    pub head_len: usize,
}

impl Head {
    /// The head at the beginning of `bytes`; `None` when it is not there as a whole.
    ///
    /// # Errors
    /// It is none that RFC 6455 knows.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Fault> {
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

    /// Writes the payload's bytes from `at` on as they were before they were masked.
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

/// Masks, or takes the mask off.
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
