//! The package's exceptions: those made of the engine's errors, and those that handlers raise on purpose.

use mcpbolt::error::{CarrierError, ConnectionError, Origin, RequestError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::read;

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

/// The exception that is raised in a function whose round is over. The call is answered already, so it does
/// not matter how the function handles it.
pub fn round_over(py: Python<'_>) -> PyErr {
    let made = py
        .import("mcpbolt._errors")
        .and_then(|errors| errors.getattr("RoundOver")?.call0());
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Makes a `ProtocolError` of that kind.
///
/// # Errors
/// Any error of the interpreter.
pub fn protocol_error(py: Python<'_>, kind: &str, text: &str) -> PyResult<PyErr> {
    let error = errors(py)?.protocol_error.bind(py).call1((kind, text))?;
    Ok(PyErr::from_value(error))
}

/// The exceptions that handlers raise on purpose.
pub struct Errors {
    pub tool_error: Py<PyAny>,
    pub invalid_arguments: Py<PyAny>,
    pub action_error: Py<PyAny>,
    pub hand_back: Py<PyAny>,
    pub not_found: Py<PyAny>,
    pub peer_error: Py<PyAny>,
    pub protocol_error: Py<PyAny>,
}

pub fn errors(py: Python<'_>) -> PyResult<&Errors> {
    static ERRORS: PyOnceLock<Errors> = PyOnceLock::new();
    ERRORS.get_or_try_init(py, || {
        let module = py.import("mcpbolt._errors")?;
        let class = |name| module.getattr(name).map(Bound::unbind);
        Ok(Errors {
            tool_error: class("ToolError")?,
            invalid_arguments: class("InvalidArguments")?,
            action_error: class("ActionError")?,
            hand_back: class("HandBack")?,
            not_found: class("ResourceNotFound")?,
            peer_error: class("PeerError")?,
            protocol_error: class("ProtocolError")?,
        })
    })
}
