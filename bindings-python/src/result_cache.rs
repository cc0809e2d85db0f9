//! The cache of tool results.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::Budget;
use mcpbolt::server::{self, CacheScope};
use pyo3::prelude::*;

use crate::settings::{seconds, wrong};
use crate::tool_answer::{Finished, Lowered};

/// A cache of tool results, each kept for `ttl` seconds.
#[pyclass(frozen, module = "mcpbolt")]
pub struct Results {
    ttl: Duration,
    inner: server::Results<Arc<Lowered>>,
}

impl Results {
    /// Looks up a call, on a server with that budget. `None` if its result is not to be cached.
    pub fn ask(
        &self,
        (tool, given): (&str, &str),
        who: Option<&str>,
        budget: &Arc<Budget>,
    ) -> Option<CachedCall> {
        self.inner.count_in(budget);
        self.inner.ask(tool, given, who).map(CachedCall)
    }
}

#[pymethods]
impl Results {
    #[new]
    #[pyo3(signature = (ttl, *, scope = "private"))]
    fn new(ttl: f64, scope: &str) -> PyResult<Self> {
        let ttl = seconds(ttl)?;
        let scope = match scope {
            "public" => CacheScope::Public,
            "private" => CacheScope::Private,
            _ => return Err(wrong("scope: it is \"public\" or \"private\"")),
        };
        let inner = server::Results::new(ttl, scope);
        Ok(Self { ttl, inner })
    }

    /// The seconds that a result is kept.
    #[getter]
    fn ttl(&self) -> f64 {
        self.ttl.as_secs_f64()
    }

    /// Forgets the results of a tool. Results of calls in progress are not cached either.
    fn forget(&self, tool: &str) {
        self.inner.forget(tool);
    }

    /// Forgets the results of all tools. Results of calls in progress are not cached either.
    fn forget_all(&self) {
        self.inner.forget_all();
    }
}

/// The cache entry of one call, filled or not.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct CachedCall(server::KeptCall<Arc<Lowered>>);

#[pymethods]
impl CachedCall {
    /// The cached result of an earlier, equal call.
    fn found(&self) -> Option<Finished> {
        self.0.found().map(Finished::cached)
    }

    /// Stores the result of this call.
    fn keep(&self, finished: &Finished) {
        let bytes = finished.lowered.held_bytes();
        self.0.keep(finished.lowered.clone(), bytes);
    }
}
