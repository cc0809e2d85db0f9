//! Passes messages through unchanged, one per line, for programs that implement the protocol
//! themselves.
//!
//! ```text
//!   pipe ─▶ Wire (the loop's thread) ─▶ hear(WireEvent) ─▶ the program
//!   pipe ◀─ Wire ◀─────────── bytes ◀─ WireHandle ◀── the program
//! ```

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{LoopWake, Machine};
use crate::buffer::{Input, Output};
use crate::connection::Wake;
use crate::error::ConnectionError;
use crate::frame::{Deframer, Event, Framing};
use crate::limits::Limits;
use crate::message::{Kind, Message};
use crate::sync::lock;

/// An event that a [`Wire`] reports to the program, in order.
#[derive(Debug)]
pub enum WireEvent {
    /// A message, validated, which counts as unread until
    /// [`was_read`](WireHandle::was_read).
    Message(Box<Message>),
    /// A line that is not a message, and why.
    Bad(String),
    /// There is room again for what is to be written.
    Room,
}

/// The wire as a driver drives it, `child.run(&mut wire)` for example.
///
/// ```no_run
/// use mcpbolt::io::{ChildCommand, WireEvent, WireHandle};
/// use mcpbolt::limits::Limits;
///
/// let child = ChildCommand::new("path/to/server").spawn()?;
/// let handle = WireHandle::new(Limits::STDIO, child.wake());
/// let said = handle.clone();
/// let mut wire = handle.wire(move |heard| {
///     for heard in heard {
///         if let WireEvent::Message(message) = heard {
///             println!("{}", String::from_utf8_lossy(message.bytes()));
///             said.was_read(message.bytes().len());
///         }
///     }
/// });
/// handle.send(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// child.run(&mut wire)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Wire<F> {
    input: Input,
    output: Output,
    deframer: Deframer,
    handle: WireHandle,
    hear: F,
    end: Option<ConnectionError>,
}

/// Access to a [`Wire`] from other threads.
#[derive(Clone, Debug)]
pub struct WireHandle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    outgoing: Mutex<Vec<u8>>,
    /// Bytes that the loop has not written yet.
    unsent: AtomicUsize,
    /// Bytes that the program has not processed yet.
    unread: AtomicUsize,
    /// The peer's requests that are not answered yet.
    in_flight: AtomicUsize,
    /// A sender waits for room.
    is_full: AtomicBool,
    is_closed: AtomicBool,
    limits: Limits,
    wake: Arc<LoopWake>,
}

impl WireHandle {
    /// Creates the handle of a wire whose driver is woken by `wake`.
    pub fn new(limits: Limits, wake: &Arc<LoopWake>) -> Self {
        Self(Arc::new(Shared {
            outgoing: Mutex::default(),
            unsent: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            limits,
            wake: wake.clone(),
        }))
    }

    /// Creates the wire. `hear` is called on the driver's thread with everything that arrived in one
    /// turn.
    pub fn wire<F: Fn(Vec<WireEvent>)>(&self, hear: F) -> Wire<F> {
        Wire {
            input: Input::new(),
            output: Output::new(),
            deframer: Deframer::new(Framing::Line, self.0.limits.max_message_bytes),
            handle: self.clone(),
            hear,
            end: None,
        }
    }

    /// Queues a message, which must not contain a line end. Returns whether there is room for more; if
    /// not, [`WireEvent::Room`] reports when there is.
    pub fn send(&self, message: &[u8]) -> bool {
        let shared = &*self.0;
        let mut outgoing = lock(&shared.outgoing);
        outgoing.extend_from_slice(message);
        outgoing.push(b'\n');
        let unsent = outgoing.len() + shared.unsent.load(Ordering::Acquire);
        let is_full = unsent > shared.limits.output_mark_bytes;
        if is_full {
            shared.is_full.store(true, Ordering::Release);
        }
        drop(outgoing);
        shared.wake.wake();
        !is_full
    }

    /// Reports that a request of the peer is answered, or will not be.
    pub fn settle(&self) {
        less(&self.0.in_flight, 1);
        self.0.wake.wake();
    }

