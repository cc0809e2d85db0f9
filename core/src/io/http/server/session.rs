//! A session of the handshake era: one connection of the engine with a stream for each request,
//! and a log of what was written on each.
//!
//! ```text
//!   POST ─▶ a stream of its own ─▶ engine ─▶ its log ─▶ the answer of that POST
//!   GET  ───────────────────────────╯   ╰─▶ the first log: what belongs to no request
//! ```
//!
//! Incoming messages are handled in the task of their request. Submissions of handlers and timers are
//! handled in a task that each session has. A log takes from the engine only as much as its reader has
//! room for, so a slow reader is subject to the engine's limits.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::gate::Admitted;
use super::message_log::MessageLog;
use super::post_answer::PostAnswer;
use super::session_bell::SessionBell;
use super::session_logs::{LogReader, SESSION_LOG, SessionLogs};
#[cfg(feature = "sealing")]
use super::session_wishes::Noted;
#[cfg(feature = "sealing")]
use super::shared_sessions::digest;
use super::sse::StreamPosition;
use crate::buffer::Input;
#[cfg(feature = "sealing")]
use crate::connection::Handle;
use crate::connection::{Config, Connection, Framing, Held, Principal, RequestSource, StreamId};
use crate::error::ConnectionError;
use crate::handler::Head;
use crate::io::http::message_bytes::{MessageBytes, messages};
use crate::io::shares::Stage;
use crate::io::wait::Alarm;
use crate::limits::later;
use crate::mcp::Revision;
use crate::server::{Hosting, ServerHost};

/// How many streams of a session have numbers of their own in one process.
#[cfg(feature = "sealing")]
const STREAMS: u64 = 1 << 20;

pub struct HttpSession {
    id: Arc<str>,
    principal: Option<Principal>,
    bell: Arc<SessionBell>,
    /// What is added to the numbers of streams in the ids of events. If other processes may have begun the same session,
    /// it tells their events from those of this one.
    base: u64,
    /// How many messages the client has sent, counted up to 3: determines the stage.
    came: AtomicU8,
    /// When the handshake must be finished.
    due: Instant,
    /// What the store has of the session. Held while it is told.
    #[cfg(feature = "sealing")]
    pub noted: tokio::sync::Mutex<Noted>,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) connection: Connection,
    host: ServerHost,
    logs: SessionLogs,
    /// When a client last used the session.
    used: Instant,
    /// When the session's task next checks the timers.
    armed: Option<Instant>,
}

/// The next thing that a reader finds.
pub enum LogEvent {
    Message(MessageBytes),
    /// More messages will come, but not on this response; the client may reconnect after this time.
    Retry(Duration),
    End,
}

