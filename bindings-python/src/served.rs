//! The part that all connections of a server share: its registry, its functions and its settings.

use std::sync::Arc;

use mcpbolt::connection::Config;
use mcpbolt::policy::Policy;
use mcpbolt::server::{SharedRegistry, StateSigner};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::kernel::Kernel;
use crate::target::{Target, Targets};
use crate::telemetry::Telemetry;
use crate::verifier::Verifier;

/// The part of a catalog that engine threads hold.
#[derive(Debug)]
pub struct Served {
    pub live: Arc<SharedRegistry<Targets>>,
    pub config: Arc<Config>,
    /// Signs the state that clients hold between the rounds of a call.
    pub state_signer: Option<StateSigner>,
    /// The kernel that answers what the registry does not have.
    pub kernel: Option<Kernel>,
    /// Whether anything runs on an event loop, now or after a change.
    pub needs_loop: bool,
    /// What clients may do; also if the registry does not enforce it, since a front before this server does.
    pub policy: Option<Arc<Policy>>,
    /// The observer of requests and sessions, within whose spans functions run.
    pub telemetry: Option<Py<Telemetry>>,
    /// The program's verifier of credentials.
    pub verifier: Option<Arc<Verifier>>,
    /// The callbacks for clients that have finished the handshake, and for those with changed roots.
    pub on_initialized: Option<Py<PyAny>>,
    pub on_roots_changed: Option<Py<PyAny>>,
    /// `failed(error, what, pending)` logs an unexpected exception, and calls the hooks of the program. `what` says
    /// what failed; `pending` is the call, if there is one. It returns the text for the client, or `None`.
    /// `failed.expected(error, what, name)` logs a `ToolError`.
    pub failed: Py<PyAny>,
}

impl Served {
    /// Shows the garbage collector the Python objects held here. Only uniquely owned parts are shown: the
    /// collector takes objects that it is not shown to be reachable from outside.
    pub fn visit(this: &Arc<Self>, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if Arc::strong_count(this) > 1 {
            return Ok(());
        }
        visit.call(&this.on_initialized)?;
        visit.call(&this.on_roots_changed)?;
        visit.call(&this.failed)?;
        visit.call(&this.telemetry)?;
        if let Some(verifier) = &this.verifier {
            Verifier::visit(verifier, visit)?;
        }
        if let Some(kernel) = &this.kernel {
            kernel.visit(visit)?;
        }
        if Arc::strong_count(&this.live) > 1 {
            return Ok(());
        }
        let shown = this
            .live
            .peek(|offer| match Arc::strong_count(&offer.handlers) {
                1 => offer
                    .handlers
                    .all()
                    .try_for_each(|one| Target::visit(one, visit)),
                _ => Ok(()),
            });
        shown.unwrap_or(Ok(()))
    }
}
