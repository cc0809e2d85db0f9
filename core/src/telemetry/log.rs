//! Writes each request into the log, by `tracing`.

use std::sync::Arc;

use super::names::Ended;
use crate::connection::{ObservedRequest, Observer, RequestEnd, RequestObserver};

/// Emits a `tracing` event for each request that has ended, at level info and with target `mcpbolt::requests`: its method, its
/// tool or prompt, its id, the id of its trace, the id of the HTTP session, the address of the peer, the revision, how it ended
/// and the seconds that it took. Names and ids are cut after 256 bytes. Arguments, results and texts of errors are not in it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RequestLog;

impl RequestLog {
    /// Logs each request.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }
}

impl Observer for RequestLog {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        if !tracing::enabled!(target: "mcpbolt::requests", tracing::Level::INFO) {
            return None;
        }
        let channel = request.channel();
        let peer = channel.and_then(|channel| channel.peer.as_ref());
        let head = || channel.and_then(|channel| channel.trace.clone());
        let trace = request.trace_context().or_else(head);
        Some(Arc::new(Logged {
            is_sent: request.is_sent(),
            method: request.method().into(),
            name: request.tool().or_else(|| request.prompt()).map(Into::into),
            id: request.id().into(),
            // The trace stands between the version and the parent.
            trace: trace.and_then(|it| Some(it.parent.split('-').nth(1)?.into())),
            session: channel.and_then(|channel| channel.session.clone()),
            peer: peer.map(|(address, _)| address.clone()),
            revision: request.revision().name(),
        }))
    }
}

#[derive(Debug)]
struct Logged {
    is_sent: bool,
    method: Box<str>,
    name: Option<Box<str>>,
    id: Box<str>,
    trace: Option<Box<str>>,
    session: Option<Box<str>>,
    peer: Option<Box<str>>,
    revision: &'static str,
}

impl RequestObserver for Logged {
    fn end(&self, end: &RequestEnd) {
        // On a server, too, the log says which request was at fault.
        let Ended { error, .. } = Ended::of(end.outcome, true);
        tracing::info!(
            target: "mcpbolt::requests",
            side = if self.is_sent { "client" } else { "server" },
            method = &*self.method,
            name = self.name.as_deref(),
            id = &*self.id,
            trace = self.trace.as_deref(),
            session = self.session.as_deref(),
            peer = self.peer.as_deref(),
            revision = self.revision,
            error = error.as_deref(),
            seconds = end.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
        );
    }
}
