//! A bounded set of used items with expiry times. Under pressure it refuses unused items, but it
//! never accepts an item twice.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::store::{Bounds, Keep, MemoryStore, Store};
use crate::digest::hex;
use crate::limits::{MAX_USED_STATES, later};

/// The used items, kept until they expire.
#[derive(Debug)]
pub(super) struct ReplayGuard {
    /// The expiry of each used item by its signature, in seconds.
    used: Box<dyn Store<u64>>,
    /// Items that expire at or before this time count as used: the store may have dropped them.
    floor: Mutex<u64>,
}

impl Default for ReplayGuard {
    fn default() -> Self {
        let store = MemoryStore::new(Bounds {
            values: MAX_USED_STATES,
            bytes: usize::MAX,
            evicts: true,
        });
        Self {
            used: Box::new(store),
            floor: Mutex::default(),
        }
    }
}

impl ReplayGuard {
    /// Marks the item with this signature, which expires at `end`, as used; `now` and `end` are
    /// seconds. Returns `false` if it may have been used before.
    pub fn take(&self, end: u64, signature: &[u8], now: u64) -> bool {
        // Half of a signature identifies it.
        let key = hex(&signature[..signature.len() / 2]);
        let keep = Keep {
            until: later(Instant::now(), Duration::from_secs(end.saturating_sub(now))),
            bytes: 0,
            replaces: false,
        };
        let mut floor = self.floor.lock().unwrap_or_else(PoisonError::into_inner);
        let may_be_forgotten = end <= *floor;
        let put = self.used.put(&key, end, keep);
        *floor = put.removed.into_iter().fold(*floor, u64::max);
        put.stored && !may_be_forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(n: u64) -> [u8; 32] {
        let mut signature = [0; 32];
        signature[..8].copy_from_slice(&n.to_le_bytes());
        signature
    }

    /// R-MRT-09.
    #[test]
    fn nothing_is_used_twice_however_much_is_used() {
        let used = ReplayGuard::default();
        let all = 2 * MAX_USED_STATES as u64;
        for n in 0..all {
            assert!(used.take(100 + n, &signature(n), 0));
            assert!(!used.take(100 + n, &signature(n), 0));
        }
        assert!((0..all).all(|n| !used.take(100 + n, &signature(n), 0)));
    }
}
