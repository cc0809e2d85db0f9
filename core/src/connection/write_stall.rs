//! Disconnects a peer that reads nothing while its output is above its cap, or while its output is long
//! and all connections together hold too much.

use std::time::Instant;

use super::core::Core;
use super::pending::Timer;
use super::streams::Streams;
use crate::correlate::TimerKey;
use crate::error::ConnectionError;
use crate::limits::{KEEP_BYTES, later};

/// The timer that watches such a peer.
#[derive(Debug, Default)]
pub(super) struct WriteStall {
    timer: Option<TimerKey>,
    /// Bytes that the peer had taken when the timer started.
    taken: u64,
    /// Whether the output was above its cap when the timer started.
    above_cap: bool,
}

fn taken(streams: &Streams) -> u64 {
    let outputs = streams.iter().map(|(_, stream)| &stream.exchange.output);
    outputs.map(|output| output.taken()).sum()
}

impl Core {
    /// Starts or stops the timer; `longest` is the length of the longest output.
    pub(super) fn watch_stall(&mut self, streams: &Streams, longest: usize, now: Instant) {
        let cap = self.limits().output_cap_bytes;
        let above_cap = longest > cap;
        let is_long = above_cap || longest > KEEP_BYTES;
        if !is_long && self.stall.timer.is_none() {
            return;
        }
        if (!is_long || above_cap != self.stall.above_cap)
            && let Some(timer) = self.stall.timer.take()
        {
            self.timers.cancel(timer);
        }
        if is_long && self.stall.timer.is_none() {
            self.stall.taken = taken(streams);
            self.stall.above_cap = above_cap;
            let deadline = later(now, self.limits().stall_timeout);
            self.stall.timer = Some(self.timers.insert(deadline, Timer::WriteStall));
        }
    }

    /// Handles the timer: ends the connection if the peer has taken nothing; else starts the timer
    /// again.
    pub(super) fn stalled(&mut self, streams: &Streams, now: Instant) -> Option<ConnectionError> {
        self.stall.timer = None;
        let outputs = streams
            .iter()
            .map(|(_, stream)| stream.exchange.output.len());
        let longest = outputs.max().unwrap_or(0);
        let too_much = longest > self.limits().output_cap_bytes || self.is_to_give_way();
        if too_much && taken(streams) == self.stall.taken {
            return Some(ConnectionError::Stalled);
        }
        self.watch_stall(streams, longest, now);
        None
    }
}
