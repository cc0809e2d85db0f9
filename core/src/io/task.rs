//! The loop around one connection on one socket, as a task.
//!
//! ```text
//!   a turn:  read ▶ receive ▶ submissions ▶ timers ▶ one vectored write of all output
//!   the end: write queued output ▶ shut down our side ▶ read and discard what still arrives
//! ```
//!
//! A turn never blocks, and it reads and writes a bounded amount, so a flood on one socket does not
//! starve the others. After the last output, our side is shut down and the peer's data is read for a
//! moment longer: a socket closed with unread bytes would send a reset, which destroys that output at
//! the peer.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::buffer::Input;
use crate::correlate::{CancelToken, Cancelled};
use crate::error::ConnectionError;
use crate::io::machine::SocketMachine;
use crate::io::wait::{Alarm, Notifier};
use crate::limits::later;

/// Bytes read in one turn before other tasks run.
const READ_BUDGET_BYTES: usize = 128 << 10;
/// Bytes written in one turn before other tasks run.
const WRITE_BUDGET_BYTES: usize = 1 << 20;
/// Maximum number of slices in one vectored write.
const MAX_SLICES: usize = 64;
/// Size of the first read of a connection without a buffer: a silent connection holds none.
const FIRST_READ_BYTES: usize = 4 << 10;

/// Additional time for a server's end, beyond the grace period.
#[cfg(feature = "http")]
pub const FAREWELL: Duration = Duration::from_secs(2);
/// How long writing the last output may take.
pub const ABRUPT: Duration = Duration::from_millis(500);
/// How long data from the peer is discarded after our side was shut down.
pub const LINGER: Duration = Duration::from_secs(1);
/// How many bytes are discarded then, at most: a message of the usual limit.
pub const LINGER_BYTES: usize = 16 << 20;
/// How often an inactive connection is checked for buffers to free.
const TIDY_EVERY: Duration = Duration::from_secs(5);

/// The demands of a server on the peer of one connection.
pub struct Terms {
    /// How long requests in flight may take after the peer, or this side, has ended.
    pub grace: Duration,
    /// How long the peer may take for its first message.
    pub opening: Duration,
    /// How long the peer may take to complete any message.
    pub unfinished: Duration,
    /// Called at the first message.
    pub opened: Option<Box<dyn FnOnce() + Send>>,
    /// Ends the connection gracefully.
    pub stop: CancelToken,
}

