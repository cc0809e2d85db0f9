//! Passes events to a kernel other than the engine's registry: the official SDK, which keeps its own
//! handshake, validation, middleware and sessions.
//!
//! ```text
//!   connection ─▶ native: a tool or a list that the engine answers ─▶ workers, event loop, or at once
//!        │
//!        ╰──────▶ kernel: everything else, unchanged ─▶ event loop
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcpbolt::connection::{Call, CallKey, Progress, Replies, RequestOptions};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::handler::Head;
use mcpbolt::mcp::{Era, Method};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::ask;
use crate::exceptions::exception;
use crate::hub::Event;
use crate::kernel::{Kernel, KernelEvent};
use crate::panics::{self, caught};
use crate::session::{RunningTask, Session};
use crate::{read, write};

/// The JSON-RPC error code of an internal error.
const INTERNAL: i64 = -32603;
/// Practically no timeout: the kernel has timeouts of its own.
const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

/// Passes an event to the kernel. Runs on the event loop's thread.
pub fn tell(py: Python<'_>, session: &Arc<Session>, event: KernelEvent) -> PyResult<()> {
    let Some(kernel) = &session.hub.served.kernel else {
        return Ok(());
    };
    match event {
        KernelEvent::Request(call) => begin(py, session, kernel, call),
        KernelEvent::Notice(method, params) => {
            let params = params.map(|params| read::object(py, &params)).transpose()?;
            let peer = peer(py, session, kernel)?;
            peer.call_method1("notice", (method, params)).map(drop)
        }
        KernelEvent::Draining => {
            session.each_of_kernel(py, |task| task.call_method0("draining").map(drop))
        }
        KernelEvent::Closed => match session.peer.take(py) {
            Some(peer) => peer.call_method0("closed").map(drop),
            None => Ok(()),
        },
    }
}

/// The kernel's object for a connection; made on first use.
fn peer<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    kernel: &Kernel,
) -> PyResult<Bound<'py, PyAny>> {
    session.peer.or_make(py, || {
        let wire = Bound::new(py, KernelConnection(Arc::downgrade(session)))?;
        kernel.face.bind(py).call_method1("open", (wire,))
    })
}

fn begin(py: Python<'_>, session: &Arc<Session>, kernel: &Kernel, call: Call) -> PyResult<()> {
    if call.cancel.is_cancelled() {
        return Ok(());
    }
    let key = call.reply.key();
    let face = match call.reply.revision().era() {
        Era::Handshake => peer(py, session, kernel)?,
        Era::Stateless => kernel.face.bind(py).clone(),
    };
    let request = KernelRequest {
        head: session.head(key.stream()),
        session: session.clone(),
        call,
        over: AtomicBool::new(false),
    };
    let request = Bound::new(py, request)?;
    match face.call_method1("request", (&request,)) {
        // With eagerly started tasks it may have ended already.
        Ok(_) if request.get().over.load(Ordering::Acquire) => Ok(()),
        Ok(running) => {
            session.keep_task(key, RunningTask::of_kernel(running.unbind()));
            Ok(())
        }
        Err(error) => {
            request
                .get()
                .refuse(py, -32602, "the params cannot be read", None)?;
            Err(error)
        }
    }
}

/// A request that the kernel must answer.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct KernelRequest {
    session: Arc<Session>,
    call: Call,
    /// The HTTP request head that brought the request.
    head: Option<Arc<Head>>,
    over: AtomicBool,
}

/// An HTTP request head: method, path with query, headers, and the peer's address and port.
type RequestHead<'a, 'py> = (
    &'a str,
    &'a str,
    Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
    Option<(String, u16)>,
);

impl KernelRequest {
    /// Ends the request with what `write` appends, if it has not ended yet.
    fn end(&self, py: Python<'_>, write: impl FnOnce(&mut Replies)) -> PyResult<()> {
        if self.over.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let hub = &self.session.hub;
        let last = self.session.forget_task(&self.call.reply.key()) || !hub.has_tasks();
        if last && hub.is_over() {
            // Wakes the event loop, which may now stop watching this server.
            hub.inbox.push(Event::Ended);
        }
        hub.settled.put(&self.session, write);
        hub.flush_soon(py, last)
    }

    fn write(&self, py: Python<'_>, write: impl FnOnce(&mut Replies)) -> PyResult<()> {
        let hub = &self.session.hub;
        hub.settled.put(&self.session, write);
        hub.flush_soon(py, false)
    }
}

