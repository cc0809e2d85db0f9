//! Counts of what is in progress now, of all series together.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Counts for requests that arrived and for those that were sent.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub received: Total,
    pub sent: Total,
    /// Requests that arrived and wait for room. Those that this side sends never do.
    pub waiting: AtomicI64,
}

/// Counts of one direction.
#[derive(Debug, Default)]
pub(super) struct Total {
    /// Requests that began before there was a series for them. All others are counted there.
    pub unknown: AtomicU64,
    /// Open sessions of servers, or of clients.
    pub sessions: AtomicI64,
}

impl Totals {
    pub fn of(&self, is_sent: bool) -> &Total {
        match is_sent {
            true => &self.sent,
            false => &self.received,
        }
    }

    /// A request has to wait for room, or waits no longer.
    pub fn waits(&self, waits: bool) {
        self.waiting.fetch_add(if waits { 1 } else { -1 }, Relaxed);
    }
}
