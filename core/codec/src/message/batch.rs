//! The messages of a batch.

use super::frame::Frame;
use crate::json::walk::Walker;

/// Splits a frame of kind [`Kind::Batch`](super::Kind::Batch) into its elements, each a frame to be
/// decoded on its own. Yields nothing for any other frame.
pub fn batch(frame: Frame<'_>) -> Elements<'_> {
    let walker = Walker::new(frame.padded(), frame.len(), usize::MAX);
    let pos = match walker.next(0) {
        (pos, b'[') => pos + 1,
        _ => frame.len(),
    };
    Elements { frame, pos }
}

/// The iterator returned by [`batch`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    frame: Frame<'a>,
    pos: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let mut walker = Walker::new(self.frame.padded(), self.frame.len(), usize::MAX);
        let (start, byte) = walker.next(self.pos);
        self.pos = self.frame.len();
        if start >= self.frame.len() {
            return None;
        }
        let end = walker.skip(start, byte)?;
        if let (next, b',') = walker.next(end) {
            self.pos = next + 1;
        }
        self.frame.part(start, end)
    }
}
