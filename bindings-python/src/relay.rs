//! Raw messages to and from a server over HTTP, for a client with its own protocol implementation.

use std::sync::Arc;

use mcpbolt::error::CarrierError;
use mcpbolt::io::http::{Relay as Carried, RelayEvent, RelayOptions, SendOptions};
use mcpbolt::limits::Limits;
use mcpbolt::settings::{ConnectSettings, Seconds};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::engine::codec;
use crate::future::tell;
use crate::inbox::Inbox;
use crate::settings::{read, wrong};
use crate::signal::Wake;

/// The most messages handled in one turn of the event loop.
const DRAIN: usize = 256;

/// The Python callbacks.
#[derive(FromPyObject)]
struct Ears {
    on_message: Py<PyAny>,
    on_bad: Py<PyAny>,
    on_position: Py<PyAny>,
    on_done: Py<PyAny>,
    on_ended: Py<PyAny>,
}

/// A raw connection to a server over HTTP.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Relay {
    inbox: Arc<Inbox<RelayEvent>>,
    carried: Carried,
    ears: Ears,
}

#[pymethods]
impl Relay {
    /// `options` is JSON.
    #[new]
    fn new(
        url: &str,
        options: &str,
        max_event_bytes: Option<usize>,
        ends_session: bool,
        ears: Ears,
    ) -> PyResult<Self> {
        let inbox = Arc::new(Inbox::new()?);
        let defaults = RelayOptions::default();
        let options = RelayOptions {
            http: read::<ConnectSettings<Seconds>>(options)?.http()?,
            max_event_bytes: max_event_bytes.unwrap_or(defaults.max_event_bytes),
            ends_session,
            ..defaults
        };
        let arrives = inbox.clone();
        let carried = Carried::open(url, options, move |arrived| arrives.push(arrived));
        let carried = carried.map_err(wrong)?;
        Ok(Self {
            inbox,
            carried,
            ears,
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let ears = &self.ears;
        let all = [
            &ears.on_message,
            &ears.on_bad,
            &ears.on_position,
            &ears.on_done,
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
            on_position,
            on_done,
            on_ended,
        } = &self.ears;
        for arrived in self.inbox.take(DRAIN) {
            match arrived {
                RelayEvent::Message { of, message } => {
                    self.carried.was_read(message.bytes().len());
                    match codec::parts(py, message.bytes(), (*message).as_ref().envelope(), None) {
                        Ok((kind, id, method, body)) => {
                            tell(py, Some(on_message), (kind, id, method, body, of));
                        }
                        Err(error) => tell(py, Some(on_bad), (error.into_value(py), of)),
                    }
                }
                RelayEvent::Bad(error) => {
                    let error = codec::bad(py, &error.to_string(), None, error.code(), None);
                    tell(py, Some(on_bad), (error.into_value(py),));
                }
                RelayEvent::Position { of, position } => {
                    tell(py, Some(on_position), (of, position))
                }
                RelayEvent::Done { of, outcome } => {
                    let why = outcome.err().map(
                        |CarrierError {
                             fault, status, why, ..
                         }| (fault.name(), status, String::from(why)),
                    );
                    tell(py, Some(on_done), (of, why));
                }
                RelayEvent::Ended => tell(py, Some(on_ended), ("closed by this side",)),
                // The Python package has no use for the rest.
                _ => {}
            }
        }
    }

    /// Sends a message with these headers, or, with `resume`, requests the rest of a stream instead. Returns
    /// its number.
    fn send(&self, message: &[u8], headers: Vec<(String, String)>, resume: Option<String>) -> u64 {
        let along = SendOptions { headers, resume };
        self.carried.send(message.to_vec(), along)
    }

    /// Whether so many bytes are unsent that requests should wait.
    fn is_full(&self) -> bool {
        self.carried.unsent_bytes() > Limits::STDIO.output_mark_bytes
    }

    /// Cancels requests in flight, and ends the session.
    fn close(&self) {
        self.carried.close();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.inbox.close();
    }
}
