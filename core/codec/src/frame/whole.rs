//! A body that is one message.

use bytes::Bytes;

use crate::buffer::{Block, PADDING};

/// Collects a body up to a limit. Reserves at most 64 KiB for a claimed length; beyond that, the
/// buffer grows as bytes arrive.
#[derive(Debug)]
pub struct WholeBody {
    max_len: usize,
    block: Block,
}

/// The body is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit, in bytes.
    pub max_len: usize,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the body is longer than {} bytes", self.max_len)
    }
}

impl std::error::Error for TooLong {}

/// Most bytes reserved for a claimed length.
const TRUSTED_BYTES: u64 = 64 << 10;

impl WholeBody {
    /// A collector for a body of at most `max_len` bytes; `claimed` is the length that the sender
    /// announced.
    ///
    /// # Errors
    /// The claimed length exceeds the limit.
    pub fn new(max_len: usize, claimed: Option<u64>) -> Result<Self, TooLong> {
        let claimed = claimed.unwrap_or(0);
        if claimed > max_len as u64 {
            return Err(TooLong { max_len });
        }
        let reserve = claimed.min(TRUSTED_BYTES) as usize + PADDING;
        Ok(Self {
            max_len,
            block: Block::with_capacity(reserve),
        })
    }

    /// Appends a part of the body; checks the limit first.
    ///
    /// # Errors
    /// The body would exceed the limit.
    pub fn extend(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if part.len() > self.max_len - self.block.len() {
            return Err(TooLong {
                max_len: self.max_len,
            });
        }
        self.block.extend_from_slice(part);
        Ok(())
    }

    /// The body followed by padding, and the body's length. The body may be pretty-printed JSON
    /// with raw line breaks.
    pub fn finish(mut self) -> (Bytes, usize) {
        let len = self.block.len();
        self.block.resize(len + PADDING);
        (self.block.into(), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_before_growth_and_claims_reserve_little() {
        assert!(WholeBody::new(10, Some(11)).is_err());
        let body = WholeBody::new(usize::MAX, Some(1 << 40)).unwrap();
        assert!(body.block.capacity() < 1 << 20);
        let mut body = WholeBody::new(10, None).unwrap();
        body.extend(b"{\n\"a\":").unwrap();
        assert_eq!(body.extend(b"12345"), Err(TooLong { max_len: 10 }));
        body.extend(b"1\n}").unwrap();
        let (block, len) = body.finish();
        assert_eq!(
            (&block[..len], block.len()),
            (&b"{\n\"a\":1\n}"[..], len + PADDING)
        );
    }
}
