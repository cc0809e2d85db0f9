//! The protocol state machine of one connection: both sides, both eras, one to many streams.
//!
//! Sans-IO: a driver passes bytes in, takes bytes out and supplies the clock. The application
//! implements [`Host`], whose methods run on the driver's thread. Other threads use a [`Handle`].
//!
//! ```text
//!   driver                          Connection                              other threads
//!   input(stream).spare / advance ─▶ receive ─▶ Host::request, ::dispatch ─▶ Call
//!   output(stream).io_slices      ◀─ output  ◀─ handle_submissions  ◀──────  Handle, Replies
//!   the clock                     ─▶ handle_timeout, poll_timeout
//! ```
//!
//! | files | what they do |
//! |---|---|
//! | `receive`, `messages`, `routing` | bytes to messages; a message to its effect; the revision of a request |
//! | `core` | the parts below, and what happens between them |
//! | `incoming`, `waiting`, `load`, `source_counts` | the peer's requests: which begin, which wait, which are refused |
//! | `pending`, `options`, `response`, `peer_error` | this side's requests: deadlines, progress, answers |
//! | `cancelled` | cancellations, and which request one means |
//! | `under_way` | which request in flight a message is about |
//! | `opening`, `opening_steps`, `initialize` | how a client opens; the answer of a server |
//! | `drain`, `liveness`, `write_stall`, `reports`, `timers` | the end of a connection, keepalive, slow peers, rates of reports |
//! | `streams`, `stream`, `framer` | the bytes in and out of each stream |
//! | `host`, `call`, `answer`, `operation`, `interceptor` | what an application implements and is given, on the driver's thread |
//! | `handle`, `replies`, `queue`, `submitted_frame`, `shared` | other threads: requests, answers, and the queue to the driver |
//! | `reply`, `result_writer`, `params` | encoding, in the dialect of a request and the form of its revision |
//! | `batches`, `rpc_batch`, `actions` | requests that bring several; the action dialect |
//! | `observer`, `observed`, `telling`, `channel` | what an application is told of requests and sessions, for metrics and traces |
//! | `callers`, `carried` | who sends requests within a process, and who observes them |
//! | `config`, `principal`, `source`, `budget` | settings; who a peer is; what a server holds for all peers |
//!
//! Exactly one thread drives a connection. That thread decides every race between an answer and a
//! cancellation, in one place: when it looks up the request in the table of requests in flight
//! (R-CAN-11).

#![cfg_attr(
    not(all(feature = "server", feature = "client", feature = "http")),
    allow(dead_code, unused_imports, reason = "some parts serve one room above")
)]

mod actions;
mod answer;
mod awaited;
mod batches;
mod budget;
mod by_source;
mod call;
mod callers;
mod cancelled;
#[cfg(all(feature = "server", feature = "client"))]
mod carried;
mod channel;
mod config;
mod core;
mod drain;
mod framer;
mod handle;
mod host;
mod implementation;
mod incoming;
mod initialize;
mod interceptor;
mod keys;
mod liveness;
mod load;
mod messages;
mod observed;
mod observer;
mod opening;
mod opening_steps;
mod operation;
mod options;
mod params;
mod peer_error;
mod pending;
mod polled;
mod principal;
mod queue;
mod rate_limiter;
mod receive;
mod rejection;
mod replies;
mod reply;
mod reports;
mod response;
mod result_writer;
mod routing;
mod rpc_batch;
mod scratch;
mod shared;
mod sleep;
mod source;
mod source_counts;
mod stream;
mod streams;
mod submitted_frame;
mod telling;
mod timers;
mod trace;
mod under_way;
mod waiting;
mod write_stall;

