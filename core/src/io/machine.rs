//! The state machine that an event loop drives.

use std::time::{Duration, Instant};

use crate::buffer::{Input, Output};
use crate::error::ConnectionError;

/// A protocol on one byte stream, without I/O and without a clock.
pub trait Machine {
    /// The buffer for received bytes.
    fn input(&mut self) -> &mut Input;
    /// The bytes that wait to be written.
    fn output(&mut self) -> &mut Output;
    /// Handles bytes that were added to the input.
    fn receive(&mut self, now: Instant);
    /// Handles the end of the peer's stream.
    fn receive_end(&mut self, now: Instant);
    /// Handles what other threads may have submitted.
    fn handle_submissions(&mut self, now: Instant);
    /// Handles the timeout announced by [`poll_timeout`](Self::poll_timeout).
    fn handle_timeout(&mut self, now: Instant);
    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether more input is accepted now; never after the end.
    fn wants_read(&self) -> bool;
    /// Number of unanswered requests of the peer.
    fn in_flight(&self) -> usize;
    /// Begins to end: requests in flight may finish within `grace`, and no new ones begin.
    fn drain(&mut self, now: Instant, grace: Duration, why: ConnectionError);
    /// Whether the protocol has ended.
    fn is_closed(&self) -> bool;
    /// Ends at once and tells all waiters the reason. Only the first reason counts.
    fn close(&mut self, why: ConnectionError);
}

/// A machine for a socket, whose event loop also frees memory and limits how long a message may take.
#[cfg(all(feature = "tokio", any(feature = "server", feature = "client")))]
pub trait SocketMachine: Machine {
    /// Adds output that only the transport needs. Called before output is written, and when all of it
    /// was written.
    fn settle(&mut self) {}
    /// Updates the accounting after output was taken.
    fn recount(&mut self);
    /// Frees empty buffers.
    fn tidy(&mut self);
    /// Number of complete messages received.
    fn completed(&self) -> u64;
    /// Whether a message has arrived in part.
    fn is_partial(&mut self) -> bool;
}
