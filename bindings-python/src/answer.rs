//! The result of a client's request, parsed when it is accessed.

use mcpbolt::error::{CarrierError, ConnectionError, Origin, RequestError};
use mcpbolt::message::Message;
use pyo3::prelude::*;

use crate::read;

/// The result of a client's request.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Answer(pub Message);

#[pymethods]
impl Answer {
    /// Parses the result into Python objects, anew on each call.
    fn parse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        read::value(py, self.0.as_ref().result().unwrap_or("{}"))
    }

    /// Returns the result as JSON text, as it came.
    fn json(&self) -> &str {
        self.0.as_ref().result().unwrap_or("{}")
    }
}

/// Makes the package's exception for the error of a request.
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
            RequestError::Carrier(error) => return carrier_error(&errors, error),
            RequestError::Cancelled(_) => "RequestCancelled",
            RequestError::TimedOut => "RequestTimeout",
            RequestError::Closed(reason) => {
                let made = errors.getattr("ConnectionClosed")?.call1((text,))?;
                made.setattr("origin", origin(reason.origin()))?;
                made.setattr("reason", reason.name())?;
                if let ConnectionError::Carrier(error) = reason {
                    made.setattr("__cause__", carrier_error(&errors, error)?)?;
                }
                return Ok(made);
            }
            RequestError::Overloaded => "Overloaded",
            RequestError::Unsupported(_) => "Unsupported",
            RequestError::BadAnswer(_) | RequestError::BadResult(_) => "BadAnswer",
            _ => "Misuse",
        };
        errors.getattr(class)?.call1((text,))
    })();
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

fn carrier_error<'py>(
    errors: &Bound<'py, PyModule>,
    error: &CarrierError,
) -> PyResult<Bound<'py, PyAny>> {
    let made = errors.getattr("CarrierError")?.call1((&*error.why,))?;
    made.setattr("origin", origin(error.origin()))?;
    made.setattr("fault", error.fault.name())?;
    made.setattr("status", error.status)?;
    made.setattr("authenticate", error.authenticate.as_deref())?;
    Ok(made)
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Caller => "caller",
        Origin::Engine => "engine",
        Origin::Peer => "peer",
        Origin::Io => "io",
    }
}