use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "server")]
pub(crate) use self::actions::references::References;
pub use self::answer::Answer;
pub use self::awaited::{Awaited, Limited};
pub use self::budget::Budget;
pub(crate) use self::budget::Held;
pub(crate) use self::by_source::BySource;
pub use self::call::{Batch, Call, Disposition, IncomingRequest, ReplyTo};
#[cfg(feature = "server")]
pub(crate) use self::callers::{Caller, Callers};
#[cfg(all(feature = "server", feature = "client"))]
pub(crate) use self::carried::observed_there;
pub use self::channel::{Channel, NetworkTransport};
pub use self::config::{Config, OpeningMode};
pub use self::handle::Handle;
pub use self::host::{Host, Stray};
pub use self::implementation::Implementation;
pub use self::interceptor::{Interceptor, Verdict};
pub use self::keys::{CallKey, StreamId};
pub use self::observer::{
    ObservedRequest, ObservedSession, Observer, RequestEnd, RequestObserver, RequestOutcome,
    RequestScope, SessionObserver,
};
pub use self::operation::Operation;
pub use self::options::{ActOptions, PartialFn, PeerInfo, Progress, ProgressFn, RequestOptions};
#[cfg(all(feature = "server", feature = "client"))]
pub(crate) use self::params::{CONTEXT_KEYS, context_members};
pub(crate) use self::peer_error::read_error;
pub use self::polled::{ConnectionEvent, Polled};
#[cfg(feature = "resource-server")]
pub(crate) use self::principal::unix_seconds;
pub use self::principal::{Principal, PrincipalKind};
pub(crate) use self::rate_limiter::RateLimiter;
pub use self::rejection::Rejection;
pub use self::replies::Replies;
pub use self::response::Response;
pub use self::result_writer::ResultWriter;
pub(crate) use self::result_writer::object as answer_object;
pub(crate) use self::rpc_batch::BATCH;
pub use self::shared::Wake;
pub use self::sleep::Sleep;
pub use self::source::RequestSource;
pub use self::trace::{Direction, Trace, redact};
pub(crate) use self::trace::{is_secret, mask_with};
pub use crate::frame::Framing;

use self::core::Core;
use self::queue::{Submission, Submitted};
use self::stream::Stream;
use self::streams::Streams;
use crate::buffer::{Input, Output};
use crate::correlate::RequestKey;
use crate::error::{CarrierError, ConnectionError, RequestError};
use crate::message::Dialect;
#[cfg(all(unix, feature = "http", feature = "sealing"))]
use crate::message::MessageRef;

/// The state of one connection. See the [module](self).
#[derive(Debug)]
pub struct Connection {
    core: Core,
    streams: Streams,
    /// Empty between calls of `handle_submissions`; kept for its capacity.
    submitted: Submitted,
    /// Whether a session of the connection has ended at the peer.
    has_lost_session: bool,
}

