//! Requests of this side that their transport lost, where each request travels on its own (HTTP).

use std::time::Instant;

use super::Connection;
use super::host::{Host, StreamId};
use crate::correlate::RequestKey;
use crate::error::RequestError;

impl Connection {
    /// Whether a request of this side still waits for its answer; `id` is its id on the wire.
    pub fn awaits(&self, id: u64) -> bool {
        let core = &self.core;
        let waits = |key| core.is_opening(key) || core.is_ping(key) || core.pending.contains(key);
        RequestKey::from_wire(id).is_some_and(waits)
    }

    /// Fails a pending request of this side with `error`; `id` is its id on the wire. Does nothing if
    /// the request is not pending. An open connection continues. While the connection opens, the loss
    /// ends it unless the error allows falling back to an older revision.
    pub fn lose(&mut self, id: u64, error: RequestError, now: Instant, host: &mut dyn Host) {
        let Some(key) = RequestKey::from_wire(id) else {
            return;
        };
        if self.core.is_opening(key)
            && let Some(first) = self.streams.exchange(StreamId::FIRST)
        {
            self.core.opening_lost(first, error, now, host);
        } else if self.core.forget(key) {
            // An error here means that the request had ended before.
            let _ = self.core.shared().outgoing.complete(key, Err(error));
        }
        self.settle(now, host);
    }
}
