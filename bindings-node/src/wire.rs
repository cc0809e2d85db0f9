//! Messages as they are, without a protocol of the engine's over them: for who has one of his own.
//!
//! ```text
//!   stdin, a child ─▶ Lines (a thread of the engine's) ─▶ inbox ─▶ drain: a row for each message
//!   stdout, the child ◀─ Lines ◀──────────── bytes ◀────────────── say
//! ```

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpbolt::buffer::{Input, Output};
use mcpbolt::connection::Framing;
use mcpbolt::error::ConnectionError;
use mcpbolt::frame::{Deframer, Event as Found};
use mcpbolt::io::{LoopWake, Machine, Stdio, StdioOptions};
use mcpbolt::limits::Limits;
use mcpbolt::message::{Kind, Message};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::child::{ChildOptions, exit_json};
use crate::error::{self, Result};
use crate::inbox::{Event, Farewell, Inbox};
use crate::link::{Link, Side, spawn};
use crate::serve::{NOTICE, report_json};

const LIMITS: Limits = Limits::STDIO;

/// What JavaScript's thread and the engine's share.
pub struct Wire {
    outgoing: Mutex<Vec<u8>>,
    /// Bytes that are yet to be written.
    unsent: AtomicUsize,
    /// Bytes that JavaScript has yet to look at.
    unread: AtomicUsize,
    /// Requests that JavaScript has not answered.
    in_flight: AtomicUsize,
    /// Somebody waits for room.
    is_full: AtomicBool,
    wake: Arc<LoopWake>,
}

impl Wire {
    fn new(wake: &Arc<LoopWake>) -> Arc<Self> {
        Arc::new(Self {
            outgoing: Mutex::default(),
            unsent: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            wake: wake.clone(),
        })
    }

    fn outgoing(&self) -> MutexGuard<'_, Vec<u8>> {
        // Whole messages are appended, also when somebody panics.
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a message. Whether there is room for more.
    pub fn say(&self, message: &str) -> bool {
        let mut outgoing = self.outgoing();
        outgoing.extend_from_slice(message.as_bytes());
        outgoing.push(b'\n');
        let is_full =
            outgoing.len() + self.unsent.load(Ordering::Acquire) > LIMITS.output_mark_bytes;
        if is_full {
            self.is_full.store(true, Ordering::Release);
        }
        drop(outgoing);
        self.wake.wake();
        !is_full
    }

    /// A request has been answered, or nobody waits for its answer.
    pub fn settle(&self) {
        self.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.wake.wake();
    }

    /// JavaScript has looked at that many bytes.
    pub fn was_read(&self, bytes: usize) {
        let unread = self.unread.fetch_sub(bytes, Ordering::AcqRel);
        if unread > LIMITS.waiting_cap_bytes {
            self.wake.wake();
        }
    }
}

/// The wire as its loop drives it.
struct Lines {
    input: Input,
    output: Output,
    deframer: Deframer,
    inbox: Arc<Inbox>,
    wire: Arc<Wire>,
    end: Option<ConnectionError>,
}

impl Lines {
    fn new(inbox: &Arc<Inbox>, wire: &Arc<Wire>) -> Self {
        Self {
            input: Input::new(),
            output: Output::new(),
            deframer: Deframer::new(Framing::Line, LIMITS.max_message_bytes),
            inbox: inbox.clone(),
            wire: wire.clone(),
            end: None,
        }
    }

    fn came(&self, frame: &[u8]) -> Event {
        match Message::parse(frame, LIMITS.max_depth) {
            Ok(message) => {
                self.wire.unread.fetch_add(frame.len(), Ordering::AcqRel);
                if message.as_ref().kind() == Kind::Request {
                    self.wire.in_flight.fetch_add(1, Ordering::AcqRel);
                }
                Event::Frame(0, Box::new(message))
            }
            Err(why) => Event::Bad(why.to_string()),
        }
    }

    /// Notes what there is to write; who waits for room learns that there is some.
    fn note(&self) {
        let outgoing = self.wire.outgoing();
        let unsent = self.output.len();
        self.wire.unsent.store(unsent, Ordering::Release);
        let has_room = outgoing.len() + unsent <= LIMITS.output_mark_bytes / 2;
        if has_room && self.wire.is_full.swap(false, Ordering::AcqRel) {
            self.inbox.push(Event::Room);
        }
    }
}

