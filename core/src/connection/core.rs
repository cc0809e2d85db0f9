//! What the streams of a connection have in common, and what happens to submissions and timers.

use std::sync::Arc;
use std::time::Instant;

use super::config::Config;
use super::drain::Drain;
use super::handle::{Handle, Item, ItemKind, Shared, Submission};
use super::host::{CallKey, Host, StreamId};
use super::opening::Phase;
use super::pending::{Pending, Timer};
use super::stream::{Exchange, Stream};
use crate::correlate::{RequestKey, TimerKey, TimerWheel};
use crate::error::ConnectionError;
use crate::json::{number, string};
use crate::limits::Limits;

#[derive(Debug)]
pub(crate) struct Core {
    pub config: Arc<Config>,
    pub handle: Handle,
    pub phase: Phase,
    pub pending: Pending,
    pub timers: TimerWheel<Timer>,
    pub(super) drain: Option<Drain>,
    stall: Option<TimerKey>,
    pub begun: Instant,
}

impl Core {
    pub fn new(handle: Handle, now: Instant) -> Self {
        Self {
            config: handle.config().clone(),
            handle,
            phase: Phase::default(),
            pending: Pending::default(),
            timers: TimerWheel::new(now),
            drain: None,
            stall: None,
            begun: now,
        }
    }

    pub fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Takes over one submission of another thread.
    pub fn submitted(&mut self, streams: &mut [Stream], submission: Submission, now: Instant) {
        match submission {
            Submission::Frames { bytes, items } => {
                let mut rest = &bytes[..];
                for Item { len, kind } in items {
                    let (frame, after) = rest.split_at(len.min(rest.len()));
                    rest = after;
                    self.submitted_frame(streams, frame, kind, now);
                }
            }
            Submission::Cancelled { key, reason } => {
                if self.pending.remove(key, &mut self.timers)
                    && let Some(first) = streams.first_mut()
                {
                    cancelled(&mut first.exchange, key, reason.as_deref());
                }
            }
            Submission::Sleep { alarm, duration } => {
                self.timers.insert(now + duration, Timer::Sleep(alarm));
            }
            Submission::Close | Submission::Drain(_) => {}
        }
    }

    fn submitted_frame(
        &mut self,
        streams: &mut [Stream],
        frame: &[u8],
        kind: ItemKind,
        now: Instant,
    ) {
        let mark = self.limits().output_mark_bytes;
        match kind {
            ItemKind::Answer(key) => {
                let Some(exchange) = exchange(streams, key.stream) else {
                    return;
                };
                // The one step that decides between answered and cancelled (R-CAN-11).
                let Some((_, entry)) = exchange.incoming.remove(key.incoming) else {
                    return;
                };
                if let Some(held) = entry.held {
                    exchange.append(&held);
                }
                exchange.append(frame);
            }
            ItemKind::Progress(key) => {
                let Some(exchange) = exchange(streams, key.stream) else {
                    return;
                };
                let crowded = exchange.output.len() > mark;
                let Some(entry) = exchange.incoming.get_mut(key.incoming) else {
                    return;
                };
                entry.held = crowded.then(|| frame.into());
                if !crowded {
                    exchange.append(frame);
                }
            }
            ItemKind::Log(key) => {
                let stream = key.map_or(StreamId::FIRST, |key: CallKey| key.stream);
                let Some(exchange) = exchange(streams, stream) else {
                    return;
                };
                let live = key.is_none_or(|key| exchange.incoming.get(key.incoming).is_some());
                if live && exchange.output.len() <= mark {
                    exchange.append(frame);
                }
            }
            ItemKind::Notification => {
                if let Some(exchange) = exchange(streams, StreamId::FIRST) {
                    exchange.append(frame);
                }
            }
            ItemKind::Request(request) => {
                let Some(exchange) = exchange(streams, StreamId::FIRST) else {
                    return;
                };
                exchange.append(frame);
                self.pending.insert(*request, &mut self.timers, now);
            }
        }
    }

    /// Lets time pass; gives the reason when it ends the connection.
    pub fn expire(
        &mut self,
        streams: &mut [Stream],
        now: Instant,
        host: &mut dyn Host,
    ) -> Option<ConnectionError> {
        while let Some(timer) = self.timers.poll(now) {
            let first = streams.first_mut()?;
            match timer {
                Timer::Request(key) => {
                    let shared = &self.handle.shared;
                    if self.pending.expire(key, shared, &mut self.timers, now) {
                        cancelled(&mut first.exchange, key, Some("timeout"));
                    }
                }
                Timer::Opening(key) => {
                    if let Err(reason) = self.opening_timed_out(&mut first.exchange, key, now, host)
                    {
                        return Some(reason);
                    }
                }
                Timer::Drain => match self.drain_timed_out(now) {
                    Some(reason) => return Some(reason),
                    None => continue,
                },
                Timer::Stall => return Some(ConnectionError::Stalled),
                Timer::Sleep(alarm) => drop(alarm),
            }
        }
        None
    }

    /// Forgets every timer: nothing waits for time any more.
    pub fn stop_timers(&mut self) {
        self.timers = TimerWheel::new(self.begun);
        self.stall = None;
    }

    /// Starts or stops the clock on a peer that does not read.
    pub fn watch_stall(&mut self, stalled: bool, now: Instant) {
        if stalled && self.stall.is_none() {
            let deadline = now + self.limits().stall_timeout;
            self.stall = Some(self.timers.insert(deadline, Timer::Stall));
        } else if !stalled && let Some(timer) = self.stall.take() {
            self.timers.cancel(timer);
        }
    }
}

fn exchange(streams: &mut [Stream], id: StreamId) -> Option<&mut Exchange> {
    streams
        .get_mut(id.0 as usize)
        .map(|stream| &mut stream.exchange)
}

/// Tells the peer that nobody waits any more for a request of this side.
fn cancelled(exchange: &mut Exchange, key: RequestKey, reason: Option<&str>) {
    exchange.write(|out| {
        out.extend_from_slice(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":",
        );
        number::append(out, key.get());
        if let Some(reason) = reason {
            out.extend_from_slice(b",\"reason\":");
            string::append(out, reason);
        }
        out.extend_from_slice(b"}}");
    });
}
