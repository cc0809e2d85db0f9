//! Two reusable buffers per thread: one to encode a frame, one for an intermediate value of that frame.

use std::cell::Cell;

use crate::limits::KEEP_BYTES;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The buffer to take while the first one is in use.
    static SECOND: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Takes an empty buffer, with capacity if one was given back before.
#[inline]
pub(super) fn take() -> Vec<u8> {
    let spare = SPARE.try_with(Cell::take).unwrap_or_default();
    match spare.capacity() {
        0 => SECOND.try_with(Cell::take).unwrap_or_default(),
        _ => spare,
    }
}

/// Gives a buffer back; a buffer that has grown too large is dropped.
#[inline]
pub(super) fn put(mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEEP_BYTES {
        buffer.clear();
        // While the thread ends, nothing is kept.
        let other = SPARE.try_with(|spare| spare.replace(buffer));
        if let Ok(other) = other
            && other.capacity() > 0
        {
            let _ = SECOND.try_with(|second| second.set(other));
        }
    }
}