/// Drives a machine on a socket until both have ended. `terms` are the limits that a server
/// sets for its clients; a client passes `None`.
pub async fn drive<S, M>(stream: S, machine: M, notifier: Arc<Notifier>, terms: Option<Terms>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    M: SocketMachine,
{
    let now = Instant::now();
    let mut drive = Drive {
        stream,
        machine,
        notifier,
        alarm: Alarm::default(),
        stop: terms.as_ref().map(|terms| terms.stop.cancelled()),
        opening: terms.as_ref().map(|terms| later(now, terms.opening)),
        terms,
        partial: None,
        completed: 0,
        tidy: None,
        heard: now,
        ended: false,
        unflushed: false,
        failure: None,
        ending: None,
        discards: LINGER_BYTES,
    };
    poll_fn(|cx| drive.poll(cx)).await;
}

struct Drive<S, M: SocketMachine> {
    stream: S,
    machine: M,
    notifier: Arc<Notifier>,
    alarm: Alarm,
    stop: Option<Cancelled>,
    /// Deadline of the first message.
    opening: Option<Instant>,
    terms: Option<Terms>,
    /// Deadline of the message that has arrived in part.
    partial: Option<Instant>,
    /// Number of complete messages received.
    completed: u64,
    /// Next check for buffers to free, if there may be any.
    tidy: Option<Instant>,
    /// When data last arrived.
    heard: Instant,
    /// The peer sends nothing more.
    ended: bool,
    /// Written bytes may not be flushed yet.
    unflushed: bool,
    failure: Option<io::ErrorKind>,
    /// Set when the machine has ended: deadline of its last output.
    ending: Option<Instant>,
    /// How many bytes may still be discarded at the end.
    discards: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin, M: SocketMachine> Drive<S, M> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A ring from here on wakes the task again.
        self.notifier.watch(cx);
        let now = Instant::now();
        if self.machine.is_closed() && self.ending.is_some() && self.machine.output().is_empty() {
            return self.linger(now, cx);
        }
        if let Some(stop) = &mut self.stop
            && Pin::new(stop).poll(cx).is_ready()
        {
            self.stop = None;
            let why = ConnectionError::ShuttingDown;
            self.machine.drain(now, self.grace(), why);
        }
        let mut more = self.read(now, cx);
        let reads = self.machine.wants_read();
        self.machine.handle_submissions(now);
        self.expire(now);
        self.machine.settle();
        let waits = !self.machine.output().is_empty();
        more |= self.write(cx);
        if waits {
            self.machine.recount();
        }
        if self.machine.output().is_empty() {
            self.machine.settle();
            more |= !self.machine.output().is_empty();
        }
        // If this turn did not read, the socket will not wake the task.
        more |= !reads && self.machine.wants_read();
        if let Some(kind) = self.failure {
            self.machine.close(ConnectionError::Io(kind));
            return Poll::Ready(());
        }
        if self.machine.is_closed() {
            let until = *self.ending.get_or_insert(now + ABRUPT);
            if now >= until {
                return Poll::Ready(());
            }
            more |= self.machine.output().is_empty();
        }
        let due = [
            self.machine.poll_timeout(),
            self.ending,
            self.opening,
            self.partial,
            self.tidy,
        ];
        let alarmed = self.alarm.poll(due.into_iter().flatten().min(), cx);
        if alarmed || more {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Handles expired deadlines.
    fn expire(&mut self, now: Instant) {
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
        if self.partial.is_some_and(|due| due <= now) && !self.machine.wants_read() {
            // Our own side is not reading, so the peer is not at fault.
            self.partial = self.unfinished(now);
        }
        for due in [&mut self.opening, &mut self.partial] {
            if due.is_some_and(|due| due <= now) {
                *due = None;
                self.machine.close(ConnectionError::Idle);
            }
        }
        if self.tidy.is_some_and(|due| due <= now) {
            self.tidy = match now < self.heard + TIDY_EVERY {
                true => Some(now + TIDY_EVERY),
                false => {
                    self.machine.tidy();
                    self.machine.recount();
                    None
                }
            };
        }
    }

    /// Reads available data. Returns whether there may be more at once.
    fn read(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        let mut budget = READ_BUDGET_BYTES;
        while !self.ended && self.machine.wants_read() {
            if budget == 0 {
                return true;
            }
            match poll_fill(&mut self.stream, self.machine.input(), cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(0)) => self.end(now),
                Poll::Ready(Ok(n)) => {
                    budget = budget.saturating_sub(n);
                    self.heard = now;
                    self.tidy.get_or_insert(now + TIDY_EVERY);
                    self.machine.receive(now);
                    self.follow(now);
                }
                Poll::Ready(Err(error)) => {
                    self.failure.get_or_insert(error.kind());
                    return false;
                }
            }
        }
        false
    }

    /// Updates the deadlines after data has arrived.
    fn follow(&mut self, now: Instant) {
        let completed = self.machine.completed();
        if completed != self.completed {
            (self.completed, self.partial, self.opening) = (completed, None, None);
            if let Some(opened) = self.terms.as_mut().and_then(|terms| terms.opened.take()) {
                opened();
            }
        }
        self.partial = match self.machine.is_partial() {
            true => self.partial.or_else(|| self.unfinished(now)),
            false => None,
        };
    }

    /// The deadline of a message that begins to arrive now.
    fn unfinished(&self, now: Instant) -> Option<Instant> {
        Some(later(now, self.terms.as_ref()?.unfinished))
    }

    fn grace(&self) -> Duration {
        self.terms.as_ref().map_or(ABRUPT, |terms| terms.grace)
    }

    /// The peer has ended its sending side; it may still read.
    fn end(&mut self, now: Instant) {
        self.ended = true;
        (self.opening, self.partial) = (None, None);
        self.machine.receive_end(now);
        let why = ConnectionError::ClosedByPeer;
        self.machine.drain(now, self.grace(), why);
    }

    /// Writes available output. Returns whether more can be written at once.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut budget = WRITE_BUDGET_BYTES;
        while !self.machine.output().is_empty() {
            if budget == 0 {
                return true;
            }
            let output = self.machine.output();
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = output.io_slices(&mut slices);
            match Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..used]) {
                Poll::Pending => return false,
                Poll::Ready(Ok(0)) => return self.fail(io::ErrorKind::WriteZero),
                Poll::Ready(Ok(n)) => {
                    output.advance(n);
                    self.unflushed = true;
                    budget = budget.saturating_sub(n);
                }
                Poll::Ready(Err(error)) => return self.fail(error.kind()),
            }
        }
        if self.unflushed {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(error)) => return self.fail(error.kind()),
            }
        }
        false
    }

    fn fail(&mut self, kind: io::ErrorKind) -> bool {
        self.failure.get_or_insert(kind);
        false
    }

    /// All output is written: waits for the peer's end.
    fn linger(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.ending.map_or(now, |until| later(until, LINGER));
        if self.alarm.poll(Some(until), cx) {
            return Poll::Ready(());
        }
        if ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).is_err() || self.ended {
            return Poll::Ready(());
        }
        poll_discard(Pin::new(&mut self.stream), &mut self.discards, cx)
    }
}

/// Reads and discards what the peer still sends, until it ends or `most` bytes are discarded.
pub fn poll_discard(
    mut stream: Pin<&mut impl AsyncRead>,
    most: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let mut scratch = [MaybeUninit::uninit(); FIRST_READ_BYTES];
    while *most > 0 {
        let mut room = ReadBuf::uninit(&mut scratch);
        match ready!(stream.as_mut().poll_read(cx, &mut room)) {
            Ok(()) if !room.filled().is_empty() => {
                *most = most.saturating_sub(room.filled().len());
            }
            _ => break,
        }
    }
    Poll::Ready(())
}

impl<S, M: SocketMachine> Drop for Drive<S, M> {
    fn drop(&mut self) {
        self.machine.close(ConnectionError::ClosedByPeer);
    }
}

/// Reads once. A buffer is allocated only when data has arrived.
fn poll_fill<S: AsyncRead + Unpin>(
    stream: &mut S,
    input: &mut Input,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if input.capacity() == 0 {
        let mut first = [MaybeUninit::uninit(); FIRST_READ_BYTES];
        let mut room = ReadBuf::uninit(&mut first);
        ready!(Pin::new(stream).poll_read(cx, &mut room))?;
        if !room.filled().is_empty() {
            input.extend(room.filled());
        }
        return Poll::Ready(Ok(room.filled().len()));
    }
    let mut room = ReadBuf::new(input.spare(0));
    ready!(Pin::new(stream).poll_read(cx, &mut room))?;
    let n = room.filled().len();
    input.advance(n);
    Poll::Ready(Ok(n))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn no_more_is_discarded_than_may_be() {
        let mut endless = pin!(tokio::io::repeat(0));
        let mut left = LINGER_BYTES;
        poll_fn(|cx| poll_discard(endless.as_mut(), &mut left, cx)).await;
        assert_eq!(left, 0);
    }
}
