//! The events of a connection that a program drives itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpbolt::connection::{
    Call, CallKey, ConnectionEvent, Handle, Progress as News, Stray as What,
};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{ErrorKind, LogLevel};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::codec;
use super::message::Message;
use crate::exceptions::exception;
use crate::write;

/// The other side's requests that are not answered yet, by the key of the call.
pub type Calls = Mutex<HashMap<CallKey, Py<Request>>>;

/// Makes the Python object of an event; `None` for the cancellation of a request that was answered already.
pub fn seen(
    py: Python<'_>,
    event: ConnectionEvent,
    handle: &Handle,
    calls: &Arc<Calls>,
) -> PyResult<Option<Py<PyAny>>> {
    Ok(Some(match event {
        ConnectionEvent::Opened(revision) => {
            let revision = revision.name();
            Py::new(py, Opened { revision })?.into_any()
        }
        ConnectionEvent::Request(call) => {
            let key = call.reply.key();
            let request = Request {
                message: Py::new(py, Message::came(call.message.clone()))?,
                handle: handle.clone(),
                calls: Arc::downgrade(calls),
                call: *call,
            };
            let request = Py::new(py, request)?;
            lock(calls).insert(key, request.clone_ref(py));
            request.into_any()
        }
        ConnectionEvent::Cancelled(key, reason) => {
            let Some(request) = lock(calls).remove(&key) else {
                return Ok(None);
            };
            Py::new(py, Cancelled { request, reason })?.into_any()
        }
        ConnectionEvent::Notification(message) => {
            let message = Py::new(py, Message::came(message))?;
            Py::new(py, Notification { message })?.into_any()
        }
        ConnectionEvent::Progress {
            number,
            progress,
            total,
            message,
        } => {
            let news = Progress {
                number,
                progress,
                total,
                message,
            };
            Py::new(py, news)?.into_any()
        }
        ConnectionEvent::Answered(number, outcome) => {
            let (message, error) = match outcome {
                Ok(message) => (Some(Py::new(py, Message::came(message))?), None),
                Err(error) => (None, Some(exception(py, &error).into_value(py).into_any())),
            };
            let answered = Answered {
                number,
                message,
                error,
            };
            Py::new(py, answered)?.into_any()
        }
        ConnectionEvent::Stray(what, frame) => {
            let what = match what {
                What::Answer => "answer",
                What::BadFrame => "bad_frame",
                What::Oversize => "oversize",
                What::Cancel => "cancel",
                _ => "unexpected",
            };
            Py::new(py, Stray { what, frame })?.into_any()
        }
        ConnectionEvent::Closed(reason) => {
            let error = exception(py, &RequestError::Closed(reason));
            let error = error.into_value(py).into_any();
            Py::new(py, Closed { error })?.into_any()
        }
    }))
}

/// The connection is open, in the given revision.
#[pyclass(frozen, get_all, module = "mcpbolt.engine")]
pub struct Opened {
    revision: &'static str,
}

/// A request of the other side. Answer it once, from any thread.
#[pyclass(frozen, module = "mcpbolt.engine")]
pub struct Request {
    #[pyo3(get)]
    message: Py<Message>,
    call: Call,
    handle: Handle,
    /// Weak, since the connection's map holds this request.
    calls: Weak<Calls>,
}

/// A request of the other side was cancelled: nobody waits for its answer any more.
#[pyclass(frozen, get_all, module = "mcpbolt.engine")]
pub struct Cancelled {
    request: Py<Request>,
    reason: Option<String>,
}

/// A notification that the engine does not handle itself.
#[pyclass(frozen, get_all, module = "mcpbolt.engine")]
pub struct Notification {
    message: Py<Message>,
}

