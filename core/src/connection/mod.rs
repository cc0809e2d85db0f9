//! The protocol state machine of one connection: both sides, both eras, one to many streams.
//!
//! Sans-IO: a driver puts bytes in and takes bytes out, and says what time it is; the
//! application is a [`Host`], called on the driver's thread; other threads hold a [`Handle`].
//!
//! ```text
//!   driver                          Connection                              other threads
//!   input(stream).spare / advance ─▶ receive ─▶ Host::request, ::dispatch ─▶ Call
//!   output(stream).io_slices      ◀─ output  ◀─ handle_submissions  ◀──────  Handle, Replies
//!   the clock                     ─▶ handle_timeout, poll_timeout
//! ```
//!
//! Exactly one thread drives a connection, so the race between an answer and a cancellation is
//! decided where it looks at the table of requests in flight, and nowhere else (R-CAN-11).

mod actions;
mod admission;
mod answer;
mod budget;
mod bundle;
mod config;
mod core;
mod deadlines;
mod drain;
mod handle;
mod host;
mod implementation;
mod liveness;
mod lost;
mod opening;
mod overdue;
mod pace;
mod params;
mod pending;
mod polled;
mod principal;
mod queue;
mod receive;
#[cfg(feature = "http")]
mod renew;
mod replies;
mod requests;
mod response;
mod scratch;
mod session;
mod shared;
mod sleep;
mod stall;
mod stream;
mod streams;
mod trace;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "server")]
pub(crate) use self::actions::references::References;
pub use self::answer::ResultWriter;
#[cfg(feature = "server")]
pub(crate) use self::answer::object as answer_object;
pub use self::budget::Budget;
#[cfg(feature = "server")]
pub(crate) use self::bundle::BATCH;
pub use self::bundle::Bundle;
pub use self::config::{Config, Opening};
pub use self::handle::{ActOptions, Handle, PartialFn, Peer, Progress, ProgressFn, RequestOptions};
pub use self::host::{
    Answer, Batch, Call, CallKey, Disposition, Host, Incoming, ReplyTo, Stray, StreamId,
};
pub use self::implementation::Implementation;
#[cfg(feature = "server")]
pub(crate) use self::pace::Pace;
pub use self::polled::{Event, Polled};
pub use self::principal::Principal;
pub use self::replies::Replies;
pub use self::response::{Opened, Response};
pub use self::shared::Wake;
pub use self::sleep::Sleep;
pub use self::trace::{Direction, Trace, redact};
#[cfg(feature = "server")]
pub(crate) use self::trace::{is_secret, mask_with};
pub use self::watch::{Verdict, Watch};
pub use crate::frame::Framing;

use self::core::Core;
use self::queue::{Batch as Submitted, Submission};
use self::stream::Stream;
use self::streams::Streams;
use crate::buffer::{Input, Output};
use crate::error::ConnectionError;

/// The state of one connection. See the [module](self).
#[derive(Debug)]
pub struct Connection {
    core: Core,
    streams: Streams,
    /// Empty between two looks at the queue; keeps its room.
    submitted: Submitted,
}

