//! Makes the Python `ClientInfo`, a client's self-description.

use mcpbolt::connection::Handle;
use mcpbolt::mcp::{Era, Revision};
use mcpbolt::message::{Field, MessageRef};
use pyo3::prelude::*;

use crate::read;

/// The client info of a connection, from its handshake.
pub fn of_connection<'py>(py: Python<'py>, handle: &Handle) -> PyResult<Bound<'py, PyAny>> {
    let peer = handle.peer();
    let implementation = peer.map_or("", |peer| &peer.implementation);
    let capabilities = peer.map_or("", |peer| &peer.capabilities);
    client_info(py, implementation, capabilities, handle.revision())
}

/// The client info of a request: from the request itself in revisions where each contains it (R-MET-08),
/// otherwise from its connection.
pub fn of_request<'py>(
    py: Python<'py>,
    handle: &Handle,
    request: MessageRef<'_>,
    revision: Revision,
) -> PyResult<Bound<'py, PyAny>> {
    match revision.era() {
        Era::Handshake => of_connection(py, handle),
        Era::Stateless => {
            let said = |field| request.raw(field).unwrap_or_default();
            let (implementation, capabilities) =
                (said(Field::ClientInfo), said(Field::ClientCapabilities));
            client_info(py, implementation, capabilities, Some(revision))
        }
    }
}

fn client_info<'py>(
    py: Python<'py>,
    implementation: &str,
    capabilities: &str,
    revision: Option<Revision>,
) -> PyResult<Bound<'py, PyAny>> {
    let object = |json: &str| read::object(py, if json.is_empty() { "{}" } else { json });
    let revision = revision.map_or("", |revision| revision.rules().name);
    let class = py.import("mcpbolt._results")?.getattr("ClientInfo")?;
    class.call1((object(implementation)?, object(capabilities)?, revision))
}
