//! `batch/execute`: several requests served as one, where the server declares it.

use std::time::Duration;

use crate::connection::{Answer, Call, Disposition, Handle, IncomingRequest, Operation};
use crate::json::{number, reader};
use crate::mcp::{Era, ErrorKind};
use crate::server::registry::Registry;

/// A number among the settings that the server declared for batches.
fn setting(registry: &Registry, name: &str) -> Option<u64> {
    reader::find(registry.experimental("batch")?, name).and_then(number::as_u64)
}

/// Returns whether this client may send batches (R-CAP-09, R-B3X-04).
pub fn are_allowed(registry: &Registry, handle: &Handle, request: &IncomingRequest<'_>) -> bool {
    if request.revision.era() != Era::Handshake || registry.experimental("batch").is_none() {
        return false;
    }
    let suffices = handle.config().profile.overlay().experimental;
    let peer = handle.peer();
    let theirs =
        peer.and_then(|peer| reader::find_path(&peer.capabilities, &["experimental", "batch"]));
    suffices || theirs.is_some()
}

/// Accepts a batch (R-B3X-04).
pub fn accept(
    registry: &Registry,
    handle: &Handle,
    request: &IncomingRequest<'_>,
    answer: Answer<'_>,
) -> Disposition {
    let Some(requests) = requests(request.message.params()) else {
        return answer.error(ErrorKind::InvalidParams, "requests must be an array", None);
    };
    let most = handle.config().limits.max_batch_len as u64;
    let most = setting(registry, "maxSize").map_or(most, |own| own.min(most));
    if reader::elements(requests).count() as u64 > most {
        let why = format!("a batch has at most {most} requests");
        let data = format!("{{\"maxSize\":{most}}}");
        return answer.error(ErrorKind::InvalidParams, &why, Some(&data));
    }
    Disposition::Deferred(Operation::ServeBatch)
}

/// Serves an accepted batch.
pub fn serve(registry: &Registry, handle: &Handle, call: &Call) {
    let requests = requests(call.message.as_ref().params()).unwrap_or("[]");
    let bare = handle.config().profile.overlay().experimental;
    let limit = setting(registry, "timeout").map(Duration::from_millis);
    handle.serve_batch(call, requests, bare, limit);
}

fn requests(params: Option<&str>) -> Option<&str> {
    let requests = reader::find(params?, "requests")?;
    requests.starts_with('[').then_some(requests)
}