impl HttpSession {
    pub fn new(
        id: Arc<str>,
        hosting: &dyn Hosting,
        config: &Arc<Config>,
        (principal, source): (Option<Principal>, RequestSource),
        replay_bytes: usize,
    ) -> Self {
        let now = Instant::now();
        let mut connection = Connection::new(config.clone(), now);
        let bell = SessionBell::new();
        connection.set_wake(bell.clone());
        if let Some(principal) = &principal {
            connection.set_principal(principal.clone());
        }
        let first = connection.open_stream(Framing::Line);
        let mut host = hosting.host(connection.handle(), None);
        connection.set_source(&source);
        host.sent_from(source);
        host.listened(false);
        let (held, owed_bytes) = (Held::of(&config.budget), config.limits.output_cap_bytes);
        Self {
            id,
            principal,
            bell,
            base: 0,
            came: AtomicU8::new(0),
            due: later(now, config.limits.handshake_timeout),
            #[cfg(feature = "sealing")]
            noted: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                host,
                connection,
                logs: SessionLogs::new(first, replay_bytes, owed_bytes, held),
                used: now,
                armed: None,
            }),
        }
    }

    /// Has ids of events and of requests to the client differ from those of this session at other processes: what a client
    /// sends to the wrong process, as the answer to a question, is then known to be of another one.
    /// With `timers`, what the session has begun goes on, timed by them, when it has ended in this process: others know the session.
    #[cfg(feature = "sealing")]
    pub fn share(&mut self, timers: Option<&Handle>) {
        let (mut events, mut requests) = ([0; 4], [0; 4]);
        // Without randomness, a client that resumes at another process may miss events.
        let _ = getrandom::fill(&mut events);
        let _ = getrandom::fill(&mut requests);
        self.base = (u64::from(u32::from_be_bytes(events)) + 1) * STREAMS;
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let handle = state.connection.handle();
        handle.number_apart(u32::from_be_bytes(requests));
        if let Some(timers) = timers {
            handle.set_timers(timers);
            handle.set_shared_session(&digest(&self.id));
        }
    }

    /// The position after `read` messages of a stream.
    pub fn position(&self, stream: u64, read: u64) -> StreamPosition {
        let stream = self.base + stream;
        StreamPosition { stream, read }
    }

    /// Whether a position is one of a standing stream, of whichever process.
    #[cfg(feature = "sealing")]
    pub fn is_standing(at: StreamPosition) -> bool {
        at.stream % STREAMS == SESSION_LOG
    }

    /// The stream of a position, if it is one of this process.
    pub fn stream_of(&self, at: StreamPosition) -> Option<u64> {
        at.stream.checked_sub(self.base)
    }

    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether the session was begun by this principal; its current grants do not matter (R-SES-07).
    pub fn is_of(&self, principal: Option<&Principal>) -> bool {
        self.principal.as_ref() == principal
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // Poisoning is ignored: the engine's own code does not panic halfway, and handlers run
        // elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that the handshake settled.
    pub fn revision(&self) -> Option<Revision> {
        self.state().connection.handle().revision()
    }

    /// The stage of the client: its first message begins the handshake, the second finishes it.
    pub fn stage(&self) -> Stage {
        match self.came.load(Relaxed) {
            0 => Stage::Silent,
            1 => Stage::Unfinished,
            2 => Stage::Unused,
            _ => Stage::Used,
        }
    }

    /// Counts a message. Returns whether the client has reached a further stage.
    pub fn advance(&self) -> bool {
        let further = |came| (came < 3).then_some(came + 1);
        self.came.fetch_update(Relaxed, Relaxed, further).is_ok()
    }

    /// When a client last used the session; `None` while requests are in flight or a stream is being
    /// read. Before the handshake is finished, reading alone does not count as use.
    pub fn idle_since(&self) -> Option<Instant> {
        self.state().idle_since(self.stage())
    }

    /// Whether no request begins any more.
    #[cfg(feature = "sealing")]
    pub fn is_draining(&self) -> bool {
        self.state().connection.is_draining()
    }

    pub fn is_closed(&self) -> bool {
        self.state().connection.is_closed()
    }

    /// Takes one message in and returns the reader of its answer; `None` when the session has ended. `head`
    /// is set if the host asked for heads; `request` is what carries the message, with the current grants of the session's principal;
    /// `is_repeated` says that it did the same at another process, so that it counts against no rate.
    /// The task of `cx` is to call [`poll_answer`](Self::poll_answer).
    pub fn post(
        &self,
        (body, head): (Input, Option<Arc<Head>>),
        request: &Admitted<'_>,
        is_repeated: bool,
        cx: &Context<'_>,
    ) -> Option<LogReader> {
        let mut state = self.state();
        if state.connection.is_closed() {
            return None;
        }
        let now = Instant::now();
        state.used = now;
        let reader = state.logs.number();
        let is_rung = self.bell.lead(reader, cx);
        let State {
            connection, host, ..
        } = &mut *state;
        let stream = connection.open_stream(Framing::Whole);
        connection.set_stream_channel(stream, || request.channel(Some(&self.id)));
        if head.is_some() {
            host.carried(stream, head);
        }
        *connection.input(stream) = body;
        host.sent_by(request.principal().cloned());
        host.sent_again(is_repeated);
        connection.receive_end(stream, now, host);
        host.sent_by(None);
        host.sent_again(false);
        if is_rung {
            connection.handle_submissions(now, host);
        }
        let reader = state.logs.open(stream, reader);
        state.distribute(now);
        self.rouse(&mut state);
        Some(reader)
    }

    /// Waits for the answer to a POST. While it waits, this task handles what handlers submit. An answer
    /// that is the only message is taken, and its log is forgotten; other messages are left to
    /// [`poll_read`](Self::poll_read).
    pub fn poll_answer(&self, reader: LogReader, cx: &Context<'_>) -> Poll<PostAnswer> {
        let mut state = self.state();
        if self.bell.lead(reader.number, cx) {
            if let Some(log) = state.logs.of(reader) {
                // This task is awake.
                log.unwatch();
            }
            self.turn(&mut state);
        }
        let Some(answer) = state.take_answer(reader) else {
            if let Some(log) = state.logs.of(reader) {
                log.watch(cx.waker());
            }
            return Poll::Pending;
        };
        if self.bell.step_down(reader.number) {
            self.turn(&mut state);
        }
        Poll::Ready(answer)
    }

    fn turn(&self, state: &mut State) {
        state.turn(Instant::now());
        self.rouse(state);
    }

    /// Takes in one message that is answered on the standing stream (R-LEG-04). Returns `false` when
    /// the session has ended, or its client does not read its answers.
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
            // Between JSON tokens the end of a line is mere whitespace.
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

    /// Reads the log of messages that belong to no request, from where the last reader stopped. A
    /// current reader is displaced.
    pub fn listen(&self) -> Option<LogReader> {
        self.state().read(SESSION_LOG, None)
    }

    /// Continues after a position, if the messages that follow are still kept (R-SSE-04, R-SSE-05).
    pub fn resume(&self, at: StreamPosition) -> Option<LogReader> {
        self.state().read(self.stream_of(at)?, Some(at.read))
    }

    /// Whether somebody reads the standing log.
    pub fn is_listened_to(&self) -> bool {
        self.with_log(SESSION_LOG, |log| log.is_read()) == Some(true)
    }

    /// Marks the log as resumable: from now on a client may reconnect to it.
    pub fn keep(&self, reading: LogReader) {
        self.with_log(reading.stream, |log| log.resumable = true);
    }

    /// Does something with the log of a stream, if there is one.
    pub fn with_log<T>(&self, stream: u64, work: impl FnOnce(&mut MessageLog) -> T) -> Option<T> {
        self.state().logs.get_mut(stream).map(work)
    }

    /// Detaches the reader of a stream, whose client reads it elsewhere. What is still to come goes to the log at once.
    #[cfg(feature = "sealing")]
    pub fn displace(&self, at: StreamPosition) {
        let mut state = self.state();
        let log = self.stream_of(at).map(|stream| state.logs.get_mut(stream));
        if let Some(log) = log.flatten() {
            log.wake();
            log.leave();
            self.turn(&mut state);
        }
    }

    /// Returns the next message for a reader, and its position after that message.
    pub fn poll_read(
        &self,
        reading: LogReader,
        cx: &Context<'_>,
    ) -> Poll<(StreamPosition, LogEvent)> {
        let mut state = self.state();
        let mut next = state.logs.of(reading).and_then(MessageLog::next);
        if next.is_none() {
            state.take_from_engine(reading.stream);
            self.rouse(&mut state);
            next = state.logs.of(reading).and_then(MessageLog::next);
        }
        let stream = reading.stream;
        if let Some((read, message)) = next {
            let message = state.connection.budget().counted_all(message);
            return Poll::Ready((self.position(stream, read), LogEvent::Message(message)));
        }
        let Some(log) = state.logs.of(reading) else {
            return Poll::Ready((self.position(stream, 0), LogEvent::End));
        };
        let read = log.read();
        let next = match (log.stream, log.released.take()) {
            (None, _) => LogEvent::End,
            (_, Some(retry)) => {
                // From now on, messages are kept for a client that reconnects.
                log.resumable = true;
                log.leave();
                LogEvent::Retry(retry)
            }
            _ => {
                log.watch(cx.waker());
                return Poll::Pending;
            }
        };
        Poll::Ready((self.position(stream, read), next))
    }

    /// Detaches a reader.
    pub fn leave(&self, reader: LogReader) {
        let mut state = self.state();
        let is_rung = self.bell.step_down(reader.number);
        if let Some(log) = state.logs.of(reader) {
            log.leave();
            state.used = Instant::now();
            self.turn(&mut state);
        } else if is_rung {
            self.turn(&mut state);
        }
    }

    /// Wakes the session's task if the connection's next timeout is earlier than the one it waits for.
    fn rouse(&self, state: &mut State) {
        let due = state.connection.poll_timeout();
        if due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            state.armed = due;
            self.bell.wake_own();
        }
    }

    /// Handles submissions and timers until the session has ended. The session ends itself when it has
    /// been idle for `ttl`, or when its handshake is not finished in time.
    pub fn poll(&self, alarm: &mut Alarm, ttl: Duration, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // A ring from here on wakes the task again.
            self.bell.watch(cx);
            let now = Instant::now();
            let due = {
                let mut state = self.state();
                state.turn(now);
                let stage = self.stage();
                let mut forgotten = later(state.idle_since(stage).unwrap_or(now), ttl);
                if stage.is_unfinished() {
                    forgotten = forgotten.min(self.due);
                }
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
            if !alarm.poll(due, cx) {
                return Poll::Pending;
            }
        }
    }

    /// Ends the session gracefully within `grace`.
    pub fn drain(&self, grace: Duration) {
        let mut state = self.state();
        let now = Instant::now();
        let State {
            connection, host, ..
        } = &mut *state;
        connection.drain(now, grace, ConnectionError::ShuttingDown, host);
        state.turn(now);
        drop(state);
        self.bell.wake_own();
    }

    /// Ends the session at once.
    pub fn close(&self, reason: ConnectionError) {
        self.state().close(reason);
        self.bell.wake_own();
    }
}

