//! A connection that a program drives itself: bytes in, bytes and events out.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::{Config, Framing, OpeningMode, Polled, RequestOptions};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Revision, Revisions, Side};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::clock::Clock;
use super::codec;
use super::events::{Calls, lock, seen};
use crate::exceptions::exception;
use crate::settings::seconds;

/// The protocol state of one connection over one stream, without I/O. It reads the machine's clock only
/// in calls without `now`.
#[pyclass(module = "mcpbolt.engine")]
pub struct Connection {
    inner: Polled,
    calls: Arc<Calls>,
    clock: Clock,
}

/// The arguments of [`Connection::new`].
struct Setup {
    side: String,
    name: String,
    version: String,
    /// A JSON object.
    capabilities: String,
    instructions: Option<String>,
    revisions: Option<Vec<String>>,
    opening: String,
    framing: String,
    max_message_bytes: Option<usize>,
    max_depth: Option<usize>,
    timeout: Option<f64>,
    now: Option<f64>,
}

impl Setup {
    fn config(&self) -> PyResult<Config> {
        let side = Side::parse(&self.side).ok_or_else(|| none("side", &self.side))?;
        let mut config = Config::new(side, &self.name, &self.version);
        config.capabilities = std::array::from_fn(|_| self.capabilities.as_str().into());
        config.instructions = self.instructions.as_deref().map(Into::into);
        if let Some(names) = &self.revisions {
            let names = names.iter().map(String::as_str);
            config.revisions = Revisions::parse(names).map_err(|name| none("revision", name))?;
        }
        let opening = OpeningMode::parse(&self.opening);
        config.opening = opening.ok_or_else(|| none("opening", &self.opening))?;
        let own = Limits::STDIO;
        config.limits = Limits {
            max_message_bytes: self.max_message_bytes.unwrap_or(own.max_message_bytes),
            max_depth: self.max_depth.unwrap_or(own.max_depth),
            request_timeout: self.timeout.map_or(Ok(own.request_timeout), seconds)?,
            ..own
        };
        Ok(config)
    }
}

