//! A chain that is served at an address.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpbolt::io;
use mcpbolt::settings::{Seconds, ServeSettings};
use pyo3::prelude::*;

use super::front::Front;
use crate::forked::Here;
use crate::serving::Counter;
use crate::settings::{read, unusable, wrong};
use crate::signal::{Signal, Wake};
use crate::supervise;
use crate::termination::Termination;

/// How long the interpreter has to notice the end.
const WEDGED: Duration = Duration::from_secs(1);

/// A chain that is served. No message passes through the interpreter, except to middleware of the program.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct ServedFront {
    serving: Here<Mutex<Option<Arc<io::Serving>>>>,
    address: String,
    metrics: Arc<io::Metrics>,
    end: Arc<End>,
}

struct End {
    signal: Arc<Signal>,
    is_over: AtomicBool,
    is_left: AtomicBool,
}

/// Notes the end when dropped, so that the event loop learns of it even if a thread panics.
struct Ending(Arc<End>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.signal.raise();
    }
}

#[pymethods]
impl ServedFront {
    /// Begins to serve. `own` says that the process runs only this: a signal noted there ends it, even if middleware never
    /// returns. `options` is JSON. If `worker` is set, this process serves as a worker of its supervisor.
    #[new]
    fn new(
        py: Python<'_>,
        front: &Front,
        address: &str,
        options: &str,
        own: Option<Bound<'_, Termination>>,
        worker: bool,
    ) -> PyResult<Self> {
        let address = address.parse().map_err(wrong)?;
        let options = read::<ServeSettings<Seconds>>(options)?.serve(&address);
        let mut options = options.map_err(unusable)?;
        supervise::take_place(&mut options, worker)?;
        options.stdio.grace = options.http.grace;
        // Python's handlers get the signals.
        options.stdio.signals = false;
        let end = Arc::new(End {
            signal: Arc::new(Signal::new()?),
            is_over: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
        });
        let serving = py.detach(|| front.own.serve(&address, options))?;
        let serving = Arc::new(serving);
        if let Some(own) = &own {
            let stopper = serving.stopper();
            own.get().watch(move || stopper.stop())?;
        }
        let (waited, over, own) = (serving.clone(), end.clone(), own.is_some());
        let ending = Ending(end.clone());
        std::thread::Builder::new()
            .name("mcpbolt".into())
            .spawn(move || {
                waited.wait();
                drop((waited, ending));
                if own {
                    std::thread::sleep(WEDGED);
                    if !over.is_left.load(Ordering::Acquire) {
                        std::process::exit(1);
                    }
                }
            })?;
        Ok(Self {
            address: serving.address().to_string(),
            metrics: serving.metrics().clone(),
            serving: Here::new(Mutex::new(Some(serving))),
            end,
        })
    }

    /// The address that it listens on.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// The counters of the address.
    fn counter(&self) -> Counter {
        Counter::of(self.metrics.clone())
    }

    /// The wakeup that is raised at the end.
    fn wake(&self) -> Wake {
        Wake(self.end.signal.clone())
    }

    /// Whether no connection is left, and none will come.
    fn is_over(&self) -> bool {
        self.end.is_over.load(Ordering::Acquire)
    }

    /// Serves on this thread, without an event loop, until there are no connections any more.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while !self.is_over() {
            py.detach(|| self.end.signal.wait());
            py.check_signals()?;
        }
        Ok(())
    }

    /// Shuts down gracefully: calls in flight are answered within the grace period.
    fn stop(&self) {
        if let (false, Some(serving)) = (self.serving.is_forked(), &*self.serving()) {
            serving.stop();
        }
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        self.end.is_left.store(true, Ordering::Release);
        if !self.serving.is_forked() {
            let serving = self.serving().take();
            py.detach(|| drop(serving));
        }
    }
}

impl ServedFront {
    fn serving(&self) -> std::sync::MutexGuard<'_, Option<Arc<io::Serving>>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
