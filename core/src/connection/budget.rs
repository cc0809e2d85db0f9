//! What all connections of one configuration may hold together.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::limits::TotalLimits;

/// The sum of what many connections hold, and its bounds. Shared by cloning the
/// [`Config`](super::Config) it is part of.
///
/// Each connection adds its share at the end of a turn, so the sum may be exceeded by one turn of
/// each connection.
#[derive(Debug, Default)]
pub struct Budget {
    limits: TotalLimits,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    calls: AtomicUsize,
}

/// What one connection has added to a [`Budget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Requests of the peer in flight.
    pub requests: usize,
    /// Bytes queued, in and out; messages that have not arrived to their end are among them.
    pub bytes: usize,
    /// Requests of the peer that were handed to a handler, since the beginning.
    pub calls: usize,
}

impl Budget {
    /// A budget within those limits, of which nothing is used.
    pub fn new(limits: TotalLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Requests of peers in flight on all connections.
    pub fn requests(&self) -> usize {
        self.requests.load(Relaxed)
    }

    /// Bytes queued on all connections.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Requests that were handed to a handler since the beginning, on all connections.
    pub fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Whether nothing new is to be begun.
    pub fn is_exceeded(&self) -> bool {
        self.requests() >= self.limits.max_incoming || self.bytes() > self.limits.queued_cap_bytes
    }

    /// Replaces one connection's share.
    pub(crate) fn change(&self, old: &mut Share, new: Share) {
        add(&self.requests, old.requests, new.requests);
        add(&self.bytes, old.bytes, new.bytes);
        add(&self.calls, old.calls, new.calls);
        *old = new;
    }
}

fn add(sum: &AtomicUsize, old: usize, new: usize) {
    if old != new {
        // Wraps when it falls: the sum of all shares stays right.
        sum.fetch_add(new.wrapping_sub(old), Relaxed);
    }
}
