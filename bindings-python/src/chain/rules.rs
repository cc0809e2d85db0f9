//! Rules of chains: middleware that the engine has.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcpbolt::chain::{self, Approval, Breaker, CallReports, Middleware, Pins};
use mcpbolt::settings::{BreakerRule, MaskingRule, RetryRule, Seconds, matching_tools};
use pyo3::prelude::*;

use super::handoffs::Handoffs;
use super::reports::{Report, Reporter};
use crate::settings::{read, unusable, wrong};
use crate::write;

/// Middleware of the engine that gives the names of a server a prefix: `find` becomes `library_find`, and `book://list`
/// becomes `book://library/list`.
#[pyclass(frozen, module = "mcpbolt.chain")]
pub struct Prefix(pub Arc<chain::Prefix>);

#[pymethods]
impl Prefix {
    /// A prefix of ASCII letters, digits, `-` and `_`.
    #[new]
    fn new(prefix: String) -> PyResult<Self> {
        let own = chain::Prefix::new(prefix).map_err(wrong)?;
        Ok(Self(Arc::new(own)))
    }
}

/// Any other middleware of the engine.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Rule {
    pub own: Arc<dyn Middleware>,
    breaker: Option<Breaker>,
}

impl Rule {
    fn of(middleware: impl Middleware) -> Self {
        Self {
            own: Arc::new(middleware),
            breaker: None,
        }
    }
}

#[pymethods]
impl Rule {
    /// Passes on only tools of `server` that are as they were pinned. `on_drift` is told of others.
    #[staticmethod]
    fn pins(
        server: String,
        pins: BTreeMap<String, String>,
        on_drift: Option<Py<PyAny>>,
        failed: Py<PyAny>,
    ) -> PyResult<Self> {
        let reporter = on_drift.map(|to| Reporter::new(to, failed)).transpose()?;
        let drift = move |drift: &chain::PinDrift<'_>| {
            if let Some(reporter) = &reporter {
                reporter.tell(Report::drift(drift));
            }
        };
        Ok(Self::of(Pins::new(server, pins, drift)))
    }

    /// Passes on calls of these tools when they are approved: by the program, which is asked by `handoffs` as that `Approval`, or by the
    /// user.
    #[staticmethod]
    fn approval(tools: Vec<String>, by: Option<(Bound<'_, Handoffs>, usize)>) -> PyResult<Self> {
        let needs = matching_tools(tools).map_err(unusable)?;
        Ok(match by {
            None => Self::of(Approval::by_client(needs)),
            Some((handoffs, number)) => Self::of(handoffs.get().approval(needs, number)),
        })
    }

    /// Masks texts. `settings` is JSON.
    #[staticmethod]
    fn masking(settings: &str) -> PyResult<Self> {
        let settings: MaskingRule = read(settings)?;
        Ok(Self::of(settings.build().map_err(unusable)?))
    }

    /// Leaves a server alone that fails. `settings` is JSON.
    #[staticmethod]
    fn breaker(settings: &str) -> PyResult<Self> {
        let settings: BreakerRule<Seconds> = read(settings)?;
        let breaker = settings.build().map_err(unusable)?;
        Ok(Self {
            own: Arc::new(breaker.clone()),
            breaker: Some(breaker),
        })
    }

    /// Sends requests again. `settings` is JSON.
    #[staticmethod]
    fn retry(settings: &str) -> PyResult<Self> {
        let settings: RetryRule = read(settings)?;
        Ok(Self::of(settings.build().map_err(unusable)?))
    }

    /// Reports requests to `server`.
    #[staticmethod]
    fn reports(server: String, to: Py<PyAny>, failed: Py<PyAny>) -> PyResult<Self> {
        let reporter = Reporter::new(to, failed)?;
        let report = move |call: &chain::UpstreamCall<'_>| reporter.tell(Report::call(call));
        Ok(Self::of(CallReports::new(server, report)))
    }

    /// Whether a breaker refuses requests at present.
    #[getter]
    fn is_open(&self) -> bool {
        self.breaker.as_ref().is_some_and(Breaker::is_open)
    }
}

/// The pin of a tool, a dict as lists have it.
#[pyfunction]
pub fn tool_pin(tool: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut text = Vec::new();
    write::append_object(&mut text, tool)?;
    let text = String::from_utf8(text).map_err(|_| wrong("not Unicode"))?;
    Ok(chain::tool_pin(&text))
}