#[pymethods]
impl KernelRequest {
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        read::value(py, self.call.reply.id().raw())
    }

    #[getter]
    fn method(&self) -> PyResult<String> {
        Ok(self
            .call
            .message
            .as_ref()
            .method()
            .unwrap_or_default()
            .into())
    }

    /// Parses the params, anew on each call.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let params = self.call.message.as_ref().params();
        params.map(|params| read::object(py, params)).transpose()
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.call.reply.revision().rules().name
    }

    /// Whether the client asked for progress.
    #[getter]
    fn wants_progress(&self) -> bool {
        self.call.reply.wants_progress()
    }

    #[getter]
    fn wire(&self) -> KernelConnection {
        KernelConnection(Arc::downgrade(&self.session))
    }

    /// The HTTP request head that brought the request; `None` on other transports.
    fn head<'py>(&self, py: Python<'py>) -> Option<RequestHead<'_, 'py>> {
        let head = self.head.as_ref()?;
        let headers = head.headers.iter().map(|(name, value)| {
            let name = PyBytes::new(py, name.as_bytes());
            (name, PyBytes::new(py, value))
        });
        let peer = head.peer.map(|peer| (peer.ip().to_string(), peer.port()));
        Some((&*head.method, &*head.target, headers.collect(), peer))
    }

    /// Whether the request came over HTTP and its head is available.
    #[getter]
    fn has_head(&self) -> bool {
        self.head.is_some()
    }

    /// Answers with a result, a JSON object, to which the engine adds the members that the revision requires.
    fn answer_native(&self, py: Python<'_>, result: &Bound<'_, PyBytes>) -> PyResult<()> {
        let json = str::from_utf8(result.as_bytes()).unwrap_or("{}");
        self.end(py, |replies| {
            replies.result(&self.call.reply, |out| out.object(json))
        })
    }

    /// Answers with a complete result.
    fn answer(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let written = caught(|| {
            panics::point("kernel");
            write::json(result)
        });
        let result = match written {
            Ok(result) => result?,
            Err(panic) => return self.refuse(py, INTERNAL, &panic.to_string(), None),
        };
        if self.call.method == Some(Method::Initialize) {
            self.session.is_open.store(true, Ordering::Release);
        }
        self.end(py, |replies| {
            replies.whole_result(&self.call.reply, &result)
        })
    }

    /// Answers with an error.
    #[pyo3(signature = (code, message, data = None))]
    fn refuse(
        &self,
        py: Python<'_>,
        code: i64,
        message: &str,
        data: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let data = data.map(write::json).transpose()?;
        self.end(py, |replies| {
            replies.error_code(&self.call.reply, code, message, data.as_deref())
        })
    }

    /// Ends the request without an answer.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |_| ())
    }

    /// Sends a notification on the request's behalf.
    fn notify(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let params = params.map(write::json).transpose()?;
        self.write(py, |replies| {
            replies.notify(&self.call.reply, method, params.as_deref())
        })
    }

    /// Reports progress, if the client asked for it.
    fn progress(
        &self,
        py: Python<'_>,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> PyResult<()> {
        let progress = Progress {
            progress,
            total,
            message,
        };
        self.write(py, |replies| replies.progress(&self.call.reply, progress))
    }

    /// Sends a request to the client on this request's behalf; `future` gets the result. Returns a number
    /// to forget it by.
    fn ask(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        future: Py<PyAny>,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let within = Some(self.call.reply.key());
        question(
            py,
            &self.session,
            (method, params),
            within,
            future,
            on_progress,
        )
    }
}

/// A connection as the kernel uses it outside of requests. Weak, since the connection holds the kernel's
/// object, which holds this.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct KernelConnection(Weak<Session>);

impl KernelConnection {
    /// # Errors
    /// The connection has ended.
    fn session(&self, py: Python<'_>) -> PyResult<Arc<Session>> {
        let closed = || exception(py, &RequestError::Closed(ConnectionError::ClosedLocally));
        self.0.upgrade().ok_or_else(closed)
    }
}

#[pymethods]
impl KernelConnection {
    /// Sends a notification. Does nothing if the connection has ended.
    fn notify(&self, method: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let params = params.map(write::json).transpose()?;
        if let Some(session) = self.0.upgrade() {
            // Earlier answers are sent first.
            session.hub.hand_over(&session.hub.settled);
            // The params are valid; an error means that the connection has ended.
            let _ = session.handle.notify(method, params.as_deref());
        }
        Ok(())
    }

    /// Sends a request to the client; `future` gets the result. Returns a number to forget it by.
    fn ask(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        future: Py<PyAny>,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let session = self.session(py)?;
        question(py, &session, (method, params), None, future, on_progress)
    }

    /// The session id, in an HTTP session.
    #[getter]
    fn session_id(&self) -> Option<String> {
        self.0.upgrade()?.name().map(str::to_owned)
    }

    /// Drops a request whose answer is no longer awaited: the client is sent a cancellation.
    fn forget(&self, number: u64) {
        if let Some(session) = self.0.upgrade() {
            drop(session.hub.questions.take(number));
        }
    }
}

fn question(
    py: Python<'_>,
    session: &Arc<Session>,
    (method, params): (&str, Option<&Bound<'_, PyAny>>),
    within: Option<CallKey>,
    future: Py<PyAny>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let params = params.map(write::json).transpose()?;
    let mut options = RequestOptions {
        timeout: Some(NO_TIMEOUT),
        max_timeout: Some(NO_TIMEOUT),
        within,
        ..RequestOptions::default()
    };
    if let Some(report) = on_progress {
        let (hub, report) = (session.hub.clone(), Arc::new(report));
        options.progress = Some(Arc::new(move |news: Progress<'_>| {
            let sentence = news.message.map(str::to_owned);
            let far = (news.progress, news.total, sentence);
            hub.inbox.push(Event::Progress(report.clone(), far));
        }));
    }
    session.hub.hand_over(&session.hub.settled);
    ask::any(py, session, (method, params.as_deref()), options, future)
}
