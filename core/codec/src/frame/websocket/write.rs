//! Writes frames; each message is one frame.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::head::{Opcode, apply};

/// Bytes reserved before a message whose length is not known yet: the length of most heads.
const RESERVED: usize = 4;
/// Longest head, in bytes.
const MAX_HEAD: usize = 14;

const LAST: u8 = 0x80;
const MASKED: u8 = 0x80;

/// Appends a control frame. Cuts the payload to [`MAX_CONTROL_BYTES`](super::MAX_CONTROL_BYTES).
pub fn append_control(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], masked: bool) {
    let payload = &payload[..payload.len().min(super::MAX_CONTROL_BYTES)];
    let mask = masked.then(mask);
    let (head, len) = head(opcode, payload.len(), mask);
    out.extend_from_slice(&head[..len]);
    let at = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply(mask, &mut out[at..]);
    }
}

/// Reserves room for the head of a message that is then appended and [finished](finish_message).
pub fn reserve_head(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; RESERVED]);
}

/// Writes the head of the message that extends to the end of `out`, and masks the message if asked
/// to. `at` is the offset of its [reserved](reserve_head) head.
///
/// # Panics
/// If there is no reserved head at `at`.
pub fn finish_message(out: &mut Vec<u8>, at: usize, masked: bool) {
    let payload = at + RESERVED;
    let len = out.len().saturating_sub(payload);
    let mask = masked.then(mask);
    if let Some(mask) = mask {
        apply(mask, &mut out[payload..]);
    }
    let (head, head_len) = head(Opcode::Text, len, mask);
    if head_len > RESERVED {
        out.resize(out.len() + head_len - RESERVED, 0);
    }
    out.copy_within(payload..payload + len, at + head_len);
    out.truncate(at + head_len + len);
    out[at..at + head_len].copy_from_slice(&head[..head_len]);
}

/// Appends the head of an unmasked message of `len` bytes.
pub fn append_head(out: &mut Vec<u8>, len: usize) {
    let (head, head_len) = head(Opcode::Text, len, None);
    out.extend_from_slice(&head[..head_len]);
}

fn head(opcode: Opcode, len: usize, mask: Option<[u8; 4]>) -> ([u8; MAX_HEAD], usize) {
    let mut head = [0; MAX_HEAD];
    head[0] = LAST | opcode.bits();
    let mut at = 2;
    match len {
        0..126 => head[1] = len as u8,
        126..0x1_0000 => {
            head[1] = 126;
            head[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            at = 4;
        }
        _ => {
            head[1] = 127;
            head[2..10].copy_from_slice(&(len as u64).to_be_bytes());
            at = 10;
        }
    }
    if let Some(mask) = mask {
        head[1] |= MASKED;
        head[at..at + 4].copy_from_slice(&mask);
        at += 4;
    }
    (head, at)
}

/// An unpredictable mask (RFC 6455, 10.3): a keyed hash of a counter.
fn mask() -> [u8; 4] {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = KEY.get_or_init(RandomState::new).build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    (hasher.finish() as u32).to_ne_bytes()
}
