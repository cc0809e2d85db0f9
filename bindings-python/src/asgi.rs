//! The endpoint of HTTP as an application mounts it: requests and answers cross on the event
//! loop's thread, which drives them; what outlives a request is driven by a thread of its own.

use std::sync::Arc;

use mcpbolt::io::http::HttpService;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::catalog::Catalog;
use crate::exchange::{Exchange, Message};
use crate::hosted::{Hosted, Options};
use crate::hub::{Hub, Interpreter};
use crate::serving::Serving;
use crate::setup::wrong;

/// The endpoint, in which requests are answered.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Endpoint {
    service: HttpService,
    hub: Arc<Hub>,
    /// Whose timers wake, and whose thread looks after sessions.
    runtime: Option<Runtime>,
}

/// A server whose requests come from an application of the interpreter's. The paths are its
/// affair.
#[pyfunction]
pub fn mount(
    py: Python<'_>,
    catalog: &Catalog,
    interpreter: Interpreter,
    grace: f64,
    options: Options,
) -> PyResult<(Serving, Endpoint)> {
    let hub = Hub::new(py, catalog.shared.clone(), interpreter)?;
    let options = options.http("*".into(), grace)?;
    let service = HttpService::hosting(Arc::new(Hosted(hub.clone())), options)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .thread_name("mcpbolt-net")
        .build()?;
    let stopped = service.clone();
    let serving = Serving::new(hub.clone(), String::new(), move || stopped.stop());
    let endpoint = Endpoint {
        service,
        hub,
        runtime: Some(runtime),
    };
    Ok((serving, endpoint))
}

#[pymethods]
impl Endpoint {
    /// Begins with a request, of whose body more may follow.
    fn begin(
        &self,
        py: Python<'_>,
        method: &str,
        target: &[u8],
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        body: &[u8],
        more: bool,
    ) -> PyResult<Exchange> {
        let message = Message {
            method,
            target,
            headers,
        };
        let runtime = self.runtime.as_ref().map(Runtime::handle).cloned();
        let runtime = runtime.ok_or_else(|| wrong("the endpoint is closed"))?;
        Exchange::begin(py, &self.service, &self.hub, runtime, message, (body, more))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