impl Connection {
    /// A connection that has not begun. On a client, the first
    /// [`handle_submissions`](Self::handle_submissions) writes the opening.
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Self {
            core: Core::new(Handle::new(config), now),
            streams: Streams::default(),
            submitted: Submitted::default(),
        }
    }

    /// A way to this connection for other threads.
    pub fn handle(&self) -> Handle {
        self.core.handle.clone()
    }

    /// Says how to rouse the driver when a [`Handle`] has submitted something.
    pub fn set_wake(&self, wake: Arc<dyn Wake>) {
        self.core.shared().set_wake(wake);
    }

    /// Says who the peer is, as the carrier has verified (a token, a certificate, the owner of a
    /// socket); nobody knows on a pipe. Only the first call counts.
    pub fn set_principal(&mut self, principal: impl Into<Principal>) {
        let _ = self.core.shared().principal.set(principal.into());
    }

    /// Adds a stream.
    pub fn open_stream(&mut self, framing: Framing) -> StreamId {
        let id = self.streams.open(Stream::new(framing, &self.core.config));
        if self.streams.are_many() {
            self.core.session.get_or_insert_default();
        }
        id
    }

    /// Says that nothing but actions comes on that stream, as its carrier knows, and how they are
    /// answered: `streamed` ones in parts (R-ACT-24).
    pub fn expect_actions(&mut self, stream: StreamId, streamed: bool) {
        let speech = &mut self.streams[stream].exchange.speech;
        speech.only = Some(match streamed {
            true => crate::message::Dialect::ActionStream,
            false => crate::message::Dialect::Action,
        });
    }

    /// Closes a stream: what is in flight on it is cancelled, and what was not written is gone.
    /// The first stays open as long as the connection does.
    pub fn close_stream(&mut self, stream: StreamId, now: Instant, host: &mut dyn Host) {
        if stream == StreamId::FIRST {
            return;
        }
        if let Some(exchange) = self.streams.exchange(stream) {
            self.core.cancel_all(stream, exchange, host);
            self.streams.close(stream);
            self.settle(now, host);
        }
    }

    /// Whether everything that came on that stream is answered; `true` of one that is closed.
    pub fn is_answered(&self, stream: StreamId) -> bool {
        let stream = self.streams.get(stream);
        stream.is_none_or(|stream| stream.exchange.incoming.is_empty())
    }

    /// The streams whose readers a handler has sent away since the last time, and how soon each
    /// may come back for the rest (R-SSE-07). Never the first.
    pub fn take_released(&mut self) -> Vec<(StreamId, Duration)> {
        std::mem::take(&mut self.core.released)
    }

    /// Where the driver puts what it read.
    ///
    /// # Panics
    /// If the stream is not open on this connection, as with every method that takes one.
    pub fn input(&mut self, stream: StreamId) -> &mut Input {
        &mut self.streams[stream].reading.input
    }

    /// What the driver is to write.
    pub fn output(&mut self, stream: StreamId) -> &mut Output {
        &mut self.streams[stream].exchange.output
    }

    /// Whether the driver may read on. `false` only above the hard cap of the output, after the
    /// end of the input and after the connection ended.
    pub fn wants_read(&self, stream: StreamId) -> bool {
        let stream = &self.streams[stream];
        !stream.reading.ended
            && !self.is_closed()
            && stream.exchange.output.len() <= self.core.config.limits.output_cap_bytes
    }

    /// Looks at what was read: answers what the protocol layer answers, hands the rest to the
    /// host.
    pub fn receive(&mut self, stream: StreamId, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        receive::receive(&mut self.core, &mut self.streams, stream, now, host);
        self.settle(now, host);
    }

    /// The input has ended in good order. A last message without its terminator is taken
    /// (R-STD-03). A client's connection ends here; a server's goes on until what is in flight
    /// is answered, or its driver closes it.
    pub fn receive_end(&mut self, stream: StreamId, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        receive::end(&mut self.core, &mut self.streams, stream, now, host);
        self.settle(now, host);
    }

    /// Takes over what other threads submitted since the last time.
    pub fn handle_submissions(&mut self, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        self.core.watch_liveness(now);
        if let Some(first) = self.streams.exchange(StreamId::FIRST) {
            self.core.begin(first, now, host);
        }
        let mut submitted = std::mem::take(&mut self.submitted);
        while self.core.shared().queue.take(&mut submitted) {
            let mut frames = &submitted.bytes[..];
            for submission in submitted.submissions.drain(..) {
                match submission {
                    Submission::Close => self.close(ConnectionError::ClosedLocally, host),
                    Submission::Drain(grace) => {
                        self.drain(now, grace, ConnectionError::ShuttingDown, host);
                    }
                    Submission::Bundle(bundle) => self.begin_bundle(*bundle, now, host),
                    other => self
                        .core
                        .submitted(&mut self.streams, other, &mut frames, now, host),
                }
            }
        }
        self.submitted = submitted;
        self.settle(now, host);
    }

    /// Lets time pass.
    pub fn handle_timeout(&mut self, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        if let Some(reason) = self.core.expire(&mut self.streams, now, host) {
            self.close(reason, host);
        }
        self.settle(now, host);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.is_closed() && self.core.has_room_for_more(&self.streams) {
            return Some(self.core.begun);
        }
        self.core.next_deadline()
    }

    /// Requests of the peer that are not yet answered.
    pub fn in_flight(&self) -> usize {
        self.streams
            .iter()
            .map(|(_, stream)| stream.exchange.incoming.len())
            .sum()
    }

    /// Ends the connection: every waiter and every deferred request learns it. What is queued
    /// may still be written. Only the first call counts.
    pub fn close(&mut self, reason: ConnectionError, host: &mut dyn Host) {
        if self.is_closed() {
            return;
        }
        for (id, stream) in self.streams.iter_mut() {
            self.core.cancel_all(id, &mut stream.exchange, host);
        }
        self.core.bundles.clear();
        self.core.shared().close(reason.clone());
        self.core.stop_timers();
        self.core.release_share();
        host.closed(&reason);
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.core.handle.is_closed()
    }

    fn settle(&mut self, now: Instant, host: &mut dyn Host) {
        if self.is_closed() {
            return;
        }
        if !self.core.bundles.is_empty() {
            self.gather_bundles(host);
        }
        if let Some(reason) = self.core.settle(&mut self.streams, now, host) {
            self.close(reason, host);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.core.shared().close(ConnectionError::ClosedLocally);
        self.core.shared().queue.close();
        self.core.release_share();
    }
}
