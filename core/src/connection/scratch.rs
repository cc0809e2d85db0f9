//! The buffers of a thread: in one its frames are encoded before they are handed over, in another what such
//! a frame is made of.

use std::cell::Cell;

use crate::limits::KEEP_BYTES;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// For who takes a buffer while another is in use.
    static SECOND: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer, with room if it was used before.
#[inline]
pub(super) fn take() -> Vec<u8> {
    let spare = SPARE.try_with(Cell::take).unwrap_or_default();
    match spare.capacity() {
        0 => SECOND.try_with(Cell::take).unwrap_or_default(),
        _ => spare,
    }
}

/// Gives a buffer back, unless it grew beyond what is worth keeping.
#[inline]
pub(super) fn put(mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEEP_BYTES {
        buffer.clear();
        // A thread that ends keeps none.
        let other = SPARE.try_with(|spare| spare.replace(buffer));
        if let Ok(other) = other
            && other.capacity() > 0
        {
            let _ = SECOND.try_with(|second| second.set(other));
        }
    }
}
