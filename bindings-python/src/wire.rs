//! Raw messages to and from a child process, for a client with its own protocol implementation.
//!
//! ```text
//!   child ─▶ io::Wire (its thread) ─▶ inbox ─▶ drain: on_message(kind, id, method, body)
//!   child ◀─ io::Wire ◀──────── bytes ◀────────── send
//! ```

use std::sync::Arc;

use mcpbolt::error::ConnectionError;
use mcpbolt::io::{ChildCommand, Stderr, WireEvent, WireHandle};
use mcpbolt::limits::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::engine::codec;
use crate::future::tell;
use crate::inbox::Inbox;
use crate::signal::Wake;

/// The most messages handled in one turn of the event loop.
const DRAIN: usize = 256;

/// Input from the child's thread.
enum Came {
    WireEvent(WireEvent),
    Stderr(String),
    Ended(String),
}

/// The Python callbacks.
#[derive(FromPyObject)]
struct Ears {
    on_message: Py<PyAny>,
    on_bad: Py<PyAny>,
    on_stderr: Option<Py<PyAny>>,
    on_room: Py<PyAny>,
    on_ended: Py<PyAny>,
}

/// A child process and its messages.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Wire {
    inbox: Arc<Inbox<Came>>,
    handle: WireHandle,
    ears: Ears,
}

#[pymethods]
impl Wire {
    /// Starts a child with exactly these environment variables.
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
        let handle = WireHandle::new(Limits::STDIO, child.wake());
        let wire = Self {
            inbox: inbox.clone(),
            handle: handle.clone(),
            ears,
        };
        std::thread::Builder::new()
            .name("mcpbolt-wire".into())
            .spawn(move || {
                let hearing = inbox.clone();
                let mut ending = Ending(inbox, ConnectionError::ClosedLocally);
                let hear =
                    move |heard: Vec<_>| hearing.extend(heard.into_iter().map(Came::WireEvent));
                let mut wire = handle.wire(hear);
                let _ = child.run(&mut wire);
                if let Some(why) = wire.end() {
                    ending.1 = why.clone();
                }
            })?;
        Ok(wire)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.ears.on_stderr)?;
        let ears = &self.ears;
        let all = [
            &ears.on_message,
            &ears.on_bad,
            &ears.on_room,
            &ears.on_ended,
        ];
        all.into_iter().try_for_each(|ear| visit.call(ear))
    }

    /// The wakeup that is raised when [`drain`](Self::drain) has something to do.
    fn wake(&self) -> Wake {
        Wake(self.inbox.signal().clone())
    }

    /// Passes what has come to the callbacks.
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
                Came::WireEvent(WireEvent::Message(message)) => {
                    self.handle.was_read(message.bytes().len());
                    match codec::parts(py, message.bytes(), (*message).as_ref().envelope(), None) {
                        Ok(parts) => tell(py, Some(on_message), parts),
                        Err(error) => tell(py, Some(on_bad), (error.into_value(py),)),
                    }
                }
                Came::WireEvent(WireEvent::Bad(why)) => {
                    let error = codec::bad(py, &why, None, -32700, None);
                    tell(py, Some(on_bad), (error.into_value(py),));
                }
                Came::Stderr(line) => tell(py, on_stderr.as_ref(), (line,)),
                Came::WireEvent(WireEvent::Room) => tell(py, Some(on_room), ()),
                Came::Ended(why) => tell(py, Some(on_ended), (why,)),
            }
        }
    }

    /// Sends a message, given without its line end. Returns whether there is room for more.
    fn send(&self, message: &[u8]) -> bool {
        self.handle.send(message)
    }

    /// Shuts the child down: closes its stdin when all is written, then sends SIGTERM, then SIGKILL.
    fn close(&self) {
        self.handle.close();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.inbox.close();
        self.close();
    }
}

/// Reports the end of the child when dropped, so that it is reported even if its thread panics.
struct Ending(Arc<Inbox<Came>>, ConnectionError);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.push(Came::Ended(self.1.to_string()));
    }
}
