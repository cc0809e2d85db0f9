//! Results of tools that are kept for a while.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::server;
use pyo3::prelude::*;

use crate::setup::{scope, seconds};
use crate::tool_answer::Lowered;

/// Results that are kept for so many seconds.
#[pyclass(frozen, module = "mcpbolt")]
pub struct Results {
    pub ttl: Duration,
    inner: server::Results<Arc<Lowered>>,
}

impl Results {
    pub fn ask(&self, tool: &str, given: &str, who: Option<&str>) -> Option<KeptCall> {
        self.inner.ask(tool, given, who).map(KeptCall)
    }
}

#[pymethods]
impl Results {
    #[new]
    #[pyo3(signature = (ttl, *, scope = "private"))]
    fn new(ttl: f64, scope: &str) -> PyResult<Self> {
        let ttl = seconds(ttl)?;
        let inner = server::Results::new(ttl, self::scope(scope)?);
        Ok(Self { ttl, inner })
    }

    /// Forgets those of a tool.
    fn forget(&self, tool: &str) {
        self.inner.forget(tool);
    }

    /// Forgets those of all tools.
    fn forget_all(&self) {
        self.inner.forget_all();
    }
}

/// A call whose result is kept, or may be.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct KeptCall(server::KeptCall<Arc<Lowered>>);

#[pymethods]
impl KeptCall {
    /// The result of the same call before.
    fn found(&self) -> Option<Finished> {
        self.0.found().map(Finished::good)
    }

    /// Keeps the result that this is.
    fn keep(&self, finished: &Finished) {
        let bytes = finished.lowered.held_bytes();
        self.0.keep(finished.lowered.clone(), bytes);
    }
}

/// What a tool gave back, as its result.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Finished {
    pub lowered: Arc<Lowered>,
    /// Whether it is no failure, and fits the tool's output schema.
    #[pyo3(get)]
    pub is_good: bool,
}

impl Finished {
    fn good(lowered: Arc<Lowered>) -> Self {
        Self {
            lowered,
            is_good: true,
        }
    }
}
