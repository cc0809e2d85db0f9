//! The two halves of the loop: a turn of the [`Driver`] does what can be done now, and a wait of the [`Poller`] sleeps until
//! there is more.
//!
//! ```text
//!   turn:  read ▶ receive ▶ submissions ▶ timers ▶ one vectored write of all output
//!   wait:  park ▶ poll ▶ note what is ready
//! ```
//!
//! A turn never blocks: reading goes on while writing is blocked (law 6). A turn is bounded, so that a
//! flood in one direction does not starve the other direction, the timers or the signals. The policy of
//! when and how to end is in [`stdio`](super::stdio) and [`child`](super::child).
//!
//! In steady state one batch of messages costs three system calls: poll, read, write. A read that
//! returns less than it asked for has drained the descriptor, so no further read is needed to find that
//! out. A write is tried before waiting for writability. Waking a loop that runs costs no system call.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry, Token};

use super::ends::{ReadEnd, WriteEnd};
use super::machine::Machine;
use super::wake::LoopWake;
use crate::connection::Wake;

const WAKE: Token = Token(0);
const READ: Token = Token(1);
const WRITE: Token = Token(2);
/// The first token that the policy may use.
pub(super) const FIRST_FREE: usize = 3;

/// Bytes read in one turn before other work is done.
const READ_BUDGET_BYTES: usize = 1 << 20;
/// Room of the buffer for a read after one that filled all the room there was: as much as a pipe holds. A peer
/// that waits for room in a full pipe is then woken once, rather than by each of several short reads.
const PIPE_BYTES: usize = 64 << 10;
/// Bytes written in one turn before other work is done.
const WRITE_BUDGET_BYTES: usize = 1 << 20;
/// Maximum number of slices in one vectored write.
const MAX_SLICES: usize = 64;

/// What a loop around one connection with one stream does while it is awake.
#[derive(Debug)]
pub struct Driver {
    registry: Registry,
    wake: Arc<LoopWake>,
    stop: Arc<AtomicU8>,
    read: Option<ReadEnd>,
    /// The descriptor may have bytes to read, or its end.
    readable: bool,
    /// The least size of the buffer for the next read, in bytes; 0 for the usual one.
    room: usize,
    /// The peer has hung up: keep reading until the end, since no further edge will be reported.
    hung_up: bool,
    write: Option<WriteEnd>,
    writable: bool,
    failure: Option<io::ErrorKind>,
    /// Whether anything was written.
    has_spoken: bool,
    /// Tokens of the policy that became ready, as bits counted from [`FIRST_FREE`].
    ready: u8,
}

/// Where the loop sleeps.
#[derive(Debug)]
pub struct Poller {
    poll: Poll,
    events: Events,
}

/// The values of [`Stop`]'s flag, besides 0: the later one includes the earlier one.
const STOP: u8 = 1;
const FINISH: u8 = 2;

/// Stops a loop, from any thread.
#[derive(Clone, Debug)]
pub struct Stop {
    flag: Arc<AtomicU8>,
    wake: Arc<LoopWake>,
}

impl Stop {
    /// Ends the loop gracefully: requests in flight are answered within the grace period.
    pub fn stop(&self) {
        self.ask(STOP);
    }

    /// Ends a server on stdin and stdout without waiting for handlers: everything submitted so far is
    /// written, for as long as its reader takes some of it every five seconds. Any other loop ends as by
    /// [`stop`](Self::stop).
    pub fn finish(&self) {
        self.ask(FINISH);
    }

    fn ask(&self, how: u8) {
        self.flag.fetch_max(how, Ordering::Release);
        self.wake.wake();
    }
}

