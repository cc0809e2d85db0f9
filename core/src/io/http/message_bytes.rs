//! Splits the engine's output into messages.

use bytes::{Buf, Bytes};
use smallvec::SmallVec;

/// One message without its line end, in the pieces in which it was written.
pub type MessageBytes = SmallVec<[Bytes; 1]>;

/// Splits output of one message per line into messages.
pub fn messages(pieces: impl Iterator<Item = Bytes>) -> SmallVec<[MessageBytes; 1]> {
    let (mut messages, mut open) = (SmallVec::new(), MessageBytes::new());
    for mut rest in pieces {
        while let Some(end) = memchr::memchr(b'\n', &rest) {
            open.push(rest.split_to(end));
            messages.push(std::mem::take(&mut open));
            rest.advance(1);
        }
        if !rest.is_empty() {
            open.push(rest);
        }
    }
    debug_assert!(open.is_empty(), "a message without its line end");
    messages
}
