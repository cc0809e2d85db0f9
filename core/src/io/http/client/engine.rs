//! The connection of a client on HTTP, and the functions that feed it.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;

use super::exchange::{MessageSink, joined};
use crate::buffer::Input;
use crate::client::ClientHost;
use crate::connection::{Connection, Handle, Host, StreamId};
use crate::error::{CarrierError, ConnectionError, RequestError};

/// The connection and its application. Everything that uses the engine runs in one task, so its lock is
/// never contended.
pub struct Engine {
    state: Mutex<State>,
    handle: Handle,
    /// Signals that there is room again for output.
    room: Notify,
}

struct State {
    connection: Connection,
    host: ClientHost,
}

impl Engine {
    /// Wraps a connection with one open stream.
    pub fn new(connection: Connection, host: ClientHost) -> Self {
        Self {
            handle: connection.handle(),
            state: Mutex::new(State { connection, host }),
            room: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Handles submissions and expired timers.
    pub fn turn(&self, now: Instant) {
        let State { connection, host } = &mut *self.state();
        connection.handle_submissions(now, host);
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now, host);
        }
    }

    /// When the next timer expires.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.state().connection.poll_timeout()
    }

    /// Whether there is output to send.
    pub fn has_output(&self) -> bool {
        !self.state().connection.output(StreamId::FIRST).is_empty()
    }

    /// Takes the output: one message per line.
    pub fn take_output(&self) -> impl Iterator<Item = Bytes> + use<> {
        let taken = self.state().connection.output(StreamId::FIRST).take();
        self.room.notify_waiters();
        taken
    }

    /// Delivers one message of the server. Waits while the connection's output is too full to accept
    /// more input.
    /// `within` is the id of the request on whose stream it came, if it came on one.
    pub async fn deliver(&self, within: Option<u64>, pieces: &[&[u8]]) {
        loop {
            let room = self.room.notified();
            if self.try_deliver(within, pieces) {
                return;
            }
            room.await;
        }
    }

    /// Delivers the message if possible. Returns whether it was accepted, or the connection is closed.
    fn try_deliver(&self, within: Option<u64>, pieces: &[&[u8]]) -> bool {
        let State { connection, host } = &mut *self.state();
        if connection.is_closed() {
            return true;
        }
        if !connection.wants_read(StreamId::FIRST) {
            return false;
        }
        let input = connection.input(StreamId::FIRST);
        if input.is_empty() {
            let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
            *input = Input::with_room(bytes + 1);
        }
        for piece in pieces {
            input.extend(&one_line(piece));
        }
        input.extend(b"\n");
        host.arrives_within(within);
        connection.receive(StreamId::FIRST, Instant::now(), host);
        // A message is delivered whole, so an idle client needs no buffer.
        let input = connection.input(StreamId::FIRST);
        if input.is_empty() {
            *input = Input::new();
        }
        true
    }

    /// Whether a request still waits for its answer.
    pub fn awaits(&self, id: u64) -> bool {
        self.state().connection.awaits(id)
    }

    /// Whether a request is to be sent, which fails if it may only go to a session that has ended.
    pub fn may_send(&self, id: u64) -> bool {
        let State { connection, host } = &mut *self.state();
        connection.may_send(id, Instant::now(), host)
    }

    /// Fails a request with `error`.
    pub fn lose(&self, id: u64, error: impl Into<RequestError>) {
        let State { connection, host } = &mut *self.state();
        connection.lose(id, error.into(), Instant::now(), host);
    }

    /// The session has ended, and another one is begun in its place.
    pub fn session_ended(&self) {
        let State { connection, host } = &mut *self.state();
        connection.session_ended(Instant::now(), host);
    }

    pub fn close(&self, reason: ConnectionError) {
        let State { connection, host } = &mut *self.state();
        connection.close(reason, host);
    }

    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }
}

/// Writes a message anew, as the answer to the request of this id.
pub type Complete = fn(&[u8], u64) -> Vec<u8>;

/// Passes messages to the connection.
pub struct ToConnection<'a> {
    pub engine: &'a Engine,
    /// The request that is to be answered; `None` on a stream of no request.
    pub id: Option<u64>,
    /// Completes a message that answers the request of that id.
    pub complete: Option<Complete>,
}

impl MessageSink for ToConnection<'_> {
    async fn deliver(&mut self, message: &[&[u8]]) -> Result<(), CarrierError> {
        match (self.complete, self.id) {
            (Some(complete), Some(id)) => {
                let message = complete(&joined(message), id);
                self.engine.deliver(Some(id), &[&message]).await;
            }
            _ => self.engine.deliver(self.id, message).await,
        }
        Ok(())
    }

    fn is_answered(&self) -> bool {
        self.id.is_some_and(|id| !self.engine.awaits(id))
    }
}

/// Turns a message into one line. Outside of strings, a tab is equivalent to a line end; inside of
/// strings both are invalid.
fn one_line(message: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'\n', b'\r', message).is_none() {
        return Cow::Borrowed(message);
    }
    let tabs = message.iter().map(|byte| match byte {
        b'\n' | b'\r' => b'\t',
        other => *other,
    });
    Cow::Owned(tabs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_becomes_one() {
        let message = b"{\r\n \"a\": 1\n}\n";
        assert_eq!(*one_line(message), *b"{\t\t \"a\": 1\t}\t");
    }
}
