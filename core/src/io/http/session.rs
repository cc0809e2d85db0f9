//! A session of the handshake era: one connection of the engine with a stream for each request,
//! and a log of what was written on each.
//!
//! ```text
//!   POST ─▶ a stream of its own ─▶ engine ─▶ its log ─▶ the answer of that POST
//!   GET  ───────────────────────────╯   ╰─▶ the first log: what belongs to no request
//! ```
//!
//! What comes in is looked at by the task that brings it; what handlers submit and what time
//! brings is looked at by a task of the session's. A log takes from the engine only what its
//! reader has room for, so that a slow reader meets the engine's limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::events::{Message, messages};
use super::log::{Log, Position};
use super::wait::{Alarm, Bell};
use crate::buffer::Input;
use crate::connection::Principal;
use crate::connection::{Config, Connection, Framing, StreamId, Wake};
use crate::error::ConnectionError;
use crate::handler::Head;
use crate::limits::later;
use crate::mcp::Revision;
use crate::server::{AnyExecutor, Hosting, ServerHost};

/// The log of what belongs to no request.
pub const STANDING: u64 = 0;

pub struct Session {
    id: Arc<str>,
    principal: Option<Principal>,
    bell: Arc<Bell>,
    state: Mutex<State>,
}

struct State {
    connection: Connection,
    host: ServerHost<AnyExecutor>,
    logs: BTreeMap<u64, Log>,
    /// The number of the next log, and of the next reader.
    next: u64,
    replay_bytes: usize,
    /// Bytes in all logs.
    kept: usize,
    /// When a client last had to do with it.
    used: Instant,
    /// When the session's task looks at the time next.
    armed: Option<Instant>,
}

/// What a reader finds.
pub enum Next {
    Message(Message),
    /// More will come, but not on this answer: the client may come back so soon.
    Retry(Duration),
    End,
}

/// One reader of one log.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub stream: u64,
    reader: u64,
}

