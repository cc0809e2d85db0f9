//! The id of an outgoing request: the index of its slot and the generation of that slot.

use std::fmt;
use std::num::NonZeroU64;

/// Number of bits in a key that identify the slot.
pub(super) const SLOT_BITS: u32 = 20;

/// Most slots a table may have: every number of [`SLOT_BITS`] bits except zero.
pub(super) const MAX_SLOTS: u32 = (1 << SLOT_BITS) - 1;

/// Last generation of a slot. A slot that reaches it is retired: no id is ever used twice
/// (R-RPC-04).
pub(super) const MAX_GENERATION: u64 = (1 << (53 - SLOT_BITS)) - 1;

/// Identifies one outgoing request for ever: a slot and the generation of its use.
///
/// ```text
///   52            20 19           0
///   |  generation   | slot + 1    |      53 bits, exact in a double
/// ```
///
/// The wire id is this number in decimal. It is at least 1, never repeats in a connection, and
/// fits the integers of JavaScript peers. The first ids of a connection are 1, 2, 3, … except in
/// sessions that several processes share, where they begin at a random place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(NonZeroU64);

impl RequestKey {
    /// The key of a wire id; `None` if this side cannot have issued that id.
    #[inline]
    pub fn from_wire(id: u64) -> Option<Self> {
        let in_range = id >> 53 == 0 && id & u64::from(MAX_SLOTS) != 0;
        NonZeroU64::new(id).filter(|_| in_range).map(Self)
    }

    /// The key of a wire id given as text: digits without leading zeros.
    #[inline]
    pub fn from_token(token: &[u8]) -> Option<Self> {
        // 2^53 has sixteen digits, so nothing overflows.
        if token.len() > 16 {
            return None;
        }
        let (mut id, mut rest) = (0, token);
        while let Some((eight, after)) = rest.split_first_chunk() {
            id = id * 100_000_000 + eight_digits(u64::from_le_bytes(*eight))?;
            rest = after;
        }
        for byte in rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            id = id * 10 + u64::from(digit);
        }
        Self::from_wire(id)
    }

    /// The wire id.
    #[inline]
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// The key of a slot in one of its generations; `slot` must be less than [`MAX_SLOTS`].
    #[inline]
    pub(super) fn new(slot: u32, generation: u64) -> Self {
        debug_assert!(slot < MAX_SLOTS && generation <= MAX_GENERATION);
        Self(NonZeroU64::MIN.saturating_add(generation << SLOT_BITS | u64::from(slot)))
    }

    #[inline]
    pub(super) fn slot(self) -> u32 {
        (self.get() & u64::from(MAX_SLOTS)) as u32 - 1
    }

    #[inline]
    pub(super) fn generation(self) -> u64 {
        self.get() >> SLOT_BITS
    }
}

/// The number spelled by eight digits, the first in the lowest byte; `None` if one is not a digit.
/// Adjacent digits are combined to pairs, pairs to fours, fours to the result.
#[inline]
fn eight_digits(text: u64) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const LOW: u64 = !HIGH;
    // Adding 6 carries values above 9 into the high half of their byte.
    let (high, with_six) = (text & HIGH, text.wrapping_add(LOW / 15 * 6) & HIGH);
    if high | (with_six >> 4) != 0x3333_3333_3333_3333 {
        return None;
    }
    let ones = text & LOW;
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_the_wire() {
        for slot in [0, 1, 63, MAX_SLOTS - 1] {
            for generation in [0, 1, 77, MAX_GENERATION] {
                let key = RequestKey::new(slot, generation);
                assert_eq!((key.slot(), key.generation()), (slot, generation));
                assert_eq!(RequestKey::from_wire(key.get()), Some(key));
                assert_eq!(
                    RequestKey::from_token(key.to_string().as_bytes()),
                    Some(key)
                );
                assert!(key.get() >= 1 && key.get() < 1 << 53);
                assert_eq!(key.get() as f64 as u64, key.get());
            }
        }
    }

    #[test]
    fn ids_that_this_side_never_makes_have_no_key() {
        for id in [0, 1 << SLOT_BITS, 7 << SLOT_BITS, 1 << 53, u64::MAX] {
            assert_eq!(RequestKey::from_wire(id), None, "{id}");
            assert_eq!(
                RequestKey::from_token(id.to_string().as_bytes()),
                None,
                "{id}"
            );
        }
        for (at, byte) in (0..16).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut token = *b"1234567890123457";
            token[at] = byte;
            let text = std::str::from_utf8(&token).ok();
            let id = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let id = id.map(|id| id.parse().unwrap());
            let key = id.and_then(RequestKey::from_wire);
            assert_eq!(RequestKey::from_token(&token), key, "{text:?}");
        }
        for token in ["", "-1", "\"7\"", "1.0", "10000000000000000", "7 "] {
            assert_eq!(RequestKey::from_token(token.as_bytes()), None, "{token}");
        }
    }
}