    /// Reports that the program has processed a message of that many bytes. Above `waiting_cap_bytes`
    /// of unprocessed messages, nothing more is read.
    pub fn was_read(&self, bytes: usize) {
        let unread = less(&self.0.unread, bytes);
        if unread > self.0.limits.waiting_cap_bytes {
            self.0.wake.wake();
        }
    }

    /// Closes the wire. Messages that are queued are still written.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        self.0.wake.wake();
    }
}

/// Subtracts from a counter, down to 0 at least; returns its previous value.
fn less(count: &AtomicUsize, by: usize) -> usize {
    let lessened = |was: usize| Some(was.saturating_sub(by));
    let (order, look) = (Ordering::AcqRel, Ordering::Acquire);
    let was = count.fetch_update(order, look, lessened);
    was.unwrap_or_else(|was| was)
}

impl<F> Wire<F> {
    /// Why the wire ended, if it has.
    pub fn end(&self) -> Option<&ConnectionError> {
        self.end.as_ref()
    }
}

impl<F: Fn(Vec<WireEvent>)> Wire<F> {
    fn came(&self, frame: &[u8]) -> WireEvent {
        let shared = &self.handle.0;
        match Message::parse(frame, shared.limits.max_depth) {
            Ok(message) => {
                shared.unread.fetch_add(frame.len(), Ordering::AcqRel);
                if message.as_ref().kind() == Kind::Request {
                    shared.in_flight.fetch_add(1, Ordering::AcqRel);
                }
                WireEvent::Message(Box::new(message))
            }
            Err(why) => WireEvent::Bad(why.to_string()),
        }
    }

    /// Updates the bytes to write, and reports new room to a sender that waits for it.
    fn note(&self) {
        let outgoing = lock(&self.handle.0.outgoing);
        let (shared, unsent) = (&self.handle.0, self.output.len());
        shared.unsent.store(unsent, Ordering::Release);
        let has_room = outgoing.len() + unsent <= shared.limits.output_mark_bytes / 2;
        if has_room && shared.is_full.swap(false, Ordering::AcqRel) {
            drop(outgoing);
            (self.hear)(vec![WireEvent::Room]);
        }
    }
}

impl<F: Fn(Vec<WireEvent>)> Machine for Wire<F> {
    fn input(&mut self) -> &mut Input {
        &mut self.input
    }

    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn receive(&mut self, _: Instant) {
        let mut heard = Vec::new();
        while let Some(event) = self.deframer.next(self.input.filled()) {
            heard.push(match event {
                Event::Frame(range) => {
                    self.came(self.input.filled().get(range).unwrap_or_default())
                }
                Event::Oversize { .. } => WireEvent::Bad("a message is too long".to_owned()),
            });
        }
        self.input.consume(self.deframer.drain());
        if !heard.is_empty() {
            (self.hear)(heard);
        }
    }

    fn receive_end(&mut self, now: Instant) {
        if !self.input.filled().iter().all(u8::is_ascii_whitespace) {
            self.input.extend(b"\n");
            self.receive(now);
        }
    }

    fn handle_submissions(&mut self, _: Instant) {
        let outgoing = std::mem::take(&mut *lock(&self.handle.0.outgoing));
        if !outgoing.is_empty() {
            self.output.push(Bytes::from(outgoing));
        }
        self.note();
    }

    fn handle_timeout(&mut self, _: Instant) {}

    /// Called at the end of each turn, when output may have been written.
    fn poll_timeout(&self) -> Option<Instant> {
        self.note();
        None
    }

    fn wants_read(&self) -> bool {
        let shared = &self.handle.0;
        !self.is_closed()
            && shared.unread.load(Ordering::Acquire) <= shared.limits.waiting_cap_bytes
    }

    fn in_flight(&self) -> usize {
        self.handle.0.in_flight.load(Ordering::Acquire)
    }

    /// Requests in flight may still be answered; the driver enforces the grace period.
    fn drain(&mut self, _: Instant, _: Duration, _: ConnectionError) {}

    fn is_closed(&self) -> bool {
        self.end.is_some() || self.handle.0.is_closed.load(Ordering::Acquire)
    }

    fn close(&mut self, why: ConnectionError) {
        self.end.get_or_insert(why);
    }
}

impl<F> fmt::Debug for Wire<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("handle", &self.handle)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
