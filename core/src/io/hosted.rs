//! A connection and its host as one machine.

use std::time::{Duration, Instant};

use super::machine::Machine;
#[cfg(all(feature = "tokio", any(feature = "server", feature = "client")))]
use super::machine::SocketMachine;
use crate::buffer::{Input, Output};
use crate::connection::{Connection, Framing, Host, StreamId};
use crate::error::ConnectionError;

/// A connection with one stream, and the host that it calls.
pub struct Hosted<H> {
    connection: Connection,
    host: H,
    stream: StreamId,
    /// Number of complete messages received.
    completed: u64,
    /// Whether the first byte is still to be checked.
    checks_first: bool,
}

impl<H> std::fmt::Debug for Hosted<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosted")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl<H: Host> Hosted<H> {
    /// Opens the stream.
    pub fn new(mut connection: Connection, framing: Framing, host: H) -> Self {
        Self {
            stream: connection.open_stream(framing),
            connection,
            host,
            completed: 0,
            checks_first: false,
        }
    }

    /// Closes the connection if its first byte cannot begin a message, since the peer speaks another
    /// protocol. A web page can make a browser send HTTP or TLS to any port, with lines of its own
    /// choice.
    #[cfg(all(feature = "server", feature = "tokio"))]
    pub(super) fn checking_the_first_byte(mut self) -> Self {
        self.checks_first = true;
        self
    }

    /// Accepts only actions.
    #[cfg(feature = "http")]
    pub(super) fn expect_actions(&mut self) {
        self.connection.expect_actions(self.stream, false);
    }

    /// Why the connection has ended, if it has.
    #[cfg(feature = "net")]
    pub(super) fn close_reason(&self) -> Option<ConnectionError> {
        self.connection.handle().close_reason().cloned()
    }
}

impl<H: Host> Machine for Hosted<H> {
    fn input(&mut self) -> &mut Input {
        self.connection.input(self.stream)
    }

    fn output(&mut self) -> &mut Output {
        self.connection.output(self.stream)
    }

    fn receive(&mut self, now: Instant) {
        let input = self.connection.input(self.stream);
        let before = input.len();
        if self.checks_first
            && let Some(&first) = input.filled().first()
        {
            self.checks_first = false;
            if !begins_message(first) {
                return self.close(ConnectionError::Io(std::io::ErrorKind::InvalidData));
            }
        }
        self.connection.receive(self.stream, now, &mut self.host);
        self.completed += u64::from(self.input().len() < before);
    }

    fn receive_end(&mut self, now: Instant) {
        self.connection
            .receive_end(self.stream, now, &mut self.host);
    }

    fn handle_submissions(&mut self, now: Instant) {
        self.connection.handle_submissions(now, &mut self.host);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now, &mut self.host);
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
        self.connection.drain(now, grace, why, &mut self.host);
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn close(&mut self, why: ConnectionError) {
        self.connection.close(why, &mut self.host);
    }
}

#[cfg(all(feature = "tokio", any(feature = "server", feature = "client")))]
impl<H: Host> SocketMachine for Hosted<H> {
    fn recount(&mut self) {
        self.connection.recount();
    }

    fn tidy(&mut self) {
        let input = self.input();
        if input.is_empty() {
            *input = Input::new();
        }
    }

    fn completed(&self) -> u64 {
        self.completed
    }

    fn is_partial(&mut self) -> bool {
        !self.input().is_empty()
    }
}

/// Whether a connection may begin with that byte: that of an object or an array, of white space, or of
/// a length.
fn begins_message(first: u8) -> bool {
    matches!(first, b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' | 0)
}
