//! A bounded set of used items with expiry times. Under pressure it refuses unused items, but it
//! never accepts an item twice.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::limits::MAX_USED_STATES;

/// The first half of a signature, enough to identify it.
type Mark = [u8; 16];

/// Marks of used items, kept until they expire.
#[derive(Debug, Default)]
pub(super) struct ReplayGuard(Mutex<Marks>);

#[derive(Debug, Default)]
struct Marks {
    /// Expiry in seconds, and mark.
    marks: BTreeSet<(u64, Mark)>,
    /// Items that expire at or before this time count as used: their marks may have been dropped.
    floor: u64,
}

impl ReplayGuard {
    /// Marks an item that expires at `end` as used. Returns `false` if it may have been used
    /// before.
    pub fn take(&self, end: u64, mark: Mark, now: u64) -> bool {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while marks.marks.first().is_some_and(|(end, _)| *end <= now) {
            marks.marks.pop_first();
        }
        if end <= marks.floor || !marks.marks.insert((end, mark)) {
            return false;
        }
        if marks.marks.len() > MAX_USED_STATES
            && let Some((end, _)) = marks.marks.pop_first()
        {
            marks.floor = end;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(n: u64) -> Mark {
        u128::from(n).to_le_bytes()
    }

    /// R-MRT-09.
    #[test]
    fn nothing_is_used_twice_however_much_is_used() {
        let used = ReplayGuard::default();
        let all = 2 * MAX_USED_STATES as u64;
        for n in 0..all {
            assert!(used.take(100 + n, mark(n), 0));
            assert!(!used.take(100 + n, mark(n), 0));
        }
        assert!((0..all).all(|n| !used.take(100 + n, mark(n), 0)));
        let kept = used.0.lock().unwrap().marks.len();
        assert_eq!(kept, MAX_USED_STATES);
        // Expired marks are removed.
        assert!(used.take(10 * all, mark(0), 5 * all));
        assert_eq!(used.0.lock().unwrap().marks.len(), 1);
    }
}
