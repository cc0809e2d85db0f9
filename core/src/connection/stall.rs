//! A peer that takes nothing while the output is above its cap.

use std::time::Instant;

use super::core::Core;
use super::pending::Timer;
use super::streams::Streams;
use crate::correlate::TimerKey;
use crate::error::ConnectionError;
use crate::limits::later;

/// The clock on such a peer.
#[derive(Debug, Default)]
pub(super) struct Stall {
    timer: Option<TimerKey>,
    /// Bytes the peer had taken when the clock began.
    taken: u64,
}

fn taken(streams: &Streams) -> u64 {
    let outputs = streams.iter().map(|(_, stream)| &stream.exchange.output);
    outputs.map(|output| output.taken()).sum()
}

impl Core {
    /// Starts or stops the clock; `longest` is the length of the longest output.
    pub(super) fn watch_stall(&mut self, streams: &Streams, longest: usize, now: Instant) {
        let above = longest > self.limits().output_cap_bytes;
        if above && self.stall.timer.is_none() {
            self.stall.taken = taken(streams);
            let deadline = later(now, self.limits().stall_timeout);
            self.stall.timer = Some(self.timers.insert(deadline, Timer::Stall));
        } else if !above && let Some(timer) = self.stall.timer.take() {
            self.timers.cancel(timer);
        }
    }

    /// The time is up: a peer that took something meanwhile gets as much again.
    pub(super) fn stalled(&mut self, streams: &Streams, now: Instant) -> Option<ConnectionError> {
        self.stall.timer = None;
        if taken(streams) == self.stall.taken {
            return Some(ConnectionError::Stalled);
        }
        let outputs = streams
            .iter()
            .map(|(_, stream)| stream.exchange.output.len());
        self.watch_stall(streams, outputs.max().unwrap_or(0), now);
        None
    }
}
