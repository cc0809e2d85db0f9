//! One buffer a thread, in which its frames are encoded before they are handed over.

use std::cell::Cell;

use crate::limits::KEEP_BYTES;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// An empty buffer, with room if it was used before.
#[inline]
pub(super) fn take() -> Vec<u8> {
    SPARE.try_with(Cell::take).unwrap_or_default()
}

/// Gives a buffer back, unless it grew beyond what is worth keeping.
#[inline]
pub(super) fn put(mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEEP_BYTES {
        buffer.clear();
        // A thread that ends keeps none.
        let _ = SPARE.try_with(|spare| spare.set(buffer));
    }
}