impl Connection {
    /// Creates a connection without streams that has exchanged nothing yet. On a client, the first
    /// [`handle_submissions`](Self::handle_submissions) writes the opening request.
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Self {
            core: Core::new(Handle::new(config), now),
            streams: Streams::default(),
            submitted: Submitted::default(),
            has_lost_session: false,
        }
    }

    /// Returns a handle to this connection for other threads.
    pub fn handle(&self) -> Handle {
        self.core.handle.clone()
    }

    /// Sets the callback that wakes the driver when a [`Handle`] has submitted something. Only the
    /// first call counts.
    pub fn set_wake(&self, wake: Arc<dyn Wake>) {
        self.core.shared().set_wake(wake);
    }

    /// Sets who the peer is, as verified by the transport (a token, a certificate, the owner of a
    /// socket). Do not call it on a pipe, where nobody verifies the peer. Only the first call counts.
    pub fn set_principal(&mut self, principal: impl Into<Principal>) {
        let _ = self.core.shared().principal.set(principal.into());
    }

    /// Sets who sends the requests of this connection, which is one within this process. Only the first call counts.
    #[cfg(all(feature = "server", feature = "client"))]
    pub(crate) fn set_callers(&mut self, callers: Arc<dyn Callers>) {
        let _ = self.core.shared().callers.set(callers);
    }

    /// Sets the source that the requests of this connection count against. One source gets at most
    /// three quarters of the requests in flight that the [`Budget`] allows.
    pub fn set_source(&mut self, source: &RequestSource) {
        if self.core.incoming.load.set_source(source) {
            self.core.shared().set_source(source);
        }
    }

    /// Tells how the messages of this connection travel, if an [`Observer`] is told of it. Only the first call counts.
    pub fn set_channel(&mut self, channel: impl FnOnce() -> Channel) {
        if self.is_observed() {
            let _ = self.core.shared().channel.set(Arc::new(channel()));
        }
    }

    /// Tells how the messages of one stream travel, if not as those of the others.
    pub fn set_stream_channel(&mut self, stream: StreamId, channel: impl FnOnce() -> Channel) {
        if self.is_observed() {
            self.streams[stream].exchange.channel = Some(Arc::new(channel()));
        }
    }

    /// Whether somebody [observes](Observer) this connection.
    fn is_observed(&self) -> bool {
        self.core.config.observer.is_some()
    }

    /// Opens a stream.
    pub fn open_stream(&mut self, framing: Framing) -> StreamId {
        let id = self.streams.open(Stream::new(framing, &self.core.config));
        self.core.is_session |= self.streams.are_many();
        id
    }

    /// Declares that the stream carries only action requests, as a transport may know in advance.
    /// `streamed` says whether they are answered in parts (R-ACT-24).
    pub fn expect_actions(&mut self, stream: StreamId, streamed: bool) {
        let dialects = &mut self.streams[stream].exchange.dialects;
        dialects.only = Some(match streamed {
            true => Dialect::ActionStream,
            false => Dialect::Action,
        });
    }

    /// Closes a stream: cancels its requests in flight and discards its unwritten output. Closing the
    /// first stream does nothing: that one stays open as long as the connection.
    pub fn close_stream(&mut self, stream: StreamId, now: Instant, host: &mut dyn Host) {
        if stream == StreamId::FIRST {
            return;
        }
        if let Some(exchange) = self.streams.exchange(stream) {
            self.core.cancel_all(stream, exchange, host);
            self.streams.close(stream);
            self.core.clock = now;
            self.settle(host);
        }
    }

    /// Whether every request that arrived on the stream is answered. `true` if the stream is closed.
    pub fn is_answered(&self, stream: StreamId) -> bool {
        let stream = self.streams.get(stream);
        stream.is_none_or(|stream| stream.exchange.incoming.is_empty())
    }

    /// Takes the streams that handlers have ended early since the last call, each with the time after
    /// which its client may reconnect for the rest (R-SSE-07). Never contains the first stream.
    pub fn take_released(&mut self) -> Vec<(StreamId, Duration)> {
        std::mem::take(&mut self.core.released)
    }

    /// The buffer that the driver reads into.
    ///
    /// # Panics
    /// If the stream is not open on this connection, as with every method that takes one.
    pub fn input(&mut self, stream: StreamId) -> &mut Input {
        &mut self.streams[stream].reading.input
    }

    /// The bytes that the driver has to write.
    pub fn output(&mut self, stream: StreamId) -> &mut Output {
        &mut self.streams[stream].exchange.output
    }

    /// The budget that this connection counts against.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.core.config.budget
    }

    /// Subtracts from the budget the output that the driver has written since the last turn.
    pub(crate) fn recount(&mut self) {
        if !self.is_closed() {
            self.core.count(&self.streams);
        }
    }

    /// Whether the driver may read. `false` while the output is above its hard cap
    /// (`Limits::output_cap_bytes`), after the end of the input and after the connection has ended.
    pub fn wants_read(&self, stream: StreamId) -> bool {
        let stream = &self.streams[stream];
        !stream.reading.ended
            && !self.is_closed()
            && stream.exchange.output.len() <= self.core.config.limits.output_cap_bytes
    }

    /// Processes what was read: answers what the protocol layer answers itself, and passes the rest to
    /// `host`.
    pub fn receive(&mut self, stream: StreamId, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        receive::receive(&mut self.core, &mut self.streams, stream, host);
        self.settle(host);
        if self.core.incoming.load.has_much() {
            self.give_way(stream, host);
        }
    }

    /// Refuses a large message that has not fully arrived if there is no room for the rest of it.
    #[cold]
    fn give_way(&mut self, stream: StreamId, host: &mut dyn Host) {
        let is_short = |this: &Self| {
            let load = &this.core.incoming.load;
            load.has_much() && load.is_short_of_room(this.streams.get(stream))
        };
        if !is_short(self) {
            return;
        }
        self.streams[stream].reading.input.give_back();
        self.settle(host);
        if is_short(self) {
            receive::give_way(&mut self.core, &mut self.streams, stream, host);
            self.settle(host);
        }
    }

    /// Processes the end of the input. A complete last message without its terminator is accepted
    /// (R-STD-03). The connection stays open, so that requests in flight can be answered: the driver
    /// then drains or closes it.
    pub fn receive_end(&mut self, stream: StreamId, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        receive::end(&mut self.core, &mut self.streams, stream, host);
        self.settle(host);
    }

    /// Processes what other threads have submitted since the last call.
    pub fn handle_submissions(&mut self, now: Instant, host: &mut dyn Host) {
        let Self {
            core,
            streams,
            submitted,
            ..
        } = self;
        core.clock = now;
        core.begin(streams, host);
        while core.shared().queue.take(submitted) {
            let mut frames = &submitted.bytes[..];
            for submission in submitted.submissions.drain(..) {
                match submission {
                    Submission::Close => {
                        close(core, streams, ConnectionError::ClosedLocally, host);
                    }
                    Submission::Awaited(call, awaited) => {
                        if let Some(exchange) = streams.exchange(call.reply.key.stream) {
                            let timers = &mut core.timers;
                            core.incoming
                                .awaited(exchange, timers, *call, *awaited, host);
                        }
                    }
                    #[cfg(feature = "server")]
                    Submission::Detached(call) => incoming::detached(*call, host),
                    Submission::Drain(grace) if !core.handle.is_closed() => {
                        core.begin_drain(streams, grace, ConnectionError::ShuttingDown, host);
                    }
                    _ => core.submitted(streams, submission, &mut frames),
                }
            }
        }
        self.settle(host);
    }

    /// Fires the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        if let Some(reason) = self.core.expire(&mut self.streams, host) {
            self.close(reason, host);
        }
        self.settle(host);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next; `None` if no timer is set. May be in
    /// the past: then call it at once.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.is_closed() && self.core.has_room_for_more(&self.streams) {
            return Some(self.core.begun);
        }
        self.core.next_deadline()
    }

    /// Number of requests of the peer that are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.streams
            .iter()
            .map(|(_, stream)| stream.exchange.incoming.len())
            .sum()
    }

    /// Ends the connection: fails every pending request of this side and cancels every request of the
    /// peer. Output that is queued may still be written. Only the first call counts.
    pub fn close(&mut self, reason: ConnectionError, host: &mut dyn Host) {
        close(&mut self.core, &mut self.streams, reason, host);
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.core.handle.is_closed()
    }

    /// Finishes requests in flight, then closes; after `grace` at the latest.
    ///
    /// From now on new requests and those that wait for room are refused: the peer's with
    /// [`ErrorKind::ShuttingDown`](crate::mcp::ErrorKind::ShuttingDown), this side's with `reason`. Pings,
    /// answers, cancellations and notifications continue. The connection closes when no request is in
    /// flight and the driver has written all output. Requests of this side that are pending when the
    /// grace period ends fail with `reason`. A second drain can only shorten the first.
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
        self.core.clock = now;
        self.core
            .begin_drain(&mut self.streams, grace, reason, host);
        self.settle(host);
    }

    /// Whether the connection is draining: see [`drain`](Self::drain).
    pub fn is_draining(&self) -> bool {
        self.core.drain.is_running()
    }

    /// Whether a request of this side still waits for its answer; `id` is its id on the wire.
    pub fn awaits(&self, id: u64) -> bool {
        RequestKey::from_wire(id).is_some_and(|key| self.core.awaits(key))
    }

    /// Whether a message of the peer is about a request in flight: the answer to one of this side, its progress, or the cancellation
    /// of one of the peer.
    #[cfg(all(unix, feature = "http", feature = "sealing"))]
    pub(crate) fn concerns(&self, message: &MessageRef<'_>) -> bool {
        self.core.concerns(&self.streams, message)
    }

    /// Whether the transport is to send that request of this side: it still waits for its answer. One that may only go to a session
    /// which has ended fails instead.
    pub fn may_send(&mut self, id: u64, now: Instant, host: &mut dyn Host) -> bool {
        if self.has_lost_session && host.is_of_ended_session(id) {
            self.lose(id, CarrierError::session_lost().into(), now, host);
        }
        self.awaits(id)
    }

    /// Fails a pending request of this side with `error`; `id` is its id on the wire. Does nothing if
    /// the request is not pending. An open connection continues. While the connection opens, the loss
    /// ends it unless the error allows falling back to an older revision.
    pub fn lose(&mut self, id: u64, error: RequestError, now: Instant, host: &mut dyn Host) {
        let Some(key) = RequestKey::from_wire(id) else {
            return;
        };
        self.core.clock = now;
        if self.core.opening.is_step(key)
            && let Some(first) = self.streams.exchange(StreamId::FIRST)
        {
            let outcome = RequestOutcome::of_failure(&error);
            let outcome = || (outcome, 0);
            self.core
                .opening_ended(first, key, host, outcome, |opening, config| {
                    opening.lost(config, error)
                });
        } else {
            self.core.complete(key, error);
        }
        self.settle(host);
    }

    /// The session of the connection has ended at the peer, and the transport begins another one in its place: requests of the peer are
    /// cancelled, since nobody waits for their answers, and requests of this side that may only go to the ended one fail.
    pub fn session_ended(&mut self, now: Instant, host: &mut dyn Host) {
        self.core.clock = now;
        self.has_lost_session = true;
        for (id, stream) in self.streams.iter_mut() {
            self.core.cancel_all(id, &mut stream.exchange, host);
        }
        for id in host.session_ended() {
            self.lose(id, CarrierError::session_lost().into(), now, host);
        }
        self.settle(host);
    }

    /// Number of [`Handle`]s.
    pub(crate) fn handles(&self) -> usize {
        self.core.handle.count()
    }

    /// Resets a server's connection for another peer, with one stream; the principal stays. Where a peer
    /// sends a single request, as over HTTP in 2026-07-28, creating a connection would cost more than the
    /// request. Returns whether it was reset: not if anything is left of what it has served. The caller
    /// must have checked, with [`handles`](Self::handles), that only the driver and the host hold a
    /// [`Handle`].
    pub(crate) fn reset(&mut self, framing: Framing) -> bool {
        if !self.core.is_blank() || self.streams.are_many() {
            return false;
        }
        let config = &self.core.config;
        let stream = self.streams.get_mut(StreamId::FIRST);
        let is_reset = stream.is_some_and(|stream| stream.reset(framing, config));
        if is_reset {
            self.core.reset();
        }
        is_reset
    }

    /// Ends a turn.
    fn settle(&mut self, host: &mut dyn Host) {
        if self.is_closed() {
            return;
        }
        if self.core.has_batches {
            messages::advance_batches(&mut self.core, &mut self.streams, host);
        }
        if let Some(reason) = self.core.settle(&mut self.streams, host) {
            self.close(reason, host);
        }
    }
}

fn close(core: &mut Core, streams: &mut Streams, reason: ConnectionError, host: &mut dyn Host) {
    if core.handle.is_closed() {
        return;
    }
    for (id, stream) in streams.iter_mut() {
        core.cancel_all(id, &mut stream.exchange, host);
    }
    core.shared().close(reason.clone());
    core.stop_timers();
    core.incoming.load.release();
    core.end_session(&reason);
    host.closed(&reason);
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.core.shared().close(ConnectionError::ClosedLocally);
        self.core.shared().queue.close();
        self.core.incoming.load.release();
        self.core.end_session(&ConnectionError::ClosedLocally);
    }
}