/// Progress of a request of this side.
#[pyclass(frozen, get_all, module = "mcpbolt.engine")]
pub struct Progress {
    number: u64,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// A request of this side is over: a message with its result, or an error (`PeerError`,
/// `RequestTimeout`, `ConnectionClosed`, …).
#[pyclass(frozen, get_all, module = "mcpbolt.engine")]
pub struct Answered {
    number: u64,
    message: Option<Py<Message>>,
    error: Option<Py<PyAny>>,
}

/// Input that belongs to no request and is not a valid message: "answer", "bad_frame", "oversize",
/// "cancel" or "unexpected", with its bytes, which may be truncated.
#[pyclass(frozen, module = "mcpbolt.engine")]
pub struct Stray {
    #[pyo3(get)]
    what: &'static str,
    frame: Vec<u8>,
}

/// The connection has ended.
#[pyclass(frozen, get_all, module = "mcpbolt.engine")]
pub struct Closed {
    error: Py<PyAny>,
}

#[pymethods]
impl Cancelled {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)
    }
}

#[pymethods]
impl Notification {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.message)
    }
}

#[pymethods]
impl Answered {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.message)?;
        visit.call(&self.error)
    }
}

#[pymethods]
impl Closed {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.error)
    }
}

#[pymethods]
impl Stray {
    #[getter]
    fn frame(&self) -> &[u8] {
        &self.frame
    }
}

#[pymethods]
impl Request {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.message)
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.call.reply.revision().name()
    }

    #[getter]
    fn cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// Answers with a result object; members that the revision requires are added.
    fn respond(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let result = codec::object(result)?;
        self.over();
        let mut replies = self.handle.replies();
        replies.result(&self.call.reply, |out| out.object(&result));
        Ok(())
    }

    /// Answers with an error. `kind` is an error code of your own, or a kind whose code the revision defines.
    #[pyo3(signature = (kind, message, data = None))]
    fn fail(
        &self,
        kind: &Bound<'_, PyAny>,
        message: &str,
        data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let data = data.map(write::json).transpose()?;
        let data = data.as_deref();
        let mut replies = self.handle.replies();
        match kind.extract::<i64>() {
            Ok(code) => replies.error_code(&self.call.reply, code, message, data),
            Err(_) => replies.error(&self.call.reply, named(kind.extract()?)?, message, data),
        }
        self.over();
        Ok(())
    }

    /// Reports progress, if the other side asked for it.
    #[pyo3(signature = (progress, total = None, message = None))]
    fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let news = News {
            progress,
            total,
            message,
        };
        self.handle.replies().progress(&self.call.reply, news);
    }

    /// Sends a log message, if the other side wants messages of that level.
    #[pyo3(signature = (level, data, logger = None))]
    fn log(&self, level: &str, data: &Bound<'_, PyAny>, logger: Option<&str>) -> PyResult<()> {
        let level = LogLevel::parse(level)
            .ok_or_else(|| PyValueError::new_err(format!("there is no level {level:?}")))?;
        let data = write::json(data)?;
        let mut replies = self.handle.replies();
        replies.log(&self.call.reply, level, logger, &data);
        Ok(())
    }
}

impl Request {
    fn over(&self) {
        if let Some(calls) = self.calls.upgrade() {
            let over = lock(&calls).remove(&self.call.reply.key());
            drop(over);
        }
    }
}

fn named(kind: &str) -> PyResult<ErrorKind> {
    Ok(match kind {
        "invalid_request" => ErrorKind::InvalidRequest,
        "method_not_found" => ErrorKind::MethodNotFound,
        "invalid_params" => ErrorKind::InvalidParams,
        "tool_not_found" => ErrorKind::ToolNotFound,
        "prompt_not_found" => ErrorKind::PromptNotFound,
        "not_found" => ErrorKind::ResourceNotFound,
        "missing_capability" => ErrorKind::MissingClientCapability,
        "rejected" => ErrorKind::Rejected,
        "internal" => ErrorKind::Internal,
        _ => return Err(PyValueError::new_err(format!("there is no kind {kind:?}"))),
    })
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
