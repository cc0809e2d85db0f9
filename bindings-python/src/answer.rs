//! The answer to a client's request, parsed when it is looked at.

use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::message::Message;
use pyo3::prelude::*;

use crate::read;

/// A result as it came.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Answer(pub Message);

#[pymethods]
impl Answer {
    /// The result as Python objects, made anew each time.
    fn parse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        read::value(py, self.0.as_ref().result().unwrap_or("{}"))
    }

    /// The result as it stands on the wire.
    fn json(&self) -> &str {
        self.0.as_ref().result().unwrap_or("{}")
    }
}

/// What a waiter learns, as an exception of the package's.
pub fn exception(py: Python<'_>, error: &RequestError) -> PyErr {
    let made = (|| {
        let errors = py.import("mcpbolt._errors")?;
        let text = error.to_string();
        let class = match error {
            RequestError::Peer(peer) => {
                let data = peer
                    .data
                    .as_deref()
                    .map(|data| read::value(py, data))
                    .transpose()?;
                let arguments = (peer.code, &*peer.message, data);
                return errors.getattr("PeerError")?.call1(arguments);
            }
            RequestError::Cancelled(_) => "RequestCancelled",
            RequestError::TimedOut => "RequestTimeout",
            RequestError::Closed(reason) => {
                let made = errors.getattr("ConnectionClosed")?.call1((text,))?;
                made.setattr("origin", origin(reason))?;
                made.setattr("reason", reason.name())?;
                return Ok(made);
            }
            RequestError::Overloaded => "Overloaded",
            RequestError::Unsupported(_) => "Unsupported",
            RequestError::BadAnswer(_) => "BadAnswer",
            _ => "Misuse",
        };
        errors.getattr(class)?.call1((text,))
    })();
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

fn origin(reason: &ConnectionError) -> &'static str {
    use mcpbolt::error::Origin;
    match reason.origin() {
        Origin::Caller => "caller",
        Origin::Engine => "engine",
        Origin::Peer => "peer",
        Origin::Io => "io",
    }
}