impl Session {
    pub fn new(
        id: Arc<str>,
        hosting: &dyn Hosting,
        config: &Arc<Config>,
        principal: Option<Principal>,
        replay_bytes: usize,
    ) -> Self {
        let now = Instant::now();
        let mut connection = Connection::new(config.clone(), now);
        let bell = Bell::new();
        connection.set_wake(bell.clone());
        if let Some(principal) = &principal {
            connection.set_principal(principal.clone());
        }
        let first = connection.open_stream(Framing::Line);
        let handle = connection.handle();
        Self {
            id,
            principal,
            bell,
            state: Mutex::new(State {
                host: hosting.host(handle, None),
                connection,
                logs: [(STANDING, Log::of(first))].into(),
                next: STANDING + 1,
                replay_bytes,
                kept: 0,
                used: now,
                armed: None,
            }),
        }
    }

    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether it was begun by whoever that is, whatever is granted to them now (R-SES-07).
    pub fn is_of(&self, principal: Option<&Principal>) -> bool {
        self.principal.as_ref().map(Principal::as_str) == principal.map(Principal::as_str)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The engine's own code does not panic half way; handlers run elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the handshake settled.
    pub fn revision(&self) -> Option<Revision> {
        self.state().connection.handle().revision()
    }

    /// When a client last had to do with it; `None` while one has.
    pub fn idle_since(&self) -> Option<Instant> {
        self.state().idle_since()
    }

    /// A client has to do with it: it is not unused.
    pub fn touch(&self) {
        self.state().used = Instant::now();
    }

    pub fn is_closed(&self) -> bool {
        self.state().connection.is_closed()
    }

    /// Takes one message in; what is said to it is read with what is returned. Nothing when the
    /// session has ended.
    /// `head` is for who wants it; `sender` has what is granted to its principal now.
    pub fn post(
        &self,
        body: Input,
        head: Option<Arc<Head>>,
        sender: Option<&Principal>,
    ) -> Option<Reading> {
        let mut state = self.state();
        if state.connection.is_closed() {
            return None;
        }
        let now = Instant::now();
        state.used = now;
        let State {
            connection, host, ..
        } = &mut *state;
        let stream = connection.open_stream(Framing::Whole);
        if head.is_some() {
            host.carried(stream, head);
        }
        *connection.input(stream) = body;
        host.sent_by(sender.cloned());
        connection.receive_end(stream, now, host);
        host.sent_by(None);
        let reading = state.open(stream);
        state.distribute(now);
        self.rouse(&mut state);
        Some(reading)
    }

    /// Takes one message in whose answers are read with everything else (R-LEG-04). `false` when
    /// the session has ended, or its client does not read what it is told.
    pub fn say(&self, body: &Input, sender: Option<&Principal>) -> bool {
        let mut state = self.state();
        if !state.connection.wants_read(StreamId::FIRST) {
            return false;
        }
        let now = Instant::now();
        state.used = now;
        let State {
            connection, host, ..
        } = &mut *state;
        let input = connection.input(StreamId::FIRST);
        for line in body.filled().split(|byte| matches!(byte, b'\n' | b'\r')) {
            // Between tokens the end of a line is but white space.
            input.extend(line);
            input.extend(b" ");
        }
        input.extend(b"\n");
        host.sent_by(sender.cloned());
        connection.receive(StreamId::FIRST, now, host);
        host.sent_by(None);
        state.distribute(now);
        self.rouse(&mut state);
        true
    }

    /// Reads what belongs to no request, from where the last reader of that was; who still does
    /// is sent away.
    pub fn listen(&self) -> Option<Reading> {
        self.state().read(STANDING, None)
    }

    /// Goes on behind a position, if what follows is still kept (R-SSE-04, R-SSE-05).
    pub fn resume(&self, at: Position) -> Option<Reading> {
        self.state().read(at.stream, Some(at.read))
    }

    /// Whether somebody reads what belongs to no request.
    pub fn is_listened_to(&self) -> bool {
        self.state().logs.get(&STANDING).is_some_and(Log::is_read)
    }

    /// From now on a client may come back to what it reads.
    pub fn keep(&self, reading: Reading) {
        if let Some(log) = self.state().logs.get_mut(&reading.stream) {
            log.resumable = true;
        }
    }

    /// What a reader finds next, and where it is then.
    pub fn poll_read(&self, reading: Reading, cx: &Context<'_>) -> Poll<(Position, Next)> {
        let mut state = self.state();
        let mut next = state.log_of(reading).and_then(Log::next);
        if next.is_none() {
            state.take_from_engine(reading.stream);
            self.rouse(&mut state);
            next = state.log_of(reading).and_then(Log::next);
        }
        let stream = reading.stream;
        if let Some((read, message)) = next {
            return Poll::Ready((Position { stream, read }, Next::Message(message)));
        }
        let Some(log) = state.log_of(reading) else {
            return Poll::Ready((Position { stream, read: 0 }, Next::End));
        };
        let read = log.read();
        let next = match (log.stream, log.released.take()) {
            (None, _) => Next::End,
            (_, Some(retry)) => {
                // What comes from now on is for who comes back.
                log.resumable = true;
                log.leave();
                Next::Retry(retry)
            }
            _ => {
                log.watch(cx.waker());
                return Poll::Pending;
            }
        };
        Poll::Ready((Position { stream, read }, next))
    }

    /// Whether a reader has read everything there will ever be.
    pub fn is_at_end(&self, reading: Reading) -> bool {
        let mut state = self.state();
        state.log_of(reading).is_none_or(|log| log.is_at_end())
    }

    /// A reader has left.
    pub fn leave(&self, reading: Reading) {
        let mut state = self.state();
        if let Some(log) = state.log_of(reading) {
            log.leave();
            let now = Instant::now();
            state.used = now;
            state.turn(now);
            self.rouse(&mut state);
        }
    }

    /// The session's task is to look at the time again, if it would be late.
    fn rouse(&self, state: &mut State) {
        let due = state.connection.poll_timeout();
        if due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            state.armed = due;
            self.bell.wake();
        }
    }

    /// Looks after what handlers submit and what time brings, until the session has ended, which
    /// it does after being idle for `ttl`.
    pub fn poll(&self, alarm: &mut Alarm, ttl: Duration, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            let due = {
                let mut state = self.state();
                state.turn(now);
                let forgotten = later(state.idle_since().unwrap_or(now), ttl);
                if forgotten <= now {
                    state.close(ConnectionError::Idle);
                }
                if state.connection.is_closed() {
                    return Poll::Ready(());
                }
                let due = state.connection.poll_timeout();
                state.armed = Some(due.map_or(forgotten, |due| due.min(forgotten)));
                state.armed
            };
            let alarmed = alarm.poll(due, cx);
            if !self.bell.watch(cx) && !alarmed {
                return Poll::Pending;
            }
        }
    }

    /// Ends it in good order within `grace`.
    pub fn drain(&self, grace: Duration) {
        let mut state = self.state();
        let now = Instant::now();
        let State {
            connection, host, ..
        } = &mut *state;
        connection.drain(now, grace, ConnectionError::ShuttingDown, host);
        state.turn(now);
        drop(state);
        self.bell.wake();
    }

    /// Ends it at once.
    pub fn close(&self, reason: ConnectionError) {
        self.state().close(reason);
        self.bell.wake();
    }
}

