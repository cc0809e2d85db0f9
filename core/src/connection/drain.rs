//! Graceful shutdown: requests in flight are finished, no new ones begin.

use std::time::{Duration, Instant};

use super::Connection;
use super::core::Core;
use super::host::Host;
use super::pending::Timer;
use super::stream::Stream;
use super::streams::Streams;
use crate::error::ConnectionError;
use crate::limits::later;
use crate::mcp::ErrorKind;

/// A drain in progress.
#[derive(Debug)]
pub(super) struct Drain {
    reason: ConnectionError,
    /// When the grace period ends.
    until: Instant,
}

impl Connection {
    /// Finishes requests in flight, then closes; after `grace` at the latest.
    ///
    /// From now on new requests and those that wait for room are refused: the peer's with
    /// [`ErrorKind::ShuttingDown`], this side's with `reason`. Pings, answers, cancellations and
    /// notifications continue. The connection closes when no request is in flight and the driver has
    /// written all output. Requests of this side that are pending when the grace period ends fail with
    /// `reason`. A second drain can only shorten the first.
    pub fn drain(
        &mut self,
        now: Instant,
        grace: Duration,
        reason: ConnectionError,
        host: &mut dyn Host,
    ) {
        if self.is_closed() {
            return;
        }
        self.core.begin_drain(now, grace, reason);
        host.draining();
        let kind = ErrorKind::ShuttingDown;
        self.core
            .refuse_waiting(&mut self.streams, kind, "shutting down");
        self.settle(now, host);
    }

    /// Whether the connection is draining: see [`drain`](Self::drain).
    pub fn is_draining(&self) -> bool {
        self.core.drain.is_some()
    }
}

impl Core {
    fn begin_drain(&mut self, now: Instant, grace: Duration, reason: ConnectionError) {
        self.shared().drain(&reason);
        let until = later(now, grace);
        match &mut self.drain {
            Some(drain) if drain.until <= until => return,
            Some(drain) => drain.until = until,
            None => self.drain = Some(Drain { reason, until }),
        }
        self.timers.insert(until, Timer::Drain);
    }

    /// The reason to close, once no request is in flight and all output is written.
    pub fn drained(&self, streams: &Streams) -> Option<ConnectionError> {
        let drain = self.drain.as_ref()?;
        let idle = |(_, Stream { exchange, .. }): (_, &Stream)| {
            exchange.incoming.is_empty() && exchange.output.is_empty()
        };
        (self.pending.is_empty() && streams.iter().all(idle)).then(|| drain.reason.clone())
    }

    /// The reason to close, if the grace period is over.
    pub fn drain_timed_out(&self, now: Instant) -> Option<ConnectionError> {
        let drain = self.drain.as_ref().filter(|drain| drain.until <= now)?;
        Some(drain.reason.clone())
    }
}
