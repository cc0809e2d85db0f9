//! A child's messages as they are, without a protocol over them: for who has one of his own.
//!
//! ```text
//!   child ─▶ Lines (the loop's thread) ─▶ inbox ─▶ drain: on_message(kind, id, method, body)
//!   child ◀─ Lines ◀──────────── bytes ◀────────── send
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcpbolt::buffer::{Input, Output};
use mcpbolt::connection::Framing;
use mcpbolt::error::ConnectionError;
use mcpbolt::frame::{Deframer, Event};
use mcpbolt::io::{ChildCommand, LoopWake, Machine, Stderr};
use mcpbolt::limits::Limits;
use mcpbolt::message::Message as Owned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::engine::codec;
use crate::engine::events::lock;
use crate::future::tell;
use crate::inbox::Inbox;

const LIMITS: Limits = Limits::STDIO;
/// Messages handed over in one turn of the event loop.
const DRAIN: usize = 256;

/// What came of the child.
enum Came {
    Message(Box<Owned>),
    /// A line that is no message, and why.
    Bad(String),
    Stderr(String),
    /// There is room again for what is to be written.
    Room,
    Ended(String),
}

/// What the loop's thread and Python's share.
#[derive(Default)]
struct Shared {
    outgoing: Mutex<Vec<u8>>,
    /// Bytes that the loop's thread has yet to write.
    unsent: AtomicUsize,
    /// Bytes that Python has yet to look at.
    unread: AtomicUsize,
    /// Somebody waits for room.
    is_full: AtomicBool,
    is_closed: AtomicBool,
}

/// Whom the face wants told.
#[derive(FromPyObject)]
struct Ears {
    on_message: Py<PyAny>,
    on_bad: Py<PyAny>,
    on_stderr: Option<Py<PyAny>>,
    on_room: Py<PyAny>,
    on_ended: Py<PyAny>,
}

/// A child and its messages.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Wire {
    inbox: Arc<Inbox<Came>>,
    shared: Arc<Shared>,
    wake: Arc<LoopWake>,
    ears: Ears,
}

#[pymethods]
impl Wire {
    /// Starts a child that sees these variables and no others.
    #[new]
    fn new(
        command: Vec<String>,
        cwd: Option<String>,
        env: Vec<(String, String)>,
        ears: Ears,
    ) -> PyResult<Self> {
        let mut words = command.into_iter();
        let program = words
            .next()
            .ok_or_else(|| PyValueError::new_err("the command is empty"))?;
        let mut child = ChildCommand::new(program).args(words).clear_env();
        if let Some(directory) = cwd {
            child = child.cwd(directory);
        }
        child = env
            .into_iter()
            .fold(child, |child, (name, value)| child.env(name, value));
        let inbox = Arc::new(Inbox::new()?);
        if ears.on_stderr.is_some() {
            let inbox = inbox.clone();
            let pass_on = move |line: &str| inbox.push(Came::Stderr(line.into()));
            child = child.stderr(Stderr::Lines(Box::new(pass_on)));
        }
        let child = child.spawn()?;
        let shared = Arc::<Shared>::default();
        let wire = Self {
            inbox: inbox.clone(),
            shared: shared.clone(),
            wake: child.wake().clone(),
            ears,
        };
        std::thread::Builder::new()
            .name("mcpbolt-wire".into())
            .spawn(move || {
                let mut lines = Lines {
                    input: Input::new(),
                    output: Output::new(),
                    deframer: Deframer::new(Framing::Line, LIMITS.max_message_bytes),
                    inbox,
                    shared,
                    end: None,
                };
                let _ = child.run(&mut lines);
            })?;
        Ok(wire)
    }

    /// The descriptor that is readable when [`drain`](Self::drain) has something to do.
    fn fileno(&self) -> i32 {
        self.inbox.signal().fd()
    }

