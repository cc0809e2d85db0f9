//! A connection and its host as one machine.

use std::time::{Duration, Instant};

use super::machine::Machine;
use super::wake::LoopWake;
use crate::buffer::{Input, Output};
use crate::connection::{Connection, Framing, Host, StreamId, Wake};
use crate::error::ConnectionError;

impl Wake for LoopWake {
    fn wake(&self) {
        Self::wake(self);
    }

    fn wake_soon(&self) {
        Self::wake_soon(self);
    }
}

/// A connection with one stream, and the host that it calls.
pub struct Hosted<'a> {
    connection: &'a mut Connection,
    host: &'a mut dyn Host,
    stream: StreamId,
}

impl std::fmt::Debug for Hosted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosted")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl<'a> Hosted<'a> {
    /// Opens the stream.
    pub fn new(connection: &'a mut Connection, framing: Framing, host: &'a mut dyn Host) -> Self {
        let stream = connection.open_stream(framing);
        Self::on(connection, stream, host)
    }

    /// Uses a stream that is open already.
    pub(super) fn on(
        connection: &'a mut Connection,
        stream: StreamId,
        host: &'a mut dyn Host,
    ) -> Self {
        Self {
            connection,
            host,
            stream,
        }
    }
}

impl Machine for Hosted<'_> {
    fn input(&mut self) -> &mut Input {
        self.connection.input(self.stream)
    }

    fn output(&mut self) -> &mut Output {
        self.connection.output(self.stream)
    }

    fn receive(&mut self, now: Instant) {
        self.connection.receive(self.stream, now, self.host);
    }

    fn receive_end(&mut self, now: Instant) {
        self.connection.receive_end(self.stream, now, self.host);
    }

    fn handle_submissions(&mut self, now: Instant) {
        self.connection.handle_submissions(now, self.host);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now, self.host);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn wants_read(&self) -> bool {
        self.connection.wants_read(self.stream)
    }

    fn in_flight(&self) -> usize {
        self.connection.in_flight()
    }

    fn drain(&mut self, now: Instant, grace: Duration, why: ConnectionError) {
        self.connection.drain(now, grace, why, self.host);
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn close(&mut self, why: ConnectionError) {
        self.connection.close(why, self.host);
    }
}

/// Like [`Hosted`], but owns the connection and the host: for tasks.
#[cfg(feature = "net")]
pub(super) struct Owned<H> {
    connection: Connection,
    host: H,
    stream: StreamId,
    /// Number of complete messages received.
    pub(super) completed: u64,
    /// Whether the first byte is still to be checked.
    is_wary: bool,
}

#[cfg(feature = "net")]
impl<H: Host> Owned<H> {
    /// Opens the stream.
    pub fn new(mut connection: Connection, framing: Framing, host: H) -> Self {
        Self {
            stream: connection.open_stream(framing),
            connection,
            host,
            completed: 0,
            is_wary: false,
        }
    }

    /// Closes the connection if its first byte cannot begin a message, since the peer speaks another
    /// protocol. A web page can make a browser send HTTP or TLS to any port, with lines of its own
    /// choice.
    #[cfg(feature = "http")]
    pub fn wary(mut self) -> Self {
        self.is_wary = true;
        self
    }

    /// Accepts only actions.
    #[cfg(feature = "http")]
    pub fn expect_actions(&mut self) {
        self.connection.expect_actions(self.stream, false);
    }

    /// Why the connection has ended, if it has.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.connection.handle().close_reason().cloned()
    }

    fn hosted(&mut self) -> Hosted<'_> {
        Hosted::on(&mut self.connection, self.stream, &mut self.host)
    }
}

#[cfg(feature = "net")]
impl<H: Host> Machine for Owned<H> {
    fn input(&mut self) -> &mut Input {
        self.connection.input(self.stream)
    }

    fn output(&mut self) -> &mut Output {
        self.connection.output(self.stream)
    }

    fn receive(&mut self, now: Instant) {
        let before = self.input().len();
        if self.is_wary
            && let Some(&first) = self.input().filled().first()
        {
            self.is_wary = false;
            if !begins_message(first) {
                return self.close(ConnectionError::Io(std::io::ErrorKind::InvalidData));
            }
        }
        self.hosted().receive(now);
        self.completed += u64::from(self.input().len() < before);
    }

    fn receive_end(&mut self, now: Instant) {
        self.hosted().receive_end(now);
    }

    fn handle_submissions(&mut self, now: Instant) {
        self.hosted().handle_submissions(now);
    }

    fn recount(&mut self) {
        self.connection.recount();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.hosted().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn wants_read(&self) -> bool {
        self.connection.wants_read(self.stream)
    }

    fn in_flight(&self) -> usize {
        self.connection.in_flight()
    }

    fn drain(&mut self, now: Instant, grace: Duration, why: ConnectionError) {
        self.hosted().drain(now, grace, why);
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn close(&mut self, why: ConnectionError) {
        self.hosted().close(why);
    }
}

/// Whether a connection may begin with that byte: that of an object or an array, of white space, or of
/// a length.
#[cfg(feature = "net")]
fn begins_message(first: u8) -> bool {
    matches!(first, b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' | 0)
}