impl Machine for Lines {
    fn input(&mut self) -> &mut Input {
        &mut self.input
    }

    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn receive(&mut self, _: Instant) {
        while let Some(found) = self.deframer.next(self.input.filled()) {
            let event = match found {
                Found::Frame(range) => {
                    self.came(self.input.filled().get(range).unwrap_or_default())
                }
                Found::Oversize { .. } => Event::Bad("a message is too long".to_owned()),
            };
            self.inbox.push(event);
        }
        self.input.consume(self.deframer.drain());
    }

    fn receive_end(&mut self, now: Instant) {
        if !self.input.filled().iter().all(u8::is_ascii_whitespace) {
            self.input.extend(b"\n");
            self.receive(now);
        }
    }

    fn handle_submissions(&mut self, _: Instant) {
        let outgoing = std::mem::take(&mut *self.wire.outgoing());
        if !outgoing.is_empty() {
            self.output.push(Bytes::from(outgoing));
        }
        self.note();
    }

    fn handle_timeout(&mut self, _: Instant) {}

    /// Asked at the end of each turn, when something may have been written.
    fn poll_timeout(&self) -> Option<Instant> {
        self.note();
        None
    }

    fn wants_read(&self) -> bool {
        !self.is_closed() && self.wire.unread.load(Ordering::Acquire) <= LIMITS.waiting_cap_bytes
    }

    fn in_flight(&self) -> usize {
        self.wire.in_flight.load(Ordering::Acquire)
    }

    /// What is in flight may still be answered; who drives this sees to the grace period.
    fn drain(&mut self, _: Instant, _: Duration, _: ConnectionError) {}

    fn is_closed(&self) -> bool {
        self.end.is_some()
    }

    fn close(&mut self, why: ConnectionError) {
        self.end.get_or_insert(why);
    }
}

/// Carries this process's stdin and stdout, on a thread of the engine's.
#[napi]
pub fn wire_stdio(wake: Function<'_, (), ()>, signals: bool) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let options = StdioOptions {
        signals,
        ..StdioOptions::default()
    };
    let stdio = Stdio::take(options).map_err(|why| error::io(&why))?;
    let wire = Wire::new(stdio.wake());
    let (stop, side) = (stdio.stop(), Side::Wire(wire.clone()));
    let link = Link::new(inbox.clone(), side, move || stop.stop());
    spawn("mcpbolt-wire", move || {
        let mut farewell = Farewell::new(&inbox);
        farewell.say(report_json(&Err(io::Error::other("the engine failed"))));
        let outcome = stdio.run(&mut Lines::new(&inbox, &wire));
        let wedged = matches!(&outcome, Ok(report) if report.unanswered > 0);
        farewell.say(report_json(&outcome));
        drop(farewell);
        if wedged && !inbox.wait_drained(NOTICE) {
            signal_hook::low_level::exit(1);
        }
    })?;
    Ok(link)
}

/// Starts a program and carries its stdin and stdout.
#[napi]
pub fn wire_child(child: ChildOptions, wake: Function<'_, (), ()>) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let child = child.spawn(&inbox)?;
    let wire = Wire::new(child.wake());
    let (stop, pid) = (child.stop(), child.id());
    let side = Side::Wire(wire.clone());
    let link = Link::new(inbox.clone(), side, move || stop.stop()).of_process(pid);
    spawn("mcpbolt-wire", move || {
        let mut farewell = Farewell::new(&inbox);
        if let Ok(exit) = child.run(&mut Lines::new(&inbox, &wire)) {
            farewell.say(exit_json(&exit));
        }
    })?;
    Ok(link)
}

#[napi]
impl Link {
    /// Writes a message on a wire; `settles` when it answers a request. Whether there is room for more.
    #[napi]
    pub fn say(&self, message: String, settles: bool) -> bool {
        let Side::Wire(wire) = &self.side else {
            return true;
        };
        let has_room = wire.say(&message);
        if settles {
            wire.settle();
        }
        has_room
    }

    /// A request on a wire will not be answered.
    #[napi]
    pub fn settle(&self) {
        if let Side::Wire(wire) = &self.side {
            wire.settle();
        }
    }

    /// The process that this leads to, if it leads to one.
    #[napi]
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }
}
