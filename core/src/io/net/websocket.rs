//! A connection on WebSocket frames (RFC 6455), without I/O.
//!
//! ```text
//!   read    ▶ wire ▶ WebSocketReader ▶ messages behind their lengths ▶ connection
//!   written ◀ the connection's output, one frame for each message; pongs, pings and the close frame
//!             are appended between them
//! ```
//!
//! One text frame is one message (R-WSK-01). Binary messages are refused with 1003, except with the
//! subprotocol of actions, where both kinds are accepted. In the handshake revisions, the WebSocket
//! connection is the session; 2026-07-28 is spoken as on a pipe (R-WSK-08).

use std::time::{Duration, Instant};

use crate::buffer::{Input, Output};
use crate::connection::{Connection, Framing, Held, Host};
use crate::error::ConnectionError;
use crate::frame::websocket::{
    Control, Opcode, Payload, WebSocketError, WebSocketReader, append_control, close,
};
use crate::io::hosted::Hosted;
use crate::io::machine::{Machine, SocketMachine};
use crate::limits::later;

/// Bytes waiting for the peer above which pongs are deferred: a peer that floods with pings and reads
/// nothing gets one pong, not one for each ping.
const PONG_MARK_BYTES: usize = 64 << 10;

/// A connection and its application on WebSocket frames.
pub struct WebSocket<H> {
    inner: Hosted<H>,
    /// Whether this side masks its frames, as clients do.
    masks: bool,
    reader: WebSocketReader,
    wire: Input,
    /// Accounts for received bytes that are not a complete message yet.
    held: Held,
    /// The newest unanswered ping.
    ping: Option<Payload>,
    heartbeat: Option<Duration>,
    /// When data last arrived.
    heard: Instant,
    /// When a ping was sent since then.
    asked: Option<Instant>,
    /// Bytes of output that the socket had taken when the ping was queued, or when last checked. If
    /// only the ping was queued, its own bytes are included.
    taken: u64,
    /// The code of the close frame.
    code: Option<u16>,
    /// The close frame is queued.
    closed: bool,
}

impl<H: Host> WebSocket<H> {
    /// Wraps a connection that has not begun. A peer that is silent for `heartbeat` is pinged, and
    /// after the same time without a sign of life is considered dead (R-WSK-03).
    pub fn new(
        connection: Connection,
        host: H,
        masks: bool,
        max_message_bytes: usize,
        heartbeat: Option<Duration>,
        now: Instant,
    ) -> Self {
        Self {
            held: Held::of(&connection.handle().config().budget),
            inner: Hosted::new(connection, Framing::WebSocket { masked: masks }, host),
            masks,
            reader: WebSocketReader::new(!masks, max_message_bytes),
            wire: Input::new(),
            ping: None,
            heartbeat,
            heard: now,
            asked: None,
            taken: 0,
            code: None,
            closed: false,
        }
    }

    /// Accepts only actions, in text or binary frames (R-WSK-01, R-WSK-06).
    #[cfg(feature = "http")]
    pub fn of_actions(mut self) -> Self {
        self.inner.expect_actions();
        self.reader = self.reader.with_binary();
        self
    }

    fn control(&mut self, opcode: Opcode, payload: &[u8]) {
        let masks = self.masks;
        let output = self.inner.output();
        output.append_with(|out| append_control(out, opcode, payload, masks));
    }

    fn fail(&mut self, fault: WebSocketError) {
        self.code = Some(fault.code);
        self.reader.forget();
        self.held.carry(0);
        let why = std::io::ErrorKind::InvalidData;
        self.inner.close(ConnectionError::Io(why));
    }

    /// Accounts for received bytes that are not a complete message yet.
    ///
    /// # Errors
    /// When the budget has no room for them.
    fn count(&mut self) -> Result<(), WebSocketError> {
        let held = self.wire.held() + self.reader.held();
        match held == self.held.bytes() || self.held.try_carry(held) {
            true => Ok(()),
            false => Err(WebSocketError {
                code: close::TRY_AGAIN,
                why: "there is no room for a message of this length now",
            }),
        }
    }

    /// When the next ping is due, or the wait for an answer to the last ping is over.
    fn beat(&self) -> Option<Instant> {
        let heartbeat = self.heartbeat.filter(|_| !self.inner.is_closed())?;
        Some(later(self.asked.unwrap_or(self.heard), heartbeat))
    }

    fn handle_beat(&mut self, now: Instant) {
        let output = self.inner.output();
        let (taken, idle) = (output.taken(), output.is_empty());
        if !self.inner.wants_read() {
            // The connection itself limits how long it stops reading.
            self.note(now);
        } else if self.asked.is_none() {
            self.asked = Some(now);
            self.control(Opcode::Ping, &[]);
            let ping = if idle {
                self.inner.output().len() as u64
            } else {
                0
            };
            self.taken = taken + ping;
        } else if taken != self.taken {
            // A peer that still reads older output is slow, but alive.
            self.asked = Some(now);
            self.taken = taken;
        } else {
            self.inner.close(ConnectionError::Unresponsive);
        }
    }

