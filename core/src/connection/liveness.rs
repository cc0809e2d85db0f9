//! Keepalive and idle timeout: whether the peer still responds, and whether the connection is still
//! used.
//!
//! Each of the two has one timer. When a timer fires, it is set again according to what happened
//! meanwhile, so received traffic only costs storing a timestamp.

use std::time::Instant;

use super::core::Core;
use super::host::StreamId;
use super::pending::Timer;
use super::stream::Stream;
use super::streams::Streams;
use crate::correlate::RequestKey;
use crate::error::ConnectionError;
use crate::limits::later;
use crate::mcp::{Method, Revision};
use crate::message::encode;

/// State of the keepalive and the idle timeout.
#[derive(Debug)]
pub(super) struct Liveness {
    /// When something last arrived.
    heard: Instant,
    /// When something last arrived or was in flight.
    active: Instant,
    watching: bool,
    /// The ping that is not answered yet, and when it was sent.
    asked: Option<(RequestKey, Instant)>,
}

impl Liveness {
    pub fn new(now: Instant) -> Self {
        Self {
            heard: now,
            active: now,
            watching: false,
            asked: None,
        }
    }

    /// Records that something arrived.
    pub fn note(&mut self, now: Instant) {
        self.heard = now;
        self.active = now;
    }
}

impl Core {
    /// Starts both timers, on the first call only.
    pub(super) fn watch_liveness(&mut self, now: Instant) {
        if std::mem::replace(&mut self.liveness.watching, true) {
            return;
        }
        let limits = &self.config.limits;
        let clocks = [
            (limits.keepalive_interval, Timer::Silence),
            (limits.idle_timeout, Timer::Idle),
        ];
        for (wait, timer) in clocks {
            if let Some(wait) = wait {
                self.timers.insert(later(now, wait), timer);
            }
        }
    }

    /// Handles the keepalive timer: sends a ping, or ends the connection if a ping got no sign of life
    /// in time.
    pub(super) fn silent(
        &mut self,
        streams: &mut Streams,
        now: Instant,
    ) -> Option<ConnectionError> {
        let interval = self.limits().keepalive_interval?;
        let heard = self.liveness.heard;
        if let Some((key, since)) = self.liveness.asked.take() {
            self.shared().outgoing.cancel(key);
            if heard < since {
                return Some(ConnectionError::Unresponsive);
            }
        }
        let mut next = heard + interval;
        if next <= now {
            next = later(now, interval);
            if self.pings()
                && let Some(first) = streams.exchange(StreamId::FIRST)
                && let Ok(key) = self.shared().outgoing.register()
            {
                first.write(|out| encode::request(out, key.get(), Method::Ping.name(), None));
                self.liveness.asked = Some((key, now));
                next = later(now, self.limits().keepalive_timeout);
            }
        }
        self.timers.insert(next, Timer::Silence);
        None
    }

    /// Whether the revision lets this side send `ping` (R-PNG-03).
    fn pings(&self) -> bool {
        let defined = |revision: Revision| Method::Ping.defined(revision, self.config.side);
        self.handle.revision().is_some_and(defined)
    }

    /// Whether `key` is the ping that is not answered yet.
    pub(super) fn is_ping(&self, key: RequestKey) -> bool {
        self.liveness.asked.is_some_and(|(asked, _)| asked == key)
    }

    /// Handles the answer to a ping; returns whether it was one.
    pub(super) fn ping_answered(&mut self, key: RequestKey) -> bool {
        self.is_ping(key) && self.shared().outgoing.cancel(key)
    }

    /// Handles the idle timer.
    pub(super) fn idle(&mut self, streams: &Streams, now: Instant) -> Option<ConnectionError> {
        let timeout = self.limits().idle_timeout?;
        let busy = |(_, Stream { exchange, .. }): (_, &Stream)| {
            !exchange.incoming.is_empty() || !exchange.output.is_empty()
        };
        if !self.pending.is_empty() || streams.iter().any(busy) {
            self.liveness.active = now;
        }
        let until = self.liveness.active + timeout;
        if until <= now {
            return Some(ConnectionError::Idle);
        }
        self.timers.insert(until, Timer::Idle);
        None
    }
}