    /// Hands over what has come.
    fn drain(&self, py: Python<'_>) {
        let Ears {
            on_message,
            on_bad,
            on_stderr,
            on_room,
            on_ended,
        } = &self.ears;
        for came in self.inbox.take(DRAIN) {
            match came {
                Came::Message(message) => {
                    self.was_read(message.bytes().len());
                    match codec::parts(py, message.bytes(), (*message).as_ref().envelope(), None) {
                        Ok(parts) => tell(py, Some(on_message), parts),
                        Err(error) => tell(py, Some(on_bad), (error.into_value(py),)),
                    }
                }
                Came::Bad(why) => {
                    let error = codec::bad(py, &why, None, -32700, None);
                    tell(py, Some(on_bad), (error.into_value(py),));
                }
                Came::Stderr(line) => tell(py, on_stderr.as_ref(), (line,)),
                Came::Room => tell(py, Some(on_room), ()),
                Came::Ended(why) => tell(py, Some(on_ended), (why,)),
            }
        }
    }

    /// Writes a message, without its line end. Whether there is room for more.
    fn send(&self, message: &[u8]) -> bool {
        let mut outgoing = lock(&self.shared.outgoing);
        outgoing.extend_from_slice(message);
        outgoing.push(b'\n');
        let unsent = outgoing.len() + self.shared.unsent.load(Ordering::Acquire);
        let is_full = unsent > LIMITS.output_mark_bytes;
        if is_full {
            self.shared.is_full.store(true, Ordering::Release);
        }
        drop(outgoing);
        self.wake.wake();
        !is_full
    }

    /// Has the child end: its stdin is closed when all is written, then it is asked, then made to.
    fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.wake.wake();
    }
}

impl Wire {
    fn was_read(&self, bytes: usize) {
        let unread = self.shared.unread.fetch_sub(bytes, Ordering::AcqRel);
        if unread > LIMITS.waiting_cap_bytes {
            self.wake.wake();
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.inbox.close();
        self.close();
    }
}

/// The wire as the loop drives it.
struct Lines {
    input: Input,
    output: Output,
    deframer: Deframer,
    inbox: Arc<Inbox<Came>>,
    shared: Arc<Shared>,
    end: Option<ConnectionError>,
}

impl Lines {
    fn came(&self, frame: &[u8]) -> Came {
        match Owned::parse(frame, LIMITS.max_depth) {
            Ok(message) => {
                self.shared.unread.fetch_add(frame.len(), Ordering::AcqRel);
                Came::Message(Box::new(message))
            }
            Err(error) => Came::Bad(error.to_string()),
        }
    }

    /// Notes what there is to write; who waits for room learns that there is some.
    fn note(&self) {
        let outgoing = lock(&self.shared.outgoing);
        self.shared
            .unsent
            .store(self.output.len(), Ordering::Release);
        let has_room = outgoing.len() + self.output.len() <= LIMITS.output_mark_bytes / 2;
        if has_room && self.shared.is_full.swap(false, Ordering::AcqRel) {
            self.inbox.push(Came::Room);
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
        let mut came = Vec::new();
        while let Some(event) = self.deframer.next(self.input.filled()) {
            came.push(match event {
                Event::Frame(range) => {
                    self.came(self.input.filled().get(range).unwrap_or_default())
                }
                Event::Oversize { .. } => Came::Bad("a message is too long".into()),
            });
        }
        self.input.consume(self.deframer.drain());
        self.inbox.extend(came);
    }

    fn receive_end(&mut self, now: Instant) {
        if !self.input.filled().iter().all(u8::is_ascii_whitespace) {
            self.input.extend(b"\n");
            self.receive(now);
        }
    }

    fn handle_submissions(&mut self, _: Instant) {
        let outgoing = std::mem::take(&mut *lock(&self.shared.outgoing));
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
        !self.is_closed() && self.shared.unread.load(Ordering::Acquire) <= LIMITS.waiting_cap_bytes
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn drain(&mut self, _: Instant, _: Duration, why: ConnectionError) {
        self.close(why);
    }

    fn is_closed(&self) -> bool {
        self.end.is_some() || self.shared.is_closed.load(Ordering::Acquire)
    }

    fn close(&mut self, why: ConnectionError) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.end.get_or_insert(why);
    }
}

impl Drop for Lines {
    /// The child is gone, and nothing more comes.
    fn drop(&mut self) {
        let why = self.end.take().unwrap_or(ConnectionError::ClosedLocally);
        self.inbox.push(Came::Ended(why.to_string()));
    }
}
