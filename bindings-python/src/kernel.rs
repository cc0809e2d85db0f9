//! A kernel other than the engine's registry: the official SDK, which keeps its own handshake, validation,
//! middleware and sessions.

use mcpbolt::connection::{Call, Operation};
use mcpbolt::mcp::Method;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::native::Natives;

/// A kernel, and the parts that are answered without it.
#[derive(Debug)]
pub struct Kernel {
    /// The Python object. `open(wire)` starts a connection of the handshake era; `request(request)` takes
    /// an independent request.
    pub face: Py<PyAny>,
    takes_pings: bool,
    pub natives: Natives,
}

/// An event of a connection for the kernel.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of it is requests")]
pub enum KernelEvent {
    /// A request of the client.
    Request(Call),
    /// A notification of the client: the method and the params.
    Notice(String, Option<String>),
    /// The connection drains: requests that would stay open for ever must end.
    Draining,
    /// The connection has ended.
    Closed,
}

/// The operation of all requests that the kernel answers.
pub const OPERATION: Operation = Operation::Own(0);

impl Kernel {
    pub fn new(py: Python<'_>, face: Py<PyAny>) -> PyResult<Self> {
        let takes_pings = face.bind(py).getattr("takes_pings")?.is_truthy()?;
        Ok(Self {
            face,
            takes_pings,
            natives: Natives::default(),
        })
    }

    /// Shows the garbage collector the Python objects held here.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.face)?;
        self.natives.visit(visit)
    }

    /// Whether the kernel answers requests of a method that the engine could answer itself.
    pub fn opens(&self, method: Method) -> bool {
        method != Method::Ping || self.takes_pings
    }
}