impl Driver {
    /// Creates a loop without a wire.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new() -> io::Result<(Self, Poller)> {
        let poll = Poll::new()?;
        let driver = Self {
            registry: poll.registry().try_clone()?,
            wake: LoopWake::new(poll.registry(), WAKE)?,
            stop: Arc::default(),
            read: None,
            readable: false,
            room: 0,
            hung_up: false,
            write: None,
            writable: false,
            failure: None,
            has_spoken: false,
            ready: 0,
        };
        let events = Events::with_capacity(8);
        Ok((driver, Poller { poll, events }))
    }

    /// Wakes this loop: for the connection's handles and for the wire's threads.
    pub fn wake(&self) -> &Arc<LoopWake> {
        &self.wake
    }

    /// A handle that stops this loop.
    pub fn stop(&self) -> Stop {
        Stop {
            flag: self.stop.clone(),
            wake: self.wake.clone(),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire) >= STOP
    }

    /// Whether the loop is to end without waiting for handlers. What was submitted before is seen by the
    /// turns that begin afterwards.
    pub(super) fn is_finishing(&self) -> bool {
        self.stop.load(Ordering::Acquire) == FINISH
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Attaches the wire.
    ///
    /// # Errors
    /// When a descriptor cannot be polled.
    pub fn attach(&mut self, read: ReadEnd, write: WriteEnd) -> io::Result<()> {
        read.register(&self.registry, READ)?;
        write.register(&self.registry, WRITE)?;
        self.read = Some(read);
        self.write = Some(write);
        self.readable = true;
        self.writable = true;
        Ok(())
    }

    /// Whether the stream can still deliver bytes; the policy decides what its end means.
    pub(super) fn is_reading(&self) -> bool {
        self.read.is_some()
    }

    /// The error that broke the wire, if any.
    pub(super) fn failure(&self) -> Option<io::ErrorKind> {
        self.failure
    }

    /// Pieces of output that a thread of this process still has to write.
    pub(super) fn waiting(&self) -> usize {
        self.write.as_ref().map_or(0, WriteEnd::waiting)
    }

    /// Whether all written bytes have left the process, or never will.
    pub(super) fn is_flushed(&mut self) -> bool {
        let flushed = self.write.as_ref().map_or(Ok(true), WriteEnd::is_flushed);
        flushed.unwrap_or_else(|error| {
            self.fail(error.kind());
            true
        })
    }

    /// Closes the read end: what the peer still sends is ignored.
    pub(super) fn close_read(&mut self) {
        self.readable = false;
        if let Some(end) = self.read.take() {
            end.deregister(&self.registry);
        }
    }

    /// Closes the write end: the peer sees the end of the stream.
    pub(super) fn close_write(&mut self) {
        self.writable = false;
        if let Some(end) = self.write.take() {
            end.deregister(&self.registry);
        }
    }

    fn fail(&mut self, kind: io::ErrorKind) {
        self.failure.get_or_insert(kind);
        self.close_write();
    }

    /// Reads, receives, handles submissions and timers, and writes, without blocking. Returns whether
    /// more can be done at once.
    pub fn turn(&mut self, machine: &mut impl Machine, now: Instant) -> bool {
        self.read(machine, now);
        machine.handle_submissions(now);
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        self.write(machine);
        let read_on = self.readable && machine.wants_read();
        read_on || (self.writable && !machine.output().is_empty())
    }

    fn read(&mut self, machine: &mut impl Machine, now: Instant) {
        let mut budget = READ_BUDGET_BYTES;
        while let Some(end) = self.read.as_mut()
            && self.readable
            && budget > 0
            && machine.wants_read()
        {
            // A buffer that has grown for a long message does not grow for this.
            let held = machine.input().len();
            let room = machine.input().spare(self.room.saturating_sub(held));
            let asked = room.len();
            match end.read(room) {
                Ok(0) => self.close_read(),
                Ok(n) => {
                    machine.input().advance(n);
                    budget = budget.saturating_sub(n);
                    self.room = if n == asked { PIPE_BYTES } else { 0 };
                    self.readable = n == asked || self.hung_up || !end.is_polled();
                    machine.receive(now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) => {
                    self.failure.get_or_insert(error.kind());
                    self.close_read();
                }
            }
        }
    }

    /// Reads what a peer that has ended left in the stream.
    pub(super) fn read_last(&mut self, machine: &mut impl Machine, now: Instant) {
        self.readable = self.read.is_some();
        self.read(machine, now);
    }

    /// Reads and discards what the peer still sends, so that it can finish. Returns whether more can be
    /// read at once.
    pub(super) fn discard(&mut self) -> bool {
        let mut scratch = [0; 16 << 10];
        for _ in 0..16 {
            let Some(end) = self.read.as_mut().filter(|_| self.readable) else {
                return false;
            };
            match end.read(&mut scratch) {
                Ok(0) => self.close_read(),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(_) => self.close_read(),
            }
        }
        self.readable
    }

    fn write(&mut self, machine: &mut impl Machine) {
        let mut budget = WRITE_BUDGET_BYTES;
        while let Some(end) = self.write.as_mut()
            && self.writable
            && budget > 0
            && !machine.output().is_empty()
        {
            let output = machine.output();
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = output.io_slices(&mut slices);
            let slices = &slices[..used];
            let offered: usize = slices.iter().map(|slice| slice.len()).sum();
            let outcome = end.write(slices);
            match outcome {
                Ok(n) => {
                    output.advance(n);
                    self.has_spoken |= n > 0;
                    budget = budget.saturating_sub(n);
                    if n < offered && end.is_polled() {
                        self.await_room(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.await_room(true),
                Err(error) => self.fail(error.kind()),
            }
        }
    }

    /// Whether anything was written.
    pub(super) fn has_spoken(&self) -> bool {
        self.has_spoken
    }

    fn await_room(&mut self, blocked: bool) {
        self.writable = !blocked;
        if let Some(end) = &self.write
            && let Err(error) = end.await_room(&self.registry, WRITE, blocked)
        {
            self.fail(error.kind());
        }
    }

    /// How long to sleep until `until`, unless something happens; announces the sleep to the threads that wake the loop.
    /// With `more` work to do the loop does not sleep.
    pub(super) fn sleep(&self, until: Option<Instant>, more: bool) -> Option<Duration> {
        if more || !self.wake.park() {
            return Some(Duration::ZERO);
        }
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Takes note of what became ready during a sleep.
    pub(super) fn awake(&mut self, events: &Events) {
        // A wire served by a thread reports by waking the loop, so it is checked after each sleep.
        self.readable |= self.read.as_ref().is_some_and(|end| !end.is_polled());
        self.writable |= self.write.as_ref().is_some_and(|end| !end.is_polled());
        let (mut room, mut gone) = (false, false);
        for event in events {
            match event.token() {
                WAKE => {}
                READ => {
                    self.readable = self.read.is_some();
                    self.hung_up |= event.is_read_closed() || event.is_error();
                }
                WRITE => {
                    room |= event.is_writable();
                    gone |= event.is_write_closed() || event.is_error();
                }
                Token(other) => self.ready |= 1 << (other - FIRST_FREE),
            }
        }
        if gone {
            self.fail(io::ErrorKind::BrokenPipe);
        } else if room && !self.writable {
            self.await_room(false);
        }
    }

    /// Whether that token of the policy became ready since the last call.
    pub(super) fn take_ready(&mut self, token: Token) -> bool {
        let bit = 1 << (token.0 - FIRST_FREE);
        let was = self.ready & bit != 0;
        self.ready &= !bit;
        was
    }
}

/// The descriptor is readable while something is ready.
#[cfg(unix)]
impl std::os::fd::AsRawFd for Poller {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.poll.as_raw_fd()
    }
}

impl Poller {
    /// Sleeps until something is ready, the loop is woken, or `until` is reached. With `more` work to
    /// do it does not sleep, but still notes what has become ready.
    ///
    /// # Errors
    /// When polling itself fails, so that no wire can be served.
    pub fn wait(
        &mut self,
        driver: &mut Driver,
        until: Option<Instant>,
        more: bool,
    ) -> io::Result<()> {
        let outcome = self.poll(driver.sleep(until, more));
        driver.wake.run();
        driver.awake(outcome?);
        Ok(())
    }

    /// Polls; returns what has become ready.
    ///
    /// # Errors
    /// When polling itself fails.
    pub(super) fn poll(&mut self, timeout: Option<Duration>) -> io::Result<&Events> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.events.clear(),
            outcome => outcome?,
        }
        Ok(&self.events)
    }
}
