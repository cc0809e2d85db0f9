//! Proofs that were used.

use std::collections::HashSet;
use std::mem;

use ring::digest::{Context, SHA256};

/// Most proofs of one period that are remembered: 24 MB. Beyond that, further proofs are refused until the
/// period ends, so that a replay is never accepted.
pub const MAX_REPLAYS: usize = 1 << 20;

/// A hash of the thumbprint of a key and the id (`jti`) of a proof made with it, by which a proof that comes again is recognized.
pub fn mark_of(key: &str, id: &str) -> u128 {
    let mut digest = Context::new(&SHA256);
    digest.update(key.as_bytes());
    digest.update(id.as_bytes());
    let digest = digest.finish();
    let half = digest.as_ref().first_chunk();
    u128::from_be_bytes(half.copied().unwrap_or_default())
}

/// The proofs that were used in this period and the one before. A period is as long as a proof is
/// accepted, so a proof that is forgotten has ended.
#[derive(Debug, Default)]
pub struct ReplayCache {
    period: u64,
    current: HashSet<u128>,
    before: HashSet<u128>,
}

impl ReplayCache {
    /// Marks a proof as used. Returns `None` if there is no room, and whether the proof was not used before.
    pub fn mark(&mut self, key: &str, id: &str, now: u64, lifetime: u64) -> Option<bool> {
        let period = now / lifetime.max(1);
        if period > self.period {
            let last = mem::take(&mut self.current);
            self.before = match period == self.period + 1 {
                true => last,
                false => HashSet::new(),
            };
            self.period = period;
        }
        let mark = mark_of(key, id);
        if self.before.contains(&mark) || self.current.contains(&mark) {
            return Some(false);
        }
        if self.current.len() >= MAX_REPLAYS {
            return None;
        }
        Some(self.current.insert(mark))
    }
}
