//! The messages of a batch.

use super::frame::Frame;
use crate::json::walk::Walker;

/// Splits a frame of kind [`Kind::Batch`](super::Kind::Batch) into its elements, each a frame to be
/// decoded on its own. Yields nothing for any other frame.
pub fn batch(frame: Frame<'_>) -> impl Iterator<Item = Frame<'_>> + Clone {
    let walker = move || Walker::new(frame.padded(), frame.len(), usize::MAX);
    let mut pos = match walker().next(0) {
        (pos, b'[') => pos + 1,
        _ => frame.len(),
    };
    std::iter::from_fn(move || {
        let mut walker = walker();
        let (start, byte) = walker.next(pos);
        pos = frame.len();
        if start >= frame.len() {
            return None;
        }
        let end = walker.skip(start, byte)?;
        if let (next, b',') = walker.next(end) {
            pos = next + 1;
        }
        frame.part(start, end)
    })
}
