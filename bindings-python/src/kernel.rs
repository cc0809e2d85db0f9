//! Requests that another kernel than the engine's registry answers: that of the official SDK, which
//! keeps its own handshake, validation, middleware and sessions.
//!
//! ```text
//!   connection ─▶ native: a tool or a list that was handed over ─▶ workers, event loop, or at once
//!        │
//!        ╰──────▶ kernel: everything else, as it came ─▶ event loop
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpbolt::connection::{Call, CallKey, Progress, Replies, RequestOptions};
use mcpbolt::handler::{Head, Operation};
use mcpbolt::mcp::{Era, Method};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::ask;
use crate::hub::Event;
use crate::native::Natives;
use crate::running::Running;
use crate::session::Session;
use crate::{read, write};

/// The kernel's own word on timeouts counts.
const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

/// Another kernel, and what is answered without it.
#[derive(Debug)]
pub struct Kernel {
    /// `open(wire)` begins a connection of the handshake era; `request(request)` takes one that
    /// stands alone.
    face: Py<PyAny>,
    takes_pings: bool,
    pub natives: Natives,
}

/// What the kernel is told of a connection.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of it is requests")]
pub enum News {
    /// It asks for something.
    Request(Call),
    /// It tells something: the method and the params.
    Notice(String, Option<String>),
    /// What would stay open for ever is to end.
    Draining,
    /// It has ended.
    Closed,
}

/// The number of requests that are the kernel's.
pub fn target() -> u32 {
    Operation::Extension(Operation::MAX_NUMBER).to_target()
}

impl Kernel {
    pub fn new(py: Python<'_>, face: Py<PyAny>) -> PyResult<Self> {
        let takes_pings = face.bind(py).getattr("takes_pings")?.is_truthy()?;
        Ok(Self {
            face,
            takes_pings,
            natives: Natives::default(),
        })
    }

    /// Whether it answers requests of that method which the engine could answer.
    pub fn opens(&self, method: Method) -> bool {
        method != Method::Ping || self.takes_pings
    }
}

/// Tells the kernel. On the thread of the event loop.
pub fn tell(py: Python<'_>, session: &Arc<Session>, news: News) -> PyResult<()> {
    let Some(kernel) = &session.hub.catalog.kernel else {
        return Ok(());
    };
    match news {
        News::Request(call) => begin(py, session, kernel, call),
        News::Notice(method, params) => {
            let params = params.map(|params| read::object(py, &params)).transpose()?;
            let peer = peer(py, session, kernel)?;
            peer.call_method1("notice", (method, params)).map(drop)
        }
        News::Draining => {
            session.each_of_kernel(py, |task| task.call_method0("draining").map(drop))
        }
        News::Closed => match session.peer.take(py) {
            Some(peer) => peer.call_method0("closed").map(drop),
            None => Ok(()),
        },
    }
}

/// The kernel's side of a connection.
fn peer<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    kernel: &Kernel,
) -> PyResult<Bound<'py, PyAny>> {
    session.peer.or_make(py, || {
        let wire = Bound::new(py, Line(session.clone()))?;
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
    let request = Owed {
        head: session.head(key.stream()),
        session: session.clone(),
        call,
        over: AtomicBool::new(false),
    };
    let request = Bound::new(py, request)?;
    match face.call_method1("request", (&request,)) {
        // Where tasks start eagerly it may have ended already.
        Ok(_) if request.get().over.load(Ordering::Acquire) => Ok(()),
        Ok(running) => {
            session.keep_task(key, Running::of_kernel(running.unbind()));
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

/// A request that the kernel owes an answer.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Owed {
    session: Arc<Session>,
    call: Call,
    /// What brought it.
    head: Option<Arc<Head>>,
    over: AtomicBool,
}

/// Method, path and query, headers, and where it comes from.
type Request<'a, 'py> = (
    &'a str,
    &'a str,
    Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
    Option<(String, u16)>,
);

impl Owed {
    /// It is over: answered, or given up.
    fn end(&self, py: Python<'_>, write: impl FnOnce(&mut Replies)) -> PyResult<()> {
        if self.over.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let hub = &self.session.hub;
        let last = self.session.forget_task(&self.call.reply.key()) || !hub.has_tasks();
        if last && hub.is_over() {
            // Who still looks, looks no longer.
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
impl Owed {
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

    /// The params, made anew each time.
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let params = self.call.message.as_ref().params();
        params.map(|params| read::object(py, params)).transpose()
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.call.reply.revision().rules().name
    }

    /// Whether its client asked for progress.
    #[getter]
    fn wants_progress(&self) -> bool {
        self.call.reply.wants_progress()
    }

    #[getter]
    fn wire(&self) -> Line {
        Line(self.session.clone())
    }

    /// The request of HTTP that brought it, where one did.
    fn head<'py>(&self, py: Python<'py>) -> Option<Request<'_, 'py>> {
        let head = self.head.as_ref()?;
        let headers = head.headers.iter().map(|(name, value)| {
            let name = PyBytes::new(py, name.as_bytes());
            (name, PyBytes::new(py, value))
        });
        let peer = head.peer.map(|peer| (peer.ip().to_string(), peer.port()));
        Some((&*head.method, &*head.target, headers.collect(), peer))
    }

    /// Whether a request of HTTP brought it.
    #[getter]
    fn has_head(&self) -> bool {
        self.head.is_some()
    }

    /// Answers with a result in JSON, an object, to which the engine adds what the revision asks for.
    fn answer_native(&self, py: Python<'_>, result: &Bound<'_, PyBytes>) -> PyResult<()> {
        let json = str::from_utf8(result.as_bytes()).unwrap_or("{}");
        self.end(py, |replies| {
            replies.result(&self.call.reply, |out| out.object(json))
        })
    }

    /// Answers with a result that is complete.
    fn answer(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let result = write::json(result)?;
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

    /// Nobody waits for an answer any more.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |_| ())
    }

    /// Tells something on its behalf.
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

    /// Reports progress, if its client asked for it.
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

    /// Asks its client; `future` gets the result. Gives a number to forget it by.
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

/// A connection, as the kernel reaches it outside of requests.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Line(Arc<Session>);

#[pymethods]
impl Line {
    /// Tells something.
    fn notify(&self, method: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let params = params.map(write::json).transpose()?;
        // What was said before goes before.
        self.0.hub.hand_over(&self.0.hub.settled);
        // The params are an object; a connection that has ended tells nobody anything.
        let _ = self.0.handle.notify(method, params.as_deref());
        Ok(())
    }

    /// Asks the client; `future` gets the result. Gives a number to forget it by.
    fn ask(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        future: Py<PyAny>,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        question(py, &self.0, (method, params), None, future, on_progress)
    }

    /// Its name, where it is a session of HTTP.
    #[getter]
    fn session_id(&self) -> Option<&str> {
        self.0.name()
    }

    /// Nobody waits for that answer any more: the client is told.
    fn forget(&self, number: u64) {
        self.0.hub.questions.forget(number);
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
