//! What a loop drives: a state machine with one stream.

use std::time::{Duration, Instant};

use crate::buffer::{Input, Output};
use crate::error::ConnectionError;

/// A protocol on one byte stream, without I/O and without a clock.
pub trait Machine {
    /// Where the bytes that arrive are put.
    fn input(&mut self) -> &mut Input;
    /// The bytes that wait to be written.
    fn output(&mut self) -> &mut Output;
    /// Bytes were added to the input.
    fn receive(&mut self, now: Instant);
    /// The peer sends nothing more.
    fn receive_end(&mut self, now: Instant);
    /// Other threads may have submitted something.
    fn handle_submissions(&mut self, now: Instant);
    /// The instant of [`poll_timeout`](Self::poll_timeout) has come.
    fn handle_timeout(&mut self, now: Instant);
    /// When time alone changes something next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether more input is welcome now; never once it is closed.
    fn wants_read(&self) -> bool;
    /// Requests of the peer that are not answered yet.
    fn in_flight(&self) -> usize;
    /// The end is near: what is in flight is finished, for at most `grace`, nothing new begins.
    fn drain(&mut self, now: Instant, grace: Duration, why: ConnectionError);
    /// Whether the protocol has ended on its own account.
    fn is_closed(&self) -> bool;
    /// It is over: whoever waits learns why. A second reason changes nothing.
    fn close(&mut self, why: ConnectionError);
}