impl State {
    fn idle_since(&self) -> Option<Instant> {
        let busy = self.connection.in_flight() > 0 || self.logs.values().any(Log::is_read);
        (!busy).then_some(self.used)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// A log for that stream, and its reader.
    fn open(&mut self, stream: StreamId) -> Reading {
        let (number, reader) = (self.number(), self.number());
        let mut log = Log::of(stream);
        log.begin(reader, None);
        self.logs.insert(number, log);
        let stream = number;
        Reading { stream, reader }
    }

    fn read(&mut self, stream: u64, behind: Option<u64>) -> Option<Reading> {
        let reader = self.number();
        self.used = Instant::now();
        let log = self.logs.get_mut(&stream)?;
        log.begin(reader, behind)
            .then_some(Reading { stream, reader })
    }

    fn log_of(&mut self, Reading { stream, reader }: Reading) -> Option<&mut Log> {
        let log = self.logs.get_mut(&stream);
        log.filter(|log| log.is_read_by(reader))
    }

    fn turn(&mut self, now: Instant) {
        let Self {
            connection, host, ..
        } = self;
        connection.handle_submissions(now, host);
        if connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now, host);
        }
        self.distribute(now);
    }

    fn close(&mut self, reason: ConnectionError) {
        self.connection.close(reason, &mut self.host);
        self.distribute(Instant::now());
    }

    /// Hands what was written to the logs that have room, and ends those whose request is
    /// answered.
    fn distribute(&mut self, now: Instant) {
        let Self {
            connection,
            host,
            logs,
            kept,
            ..
        } = self;
        let closed = connection.is_closed();
        let released = connection.take_released();
        for log in logs.values_mut() {
            let Some(stream) = log.stream else { continue };
            let over = closed || stream != StreamId::FIRST && connection.is_answered(stream);
            let moved = (over || log.has_room()) && fill(log, connection, stream, kept);
            if over {
                log.stream = None;
                connection.close_stream(stream, now, host);
                host.carried(stream, None);
            }
            let released = released.iter().find(|(id, _)| *id == stream);
            if let Some((_, retry)) = released.filter(|_| !over) {
                log.released = Some(*retry);
            }
            if moved || over || released.is_some() {
                log.wake();
            }
        }
        self.forget();
    }

    /// The reader of that log has read everything: it may have what came meanwhile.
    fn take_from_engine(&mut self, number: u64) {
        let log = self.logs.get_mut(&number);
        let Some((log, stream)) = log.and_then(|log| log.stream.map(|stream| (log, stream))) else {
            return;
        };
        if fill(log, &mut self.connection, stream, &mut self.kept) {
            let now = Instant::now();
            if self.connection.poll_timeout().is_some_and(|due| due <= now) {
                // There is room again for what waited.
                self.turn(now);
            }
        }
    }

    /// Keeps within its bound what was read, and then what nobody reads (R-SSE-10). Beyond it
    /// there is room made for more than one message.
    fn forget(&mut self) {
        self.logs.retain(|_, log| {
            let over = log.is_over();
            if over {
                self.kept -= log.bytes();
            }
            !over
        });
        if self.kept <= self.replay_bytes {
            return;
        }
        let enough = self.replay_bytes / 8 * 7;
        for unread in [false, true] {
            for log in self.logs.values_mut() {
                while self.kept > enough
                    && let Some(len) = log.forget(unread)
                {
                    self.kept -= len;
                }
            }
        }
    }
}

/// Moves what was written on a stream to its log. Whether there was anything.
fn fill(log: &mut Log, connection: &mut Connection, stream: StreamId, kept: &mut usize) -> bool {
    let output = connection.output(stream);
    if output.is_empty() {
        return false;
    }
    *kept -= log.bytes();
    messages(output.take())
        .into_iter()
        .for_each(|message| log.push(message));
    *kept += log.bytes();
    true
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close(ConnectionError::ClosedByPeer);
    }
}
