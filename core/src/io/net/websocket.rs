//! A connection behind WebSocket's frames (RFC 6455), still without I/O.
//!
//! ```text
//!   read    ▶ wire ▶ Reader ▶ messages behind their lengths ▶ connection
//!   written ◀ the connection's own output, which writes a frame for each message; pongs, pings
//!             and the close are appended between them
//! ```
//!
//! One text is one message (R-WSK-01); bytes are refused with 1003, unless the subprotocol is that
//! of actions, where a frame of bytes is a message as one of text is. The connection is the session
//! of the handshake revisions; 2026-07-28 is spoken as on a pipe (R-WSK-08).

use std::time::{Duration, Instant};

use super::drive::Carried;
use crate::buffer::{Input, Output};
use crate::connection::{Connection, Framing, Host};
use crate::error::ConnectionError;
use crate::frame::websocket::{Control, Fault, Opcode, Payload, Reader, append_control, close};
use crate::io::hosted::Owned;
use crate::io::machine::Machine;
use crate::limits::later;

/// Bytes that wait for the peer above which it gets no pong: who floods with pings and reads
/// nothing is owed one, not one each.
const PONG_MARK_BYTES: usize = 64 << 10;

/// A connection and its application behind WebSocket's frames.
pub struct WebSocket<H> {
    inner: Owned<H>,
    /// Whether this side masks: it is the client.
    masks: bool,
    reader: Reader,
    wire: Input,
    /// The newest ping that is not answered yet.
    ping: Option<Payload>,
    heartbeat: Option<Duration>,
    /// When something last came.
    heard: Instant,
    /// When a sign of life was asked for since.
    asked: Option<Instant>,
    /// Bytes that were written in all, the ping included, when nothing but the ping was to be.
    taken: u64,
    /// With what code the end is to be told.
    code: Option<u16>,
    /// The end was told.
    closed: bool,
}

impl<H: Host> WebSocket<H> {
    /// On a connection that has not begun. A peer that is silent for `heartbeat` is pinged, and
    /// for as long again is taken for dead (R-WSK-03).
    pub fn new(
        connection: Connection,
        host: H,
        masks: bool,
        max_message_bytes: usize,
        heartbeat: Option<Duration>,
        now: Instant,
    ) -> Self {
        Self {
            inner: Owned::new(connection, Framing::WebSocket { masked: masks }, host),
            masks,
            reader: Reader::new(!masks, max_message_bytes),
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

    /// Nothing but actions comes, in texts or in bytes (R-WSK-01, R-WSK-06).
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

    /// What is owed after whatever happened: a pong, the close.
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

    fn fail(&mut self, fault: Fault) {
        self.code = Some(fault.code);
        let why = std::io::ErrorKind::InvalidData;
        self.inner.close(ConnectionError::Io(why));
    }

    /// When the next ping is due, or the patience with the last one is over.
    fn beat(&self) -> Option<Instant> {
        let heartbeat = self.heartbeat.filter(|_| !self.inner.is_closed())?;
        Some(later(self.asked.unwrap_or(self.heard), heartbeat))
    }

    fn handle_beat(&mut self, now: Instant) {
        let output = self.inner.output();
        let (taken, idle) = (output.taken(), output.is_empty());
        if !self.inner.wants_read() {
            // How long that may last is the connection's to say.
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
            // Who still takes what was written before the ping is slow, but there.
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

/// R-WSK-07.
fn code_of(reason: Option<&ConnectionError>) -> u16 {
    use ConnectionError::{ClosedByPeer, ClosedLocally, Idle, PeerExited, ShuttingDown};
    match reason {
        Some(ClosedLocally | ClosedByPeer | PeerExited(_)) | None => close::NORMAL,
        Some(ShuttingDown | Idle) => close::GOING_AWAY,
        Some(ConnectionError::Io(_)) => close::INTERNAL,
        Some(_) => close::POLICY,
    }
}

impl<H: Host> Carried for WebSocket<H> {
    fn tidy(&mut self) {
        self.inner.tidy();
        if self.wire.is_empty() {
            self.wire = Input::new();
        }
    }

    fn drained(&mut self) {
        self.settle();
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
        self.inner.receive(now);
        match end {
            None => {}
            Some(Ok(code)) => {
                self.code = code;
                self.inner.close(ConnectionError::ClosedByPeer);
            }
            Some(Err(fault)) => self.fail(fault),
        }
        self.settle();
    }

    fn receive_end(&mut self, _: Instant) {
        // Nobody reads on who has ended without a close.
        self.inner.close(ConnectionError::ClosedByPeer);
        self.settle();
    }

    fn handle_submissions(&mut self, now: Instant) {
        self.inner.handle_submissions(now);
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner.handle_timeout(now);
        if self.beat().is_some_and(|due| due <= now) {
            self.handle_beat(now);
        }
        self.settle();
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
        self.settle();
    }

    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn close(&mut self, why: ConnectionError) {
        self.inner.close(why);
        self.settle();
    }
}