fn none(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("there is no {what} {name:?}"))
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (
        side, name, version = "0.0.0", *, capabilities = None, instructions = None, revisions = None,
        opening = "probe", framing = "line", max_message_bytes = None, max_depth = None, timeout = None, now = None
    ))]
    #[expect(
        clippy::too_many_arguments,
        reason = "all but three have names in Python"
    )]
    fn new(
        side: &str,
        name: &str,
        version: &str,
        capabilities: Option<&Bound<'_, PyAny>>,
        instructions: Option<String>,
        revisions: Option<Vec<String>>,
        opening: &str,
        framing: &str,
        max_message_bytes: Option<usize>,
        max_depth: Option<usize>,
        timeout: Option<f64>,
        now: Option<f64>,
    ) -> PyResult<Self> {
        let capabilities = capabilities.map(codec::object).transpose()?;
        let setup = Setup {
            side: side.into(),
            name: name.into(),
            version: version.into(),
            capabilities: capabilities.unwrap_or_else(|| "{}".into()),
            instructions,
            revisions,
            opening: opening.into(),
            framing: framing.into(),
            max_message_bytes,
            max_depth,
            timeout,
            now,
        };
        Self::of(setup)
    }

    /// Processes received bytes, in chunks of any size.
    #[pyo3(signature = (data, /, now = None))]
    fn feed(&mut self, data: &Bound<'_, PyAny>, now: Option<f64>) -> PyResult<()> {
        let now = self.clock.at(now)?;
        let bytes = codec::bytes_of(data)?;
        self.inner.feed(bytes.as_bytes(), now);
        Ok(())
    }

    /// Signals the end of the input.
    #[pyo3(signature = (now = None))]
    fn feed_end(&mut self, now: Option<f64>) -> PyResult<()> {
        let now = self.clock.at(now)?;
        self.inner.feed_end(now);
        Ok(())
    }

    /// Returns the events since the last call, in order.
    fn events<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        while let Some(event) = self.inner.next_event() {
            if let Some(event) = seen(py, event, self.inner.handle(), &self.calls)? {
                list.append(event)?;
            }
        }
        Ok(list)
    }

    /// Returns all bytes to write now, and considers them written.
    #[pyo3(signature = (now = None))]
    fn output<'py>(&mut self, py: Python<'py>, now: Option<f64>) -> PyResult<Bound<'py, PyBytes>> {
        let now = self.clock.at(now)?;
        let output = self.inner.output(now);
        let head = output.head();
        if head.len() == output.len() {
            let bytes = PyBytes::new(py, head);
            output.advance(bytes.as_bytes().len());
            return Ok(bytes);
        }
        let pieces: Vec<_> = output.take().collect();
        Ok(PyBytes::new(py, &pieces.concat()))
    }

    /// Sends a request and returns its number, which its `Answered` event has; with `progress`, `Progress`
    /// events come before that.
    #[pyo3(signature = (method, params = None, *, timeout = None, max_timeout = None, progress = false, meta = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "all but two have names in Python"
    )]
    fn request(
        &mut self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        max_timeout: Option<f64>,
        progress: bool,
        meta: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let params = params.map(codec::object).transpose()?;
        let options = RequestOptions {
            timeout: timeout.map(seconds).transpose()?,
            max_timeout: max_timeout.map(seconds).transpose()?,
            meta: meta.map(codec::object).transpose()?.map(Into::into),
            ..RequestOptions::default()
        };
        let made = self
            .inner
            .request(method, params.as_deref(), options, progress);
        made.map_err(|error| exception(py, &error))
    }

    /// Cancels a request of this side and notifies the other side; a late answer becomes a `Stray`.
    #[pyo3(signature = (number, reason = None))]
    fn cancel(&mut self, number: u64, reason: Option<&str>) {
        self.inner.cancel(number, reason);
    }

    /// Sends a notification.
    #[pyo3(signature = (method, params = None))]
    fn notify(
        &self,
        py: Python<'_>,
        method: &str,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let params = params.map(codec::object).transpose()?;
        let sent = self.inner.handle().notify(method, params.as_deref());
        sent.map_err(|error| exception(py, &error))
    }

    /// Returns the seconds until `handle_timeout` must be called; `None` if no timer runs.
    #[pyo3(signature = (now = None))]
    fn timeout(&self, now: Option<f64>) -> PyResult<Option<f64>> {
        let now = self.clock.at(now)?;
        let due = self.inner.connection().poll_timeout();
        Ok(due.map(|due| due.saturating_duration_since(now).as_secs_f64()))
    }

    /// Runs the timers that are due: deadlines, keepalive, grace period.
    #[pyo3(signature = (now = None))]
    fn handle_timeout(&mut self, now: Option<f64>) -> PyResult<()> {
        let now = self.clock.at(now)?;
        self.inner.handle_timeout(now);
        Ok(())
    }

    /// Accepts nothing new, finishes requests in flight for at most `grace` seconds, then closes.
    fn drain(&self, grace: f64) {
        self.inner
            .handle()
            .drain(Duration::try_from_secs_f64(grace).unwrap_or_default());
    }

    /// Closes the connection once all output is written.
    fn close(&self) {
        self.inner.handle().close();
    }

    #[getter]
    fn revision(&self) -> Option<&'static str> {
        self.inner.handle().revision().map(Revision::name)
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.inner.connection().is_closed()
    }

    #[getter]
    fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    #[getter]
    fn in_flight(&self) -> usize {
        self.inner.connection().in_flight()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.calls.try_lock() {
            Ok(calls) => calls.values().try_for_each(|request| visit.call(request)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&mut self) {
        drop(std::mem::take(&mut *lock(&self.calls)));
    }

    #[getter]
    fn stray_count(&self) -> u64 {
        self.inner.handle().stray_count()
    }
}

impl Connection {
    fn of(setup: Setup) -> PyResult<Self> {
        let clock = Clock::new(setup.now);
        let now = clock.at(setup.now)?;
        let framing = Framing::parse(&setup.framing);
        let framing = framing.ok_or_else(|| none("framing", &setup.framing))?;
        Ok(Self {
            inner: Polled::new(Arc::new(setup.config()?), framing, now),
            calls: Arc::default(),
            clock,
        })
    }
}
