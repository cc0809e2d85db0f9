//! A connection that serves one peer after another: where each is there for one request only, as
//! over HTTP in 2026-07-28, making a connection costs more than the request.

use std::time::Instant;

use super::core::Core;
use super::host::StreamId;
use super::liveness::Liveness;
use super::shared::FIRST_LOG_LEVEL;
use super::{Connection, Framing};
use crate::mcp::Side;

impl Connection {
    /// How many [`Handle`](super::Handle)s there are.
    pub(crate) fn handles(&self) -> usize {
        self.core.handle.count()
    }

    /// Makes the connection of a server as good as new, with one stream; its principal stays.
    /// Whether it could: not when anything is left of what it has served. That nobody but its
    /// driver and its host holds a [`Handle`](super::Handle) is for the caller to have seen, by
    /// [`handles`](Self::handles).
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
    /// Whether nothing is left of what was served.
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
