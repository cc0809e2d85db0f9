//! Reuse of one connection for several peers in turn. Where a peer sends a single request, as over HTTP
//! in 2026-07-28, creating a connection would cost more than the request.

use std::time::Instant;

use super::core::Core;
use super::host::StreamId;
use super::liveness::Liveness;
use super::shared::FIRST_LOG_LEVEL;
use super::{Connection, Framing};
use crate::mcp::Side;

impl Connection {
    /// Number of [`Handle`](super::Handle)s.
    pub(crate) fn handles(&self) -> usize {
        self.core.handle.count()
    }

    /// Resets a server's connection for another peer, with one stream; the principal stays. Returns
    /// whether it was reset: not if anything is left of what it has served. The caller must have
    /// checked, with [`handles`](Self::handles), that only the driver and the host hold a
    /// [`Handle`](super::Handle).
    pub(crate) fn renew(&mut self, framing: Framing, now: Instant) -> bool {
        if !self.core.is_blank() || self.streams.are_many() {
            return false;
        }
        let config = &self.core.config;
        let stream = self.streams.get_mut(StreamId::FIRST);
        let renewed = stream.is_some_and(|stream| stream.renew(framing, config));
        if renewed {
            self.core.renew(now);
        }
        renewed
    }
}

impl Core {
    /// Whether nothing is left of what the connection has served.
    fn is_blank(&self) -> bool {
        let shared = self.shared();
        self.config.side == Side::Server
            && !self.handle.is_closed()
            && !self.handle.is_draining()
            && self.handle.revision().is_none()
            && self.in_flight == 0
            && !self.overrun
            && self.pending.is_empty()
            && self.timers.is_empty()
            && self.released.is_empty()
            && shared.queue.is_empty()
            && shared.outgoing.pending_count() == 0
    }

    fn renew(&mut self, now: Instant) {
        self.release_share();
        self.shared().set_output_bytes(0);
        self.shared().set_log_level(FIRST_LOG_LEVEL);
        self.liveness = Liveness::new(now);
        self.set_paces(now);
        self.begun = now;
    }
}
