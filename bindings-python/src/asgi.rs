//! The HTTP endpoint of an ASGI application. Requests and answers are driven on the event loop's thread;
//! sessions and timers, which outlive a request, are driven by a separate thread.

use std::sync::Arc;

use mcpbolt::io::http::HttpService;
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::server::Hosting;
use mcpbolt::settings::{Seconds, ServeSettings};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::catalog::Catalog;
use crate::chain::front::Front;
use crate::exchange::{Exchange, Message};
use crate::hosted::Hosted;
use crate::hub::{Hub, Interpreter};
use crate::serving::Serving;
use crate::settings::{read, unusable, wrong};
use crate::worker;

/// The HTTP endpoint that answers requests.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Endpoint {
    service: HttpService,
    hub: Arc<Hub>,
    /// Provides timers, and the thread that maintains sessions.
    runtime: Option<Runtime>,
}

/// Makes a server whose requests come from an ASGI application, which matches the paths itself. `options` is
/// JSON.
#[pyfunction]
pub fn mount(
    py: Python<'_>,
    catalog: &Catalog,
    interpreter: Interpreter,
    options: &str,
) -> PyResult<(Serving, Endpoint)> {
    let hub = Hub::new(py, catalog.shared.clone(), interpreter, worker::spawn)?;
    let endpoint = Endpoint::of(Arc::new(Hosted(hub.clone())), hub.clone(), options)?;
    let stopped = endpoint.service.clone();
    let serving = Serving::new(hub, String::new(), move || stopped.stop());
    Ok((serving, endpoint))
}

/// Makes a front whose requests come from an ASGI application. `serving` is a server that runs meanwhile, by whose event loop the
/// requests are driven.
#[pyfunction]
pub fn mount_front(front: &Front, serving: &Serving, options: &str) -> PyResult<Endpoint> {
    Endpoint::of(
        front
            .own
            .hosting(Arc::new(Workers::new(WorkersConfig::default()))),
        serving.hub(),
        options,
    )
}

impl Endpoint {
    fn of(hosting: Arc<dyn Hosting>, hub: Arc<Hub>, options: &str) -> PyResult<Self> {
        let mut options: ServeSettings<Seconds> = read(options)?;
        options.path = Some("*".into());
        let options = options.http().map_err(unusable)?;
        let service = HttpService::hosting(hosting, options)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_time()
            .thread_name("mcpbolt-net")
            .build()?;
        Ok(Self {
            service,
            hub,
            runtime: Some(runtime),
        })
    }
}

#[pymethods]
impl Endpoint {
    /// Accepts no further requests; those in progress are answered.
    fn stop(&self) {
        self.service.stop();
    }

    /// Starts a request; `more` says whether more of its body follows. `peer` is the client's address, if
    /// the ASGI server knows it.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a request, as Python has them"
    )]
    fn begin(
        &self,
        py: Python<'_>,
        method: &str,
        target: &[u8],
        headers: Vec<(Vec<u8>, Vec<u8>)>,
        peer: Option<&str>,
        body: &[u8],
        more: bool,
    ) -> PyResult<Exchange> {
        let message = Message {
            method,
            target,
            headers,
            peer: peer.and_then(|peer| peer.parse().ok()),
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
