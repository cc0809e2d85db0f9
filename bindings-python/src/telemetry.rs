//! [`Telemetry`]: hands requests and sessions to the program's OpenTelemetry, in `_telemetry.py`.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use mcpbolt::mcp::TraceContext;
use mcpbolt::telemetry::{HostTelemetry, TelemetryHost};
use pyo3::intern;
use pyo3::prelude::*;

/// The observer of servers, clients and fronts whose telemetry is switched on.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Telemetry {
    pub observer: HostTelemetry,
    bell: Arc<Bell>,
    /// `called(description, function, arguments)` calls a function within the span that is described; `awaited` is the same for one
    /// whose value is awaited.
    pub called: Py<PyAny>,
    pub awaited: Py<PyAny>,
}

/// Rings when there are records to take.
#[derive(Debug, Default)]
struct Bell {
    rings: Mutex<bool>,
    changed: Condvar,
}

#[derive(Debug)]
struct Host {
    bell: Arc<Bell>,
    /// `begin(description)` begins the span of a request that is about to be sent; returns its `traceparent` and its
    /// `tracestate`, or `None`.
    begin: Py<PyAny>,
}

/// On whose behalf this thread may send requests now.
#[derive(Clone)]
enum Sender {
    /// Python has called, and nothing is locked.
    Here,
    /// The same, for something that began in these context variables.
    Within(Arc<Py<PyAny>>),
}

thread_local! {
    static SENDER: RefCell<Option<Sender>> = const { RefCell::new(None) };
}

/// Runs `send`, which may send requests. Their spans begin in what is current in Python on this thread.
pub fn sending<T>(send: impl FnOnce() -> T) -> T {
    sending_as(Sender::Here, send)
}

/// Runs `send`, which may send requests. Their spans begin in what is current in those context variables.
pub fn sending_within<T>(context: Arc<Py<PyAny>>, send: impl FnOnce() -> T) -> T {
    sending_as(Sender::Within(context), send)
}

fn sending_as<T>(sender: Sender, send: impl FnOnce() -> T) -> T {
    struct Before(Option<Sender>);
    impl Drop for Before {
        fn drop(&mut self) {
            SENDER.set(self.0.take());
        }
    }
    let _before = Before(SENDER.replace(Some(sender)));
    send()
}

impl TelemetryHost for Host {
    fn wake(&self) {
        *self
            .bell
            .rings
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.changed.notify_all();
    }

    fn sent(&self, begun: &dyn Fn() -> String) -> Option<TraceContext> {
        let sender = SENDER.with_borrow(Clone::clone)?;
        Python::attach(|py| self.begin(py, &sender, &begun()))
    }
}

impl Host {
    fn begin(&self, py: Python<'_>, sender: &Sender, begun: &str) -> Option<TraceContext> {
        let context = match sender {
            Sender::Here => self.begin.call1(py, (begun,)),
            Sender::Within(context) => {
                context.call_method1(py, intern!(py, "run"), (&self.begin, begun))
            }
        };
        match context.and_then(|it| it.extract::<Option<Place>>(py)) {
            Ok(place) => place.map(context_of),
            Err(error) => {
                error.write_unraisable(py, Some(self.begin.bind(py)));
                None
            }
        }
    }
}

/// A `traceparent` and a `tracestate`.
type Place = (String, Option<String>);

fn context_of((parent, state): Place) -> TraceContext {
    TraceContext {
        parent,
        state,
        baggage: None,
    }
}

#[pymethods]
impl Telemetry {
    #[new]
    fn new(begin: Py<PyAny>, called: Py<PyAny>, awaited: Py<PyAny>) -> Self {
        let bell = Arc::<Bell>::default();
        let host = Host {
            bell: bell.clone(),
            begin,
        };
        Self {
            observer: HostTelemetry::new(host),
            bell,
            called,
            awaited,
        }
    }

    /// The histograms, as a JSON object by name.
    #[staticmethod]
    fn instruments() -> String {
        HostTelemetry::instruments()
    }

    /// Waits until something has ended.
    fn wait(&self, py: Python<'_>) {
        py.detach(|| {
            let rings = self.bell.rings.lock();
            let rings = rings.unwrap_or_else(PoisonError::into_inner);
            let waited = self.bell.changed.wait_while(rings, |rings| !*rings);
            *waited.unwrap_or_else(PoisonError::into_inner) = false;
        });
    }

    /// What the requests of a series have in common, as a JSON object; `None` if there is no such series.
    fn series(&self, number: u32) -> Option<String> {
        self.observer.series(number)
    }

    /// Takes the records of what has ended, as a JSON array; `None` if there are none.
    fn take(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.observer.take())
    }

    /// Says where the two spans of a request are that a front passes on, by the key of the first; nowhere without an SDK. Returns
    /// whether the second one will end.
    fn passed(&self, py: Python<'_>, key: u64, own: Option<Place>, sent: Option<Place>) -> bool {
        let places = own.zip(sent);
        let places = places.map(|(own, sent)| [context_of(own), context_of(sent)]);
        py.detach(|| self.observer.passed(key, places))
    }
}