    fn note(&mut self, now: Instant) {
        self.heard = now;
        self.asked = None;
    }
}

/// The close code for a reason (R-WSK-07).
fn code_of(reason: Option<&ConnectionError>) -> u16 {
    use ConnectionError::{ClosedByPeer, ClosedLocally, Idle, PeerExited, ShuttingDown};
    match reason {
        Some(ClosedLocally | ClosedByPeer | PeerExited(_)) | None => close::NORMAL,
        Some(ShuttingDown | Idle) => close::GOING_AWAY,
        Some(ConnectionError::Io(_)) => close::INTERNAL,
        Some(_) => close::POLICY,
    }
}

impl<H: Host> SocketMachine for WebSocket<H> {
    /// Queues the frames that are due: a pong, or the close frame.
    fn settle(&mut self) {
        if self.closed {
            return;
        }
        if self.inner.is_closed() {
            self.closed = true;
            let reason = self.inner.close_reason();
            let code = self.code.unwrap_or_else(|| code_of(reason.as_ref()));
            return self.control(Opcode::Close, &code.to_be_bytes());
        }
        if self.inner.output().len() <= PONG_MARK_BYTES
            && let Some(ping) = self.ping.take()
        {
            self.control(Opcode::Pong, ping.as_bytes());
        }
    }

    fn recount(&mut self) {
        self.inner.recount();
    }

    fn tidy(&mut self) {
        self.inner.tidy();
        if self.wire.is_empty() {
            self.wire = Input::new();
        }
        // Cannot fail: less is held than before.
        let _ = self.count();
    }

    fn completed(&self) -> u64 {
        self.inner.completed()
    }

    fn is_partial(&mut self) -> bool {
        !self.wire.is_empty() || self.reader.is_partial() || self.inner.is_partial()
    }
}

impl<H: Host> Machine for WebSocket<H> {
    fn input(&mut self) -> &mut Input {
        &mut self.wire
    }

    fn output(&mut self) -> &mut Output {
        self.inner.output()
    }

    fn receive(&mut self, now: Instant) {
        self.note(now);
        let mut end = None;
        while end.is_none() {
            match self.reader.read(&mut self.wire, self.inner.input()) {
                Ok(None) => break,
                Ok(Some(Control::Ping(payload))) => self.ping = Some(payload),
                Ok(Some(Control::Pong)) => {}
                Ok(Some(Control::Close(code))) => end = Some(Ok(code)),
                Err(fault) => end = Some(Err(fault)),
            }
        }
        if let Err(fault) = self.count() {
            end.get_or_insert(Err(fault));
        }
        self.inner.receive(now);
        match end {
            None => {}
            Some(Ok(code)) => {
                self.code = code;
                self.inner.close(ConnectionError::ClosedByPeer);
            }
            Some(Err(fault)) => self.fail(fault),
        }
    }

    fn receive_end(&mut self, _: Instant) {
        // A peer that ends without a close frame does not read any more.
        self.inner.close(ConnectionError::ClosedByPeer);
    }

    fn handle_submissions(&mut self, now: Instant) {
        self.inner.handle_submissions(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
        if self.beat().is_some_and(|due| due <= now) {
            self.handle_beat(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.inner.poll_timeout(), self.beat()]
            .into_iter()
            .flatten()
            .min()
    }

    fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn drain(&mut self, now: Instant, grace: Duration, why: ConnectionError) {
        self.inner.drain(now, grace, why);
    }

    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn close(&mut self, why: ConnectionError) {
        self.inner.close(why);
    }
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::{Workers, WorkersConfig};
    use crate::server::Server;

    #[test]
    fn a_peer_that_reads_nothing_is_owed_few_pongs() {
        let server = Server::builder("test", "1").build().unwrap();
        let hosting = server.hosting(Arc::new(Workers::new(WorkersConfig::default())));
        let now = Instant::now();
        let connection = Connection::new(hosting.config().clone(), now);
        let host = hosting.host(connection.handle(), None);
        let mut socket = WebSocket::new(connection, host, false, 1 << 20, None, now);
        let mut ping = Vec::new();
        append_control(&mut ping, Opcode::Ping, &[b'p'; 125], true);
        for _ in 0..10 * PONG_MARK_BYTES / ping.len() {
            socket.input().extend(&ping);
            socket.receive(now);
            socket.settle();
        }
        let owed = socket.output().len();
        let most = PONG_MARK_BYTES + ping.len();
        assert!((PONG_MARK_BYTES..=most).contains(&owed), "{owed}");
        // The newest ping is answered once there is room.
        socket.output().advance(owed);
        socket.settle();
        assert!((1..=ping.len()).contains(&socket.output().len()));
    }
}