impl State {
    fn idle_since(&self, stage: Stage) -> Option<Instant> {
        let is_read = || !stage.is_unfinished() && self.logs.iter().any(MessageLog::is_read);
        let busy = self.connection.in_flight() > 0 || is_read();
        (!busy).then_some(self.used)
    }

    /// Finds out how a POST is answered; `None` if there is nothing yet. If one message is the whole
    /// answer, takes it out and forgets the log.
    fn take_answer(&mut self, reader: LogReader) -> Option<PostAnswer> {
        let Some(log) = self.logs.of(reader) else {
            return Some(PostAnswer::None);
        };
        let (is_over, is_released) = (log.stream.is_none(), log.released.is_some());
        let answer = match log.unread() {
            None if is_over => PostAnswer::None,
            None if is_released => return Some(PostAnswer::Stream),
            None => return None,
            Some([message]) if is_over && !is_notification(message) => {
                PostAnswer::Only(std::mem::take(message))
            }
            Some(_) => return Some(PostAnswer::Stream),
        };
        self.logs.remove(reader.stream);
        self.used = Instant::now();
        Some(match answer {
            PostAnswer::Only(message) => {
                PostAnswer::Only(self.connection.budget().counted_all(message))
            }
            other => other,
        })
    }

    fn read(&mut self, stream: u64, behind: Option<u64>) -> Option<LogReader> {
        self.used = Instant::now();
        let reader = self.logs.read(stream, behind);
        if stream == SESSION_LOG && reader.is_some() {
            self.host.listened(true);
        }
        reader
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

    /// Moves output to the logs that have room, and detaches the streams whose request is answered.
    fn distribute(&mut self, now: Instant) {
        let Self {
            connection,
            host,
            logs,
            ..
        } = self;
        let closed = connection.is_closed();
        let mut any = false;
        let released = connection.take_released();
        for log in logs.iter_mut() {
            let Some(stream) = log.stream else { continue };
            let over = closed || stream != StreamId::FIRST && connection.is_answered(stream);
            let moved = (over || log.has_room()) && fill(log, connection, stream);
            any |= moved;
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
        if any {
            connection.recount();
        }
        self.logs.forget();
    }

    /// Moves more output to a log whose reader has read everything.
    fn take_from_engine(&mut self, number: u64) {
        let log = self.logs.get_mut(number);
        let Some((log, stream)) = log.and_then(|log| log.stream.map(|stream| (log, stream))) else {
            return;
        };
        if fill(log, &mut self.connection, stream) {
            self.logs.count();
            self.connection.recount();
            let now = Instant::now();
            if self.connection.poll_timeout().is_some_and(|due| due <= now) {
                // The freed room lets waiting work go on.
                self.turn(now);
            }
        }
    }
}

/// Whether a message is a notification: the engine writes `method` directly after the version if there
/// is no id.
fn is_notification(message: &MessageBytes) -> bool {
    let head = message.first().map_or(&[][..], |piece| piece);
    head.starts_with(b"{\"jsonrpc\":\"2.0\",\"method\"")
}

/// Moves the output of a stream to its log. Returns whether there was any.
fn fill(log: &mut MessageLog, connection: &mut Connection, stream: StreamId) -> bool {
    let output = connection.output(stream);
    let any = !output.is_empty();
    if any {
        let messages = messages(output.take());
        messages.into_iter().for_each(|message| log.push(message));
    }
    any
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        // Its client may go on at another process.
        self.close(ConnectionError::ClosedLocally);
    }
}
