//! The loop around one connection on one socket, as a task.
//!
//! ```text
//!   a turn:  read ▶ receive ▶ submissions ▶ timers ▶ one vectored write of all that is ready
//!   the end: what is queued is written ▶ our side is shut ▶ what still comes is thrown away
//! ```
//!
//! A turn never blocks, and what it reads and writes is bounded, so that a flood on one socket
//! does not starve the others. After the last word our side is shut and the peer's read to its
//! end for a moment: a socket that is closed with unread bytes resets, and takes that last word
//! from the peer.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::buffer::Input;
use crate::connection::Host;
use crate::correlate::{CancelToken, Cancelled};
use crate::error::ConnectionError;
use crate::io::hosted::Owned;
use crate::io::machine::Machine;
use crate::io::wait::{Alarm, Bell};
use crate::limits::later;

/// Bytes read in one turn before others have theirs.
const READ_BUDGET_BYTES: usize = 1 << 20;
/// Bytes written in one turn, likewise.
const WRITE_BUDGET_BYTES: usize = 1 << 20;
/// Segments handed to one vectored write.
const MAX_SLICES: usize = 64;
/// Read of a connection without a buffer: one that is silent holds none.
const FIRST_READ_BYTES: usize = 4 << 10;

/// How long an end may take beyond its grace.
#[cfg(feature = "http")]
pub const FAREWELL: Duration = Duration::from_secs(2);
/// How long the last word may take.
pub const ABRUPT: Duration = Duration::from_millis(500);
/// How long the peer may go on after it.
const LINGER: Duration = Duration::from_secs(1);
/// How often it is looked whether a silent connection still holds buffers.
const TIDY_EVERY: Duration = Duration::from_secs(5);

/// What a socket can carry.
pub trait Carried: Machine {
    /// Lets go of buffers that hold nothing.
    fn tidy(&mut self);
    /// All output has left: says what was put off for its sake.
    fn drained(&mut self) {}
}

impl<H: Host> Carried for Owned<H> {
    fn tidy(&mut self) {
        let input = self.input();
        if input.is_empty() {
            *input = Input::new();
        }
    }
}

/// What one connection may take its time for.
pub struct Terms {
    /// How long what is in flight may take when the peer, or this side, ends.
    pub grace: Duration,
    /// How long the peer may take to say anything at all.
    pub opening: Option<Duration>,
    /// Ends it in good order.
    pub stop: Option<CancelToken>,
}

/// Drives a machine on a socket until both have ended.
pub async fn drive<S, M>(stream: S, machine: M, bell: Arc<Bell>, terms: Terms)
where
    S: AsyncRead + AsyncWrite + Unpin,
    M: Carried,
{
    let now = Instant::now();
    let mut drive = Drive {
        stream,
        machine,
        bell,
        alarm: Alarm::default(),
        grace: terms.grace,
        stop: terms.stop.map(|stop| stop.cancelled()),
        opening: terms.opening.map(|allowed| later(now, allowed)),
        tidy: None,
        heard: now,
        ended: false,
        unflushed: false,
        failure: None,
        ending: None,
    };
    poll_fn(|cx| drive.poll(cx)).await;
}

struct Drive<S, M: Carried> {
    stream: S,
    machine: M,
    bell: Arc<Bell>,
    alarm: Alarm,
    grace: Duration,
    stop: Option<Cancelled>,
    /// When something must have come.
    opening: Option<Instant>,
    /// When it is looked next whether there are buffers to let go of, if there are any.
    tidy: Option<Instant>,
    /// When something last came.
    heard: Instant,
    /// The peer sends nothing more.
    ended: bool,
    /// What was written may not have left yet.
    unflushed: bool,
    failure: Option<io::ErrorKind>,
    /// The machine has ended: until when its last word may take.
    ending: Option<Instant>,
}

impl<S: AsyncRead + AsyncWrite + Unpin, M: Carried> Drive<S, M> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        if self.machine.is_closed() && self.ending.is_some() && self.machine.output().is_empty() {
            return self.linger(now, cx);
        }
        if let Some(stop) = &mut self.stop
            && Pin::new(stop).poll(cx).is_ready()
        {
            self.stop = None;
            let why = ConnectionError::ShuttingDown;
            self.machine.drain(now, self.grace, why);
        }
        let mut more = self.read(now, cx);
        let reads = self.machine.wants_read();
        self.machine.handle_submissions(now);
        self.expire(now);
        more |= self.write(cx);
        if self.machine.output().is_empty() {
            self.machine.drained();
            more |= !self.machine.output().is_empty();
        }
        // The socket wakes nobody who was not reading from it.
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
            self.tidy,
        ];
        let alarmed = self.alarm.poll(due.into_iter().flatten().min(), cx);
        if self.bell.watch(cx) || alarmed || more {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Lets time pass.
    fn expire(&mut self, now: Instant) {
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
        if self.opening.is_some_and(|due| due <= now) {
            self.opening = None;
            self.machine.close(ConnectionError::Idle);
        }
        if self.tidy.is_some_and(|due| due <= now) {
            self.tidy = match now < self.heard + TIDY_EVERY {
                true => Some(now + TIDY_EVERY),
                false => {
                    self.machine.tidy();
                    None
                }
            };
        }
    }

    /// Reads what there is; whether there may be more at once.
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
                    self.opening = None;
                    self.tidy.get_or_insert(now + TIDY_EVERY);
                    self.machine.receive(now);
                }
                Poll::Ready(Err(error)) => {
                    self.failure.get_or_insert(error.kind());
                    return false;
                }
            }
        }
        false
    }

    /// The peer has ended its side; it may still read.
    fn end(&mut self, now: Instant) {
        self.ended = true;
        self.opening = None;
        self.machine.receive_end(now);
        let why = ConnectionError::ClosedByPeer;
        self.machine.drain(now, self.grace, why);
    }

    /// Writes what is ready; whether more can be written at once.
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

    /// Everything is said: the peer may come to its end.
    fn linger(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let until = self.ending.map_or(now, |until| later(until, LINGER));
        if self.alarm.poll(Some(until), cx) {
            return Poll::Ready(());
        }
        if ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).is_err() {
            return Poll::Ready(());
        }
        let mut scratch = [MaybeUninit::uninit(); FIRST_READ_BYTES];
        while !self.ended {
            let mut room = ReadBuf::uninit(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room)) {
                Ok(()) if !room.filled().is_empty() => {}
                _ => self.ended = true,
            }
        }
        Poll::Ready(())
    }
}

impl<S, M: Carried> Drop for Drive<S, M> {
    fn drop(&mut self) {
        self.machine.close(ConnectionError::ClosedByPeer);
    }
}

/// Reads once. A buffer is taken only when something is there to be put into it.
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
