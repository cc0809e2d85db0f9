//! `batch/execute`: several requests served as one, where the server declares it.

use std::time::Duration;

use super::host::ServerHost;
use crate::connection::{Answer, Call, Disposition, IncomingRequest, Operation};
use crate::handler::Executor;
use crate::json::{number, reader};
use crate::mcp::{Era, ErrorKind};

/// The settings that the server declared for batches.
struct Declared<'a>(&'a str);

impl Declared<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        reader::find(self.0, name).and_then(number::as_u64)
    }
}

impl<E: Executor> ServerHost<E> {
    /// Returns whether this client may send batches (R-CAP-09, R-B3X-04).
    pub(super) fn takes_batches(&self, request: &IncomingRequest<'_>) -> bool {
        if request.revision.era() != Era::Handshake || self.registry.experimental("batch").is_none()
        {
            return false;
        }
        let suffices = self.handle.config().profile.overlay().experimental;
        let peer = self.handle.peer();
        let theirs =
            peer.and_then(|peer| reader::find_path(&peer.capabilities, &["experimental", "batch"]));
        suffices || theirs.is_some()
    }

    fn declared(&self) -> Declared<'_> {
        Declared(self.registry.experimental("batch").unwrap_or("{}"))
    }

    /// R-B3X-04
    pub(super) fn batch(&self, request: &IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let Some(requests) = requests(request.message.params()) else {
            return answer.error(ErrorKind::InvalidParams, "requests must be an array", None);
        };
        let most = self.handle.config().limits.max_batch_len as u64;
        let most = self
            .declared()
            .number("maxSize")
            .map_or(most, |own| own.min(most));
        if reader::elements(requests).count() as u64 > most {
            let why = format!("a batch has at most {most} requests");
            let data = format!("{{\"maxSize\":{most}}}");
            return answer.error(ErrorKind::InvalidParams, &why, Some(&data));
        }
        Disposition::Deferred(Operation::ServeBatch)
    }

    /// Serves an accepted batch.
    pub(super) fn serve_batch(&self, call: &Call) {
        let requests = requests(call.message.as_ref().params()).unwrap_or("[]");
        let bare = self.handle.config().profile.overlay().experimental;
        let limit = self.declared().number("timeout").map(Duration::from_millis);
        self.handle.serve_batch(call, requests, bare, limit);
    }
}

fn requests(params: Option<&str>) -> Option<&str> {
    let requests = reader::find(params?, "requests")?;
    requests.starts_with('[').then_some(requests)
}
