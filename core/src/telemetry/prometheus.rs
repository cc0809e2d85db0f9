//! Keeps counts of requests and sessions, for Prometheus.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::histogram::Histogram;
use super::names::{Ended, Failures, refusal, session_error};
use super::series::{Kept, Named, SeriesTable};
use super::shards::{Adder, Sharded};
use super::text;
use super::totals::Totals;
use crate::connection::{
    NetworkTransport, ObservedRequest, ObservedSession, Observer, RequestEnd, RequestObserver,
    RequestOutcome, SessionObserver,
};
use crate::error::ConnectionError;
use crate::io::Metrics;
use crate::mcp::{Revision, Side};

/// Counts requests and sessions, and shows them as text for Prometheus (exposition format 0.0.4).
///
/// The histograms are those of the OpenTelemetry conventions for MCP, under their Prometheus names:
/// `mcp_server_operation_duration_seconds` for requests that arrived, `mcp_client_operation_duration_seconds` for requests that
/// this side sent, and `mcp_server_session_duration_seconds` and `mcp_client_session_duration_seconds`. The other names begin
/// with `mcpbolt_`. The first 200 names of tools and prompts are told apart, if a request that has them succeeds and they are
/// at most 128 bytes long; all others count as `_OTHER`. Within one series the first 8 kinds of errors are told apart.
/// Arguments and results are not looked at.
///
/// ```
/// use std::sync::Arc;
/// use mcpbolt::server::{Arguments, Server, Tool};
/// use mcpbolt::telemetry::Prometheus;
///
/// let prometheus = Prometheus::new();
/// let server = Server::builder("shop", "1.0.0")
///     .observer(prometheus.clone())
///     .tool(Tool::new("order"), |_: Arguments, _| async { "ordered" })
///     .build()?;
/// // Serve `server`, and answer `GET /metrics` with:
/// let text = prometheus.text();
/// assert!(text.contains("mcpbolt_server_active_requests 0\n"));
/// # Ok::<(), mcpbolt::server::RegistryError>(())
/// ```
#[derive(Debug, Default)]
pub struct Prometheus {
    pub(super) totals: Arc<Totals>,
    pub(super) ended: Arc<EndedCounts>,
    pub(super) series: Arc<SeriesTable<Measured>>,
    pub(super) servers: Mutex<Vec<Arc<Metrics>>>,
}

/// Counts of what has ended.
#[derive(Debug, Default)]
pub(super) struct EndedCounts {
    pub refused: Mutex<BTreeMap<&'static str, u64>>,
    pub sessions: Mutex<BTreeMap<SessionKey, Arc<Histogram>>>,
}

/// What sessions that count together have in common: side, revision, transport, error.
pub(super) type SessionKey = (
    bool,
    &'static str,
    Option<&'static str>,
    Option<&'static str>,
);

/// The measurements of one series.
#[derive(Debug)]
pub(super) struct Measured {
    totals: Arc<Totals>,
    ended: Arc<EndedCounts>,
    is_sent: bool,
    pub counters: Sharded<Counters>,
    pub failed: Failures<Arc<Histogram>>,
}

/// What most requests count.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub begun: AtomicU64,
    pub succeeded: Histogram,
    pub request_bytes: AtomicU64,
    pub answer_bytes: AtomicU64,
}

impl Prometheus {
    /// Counts nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Also shows the counters of a server that is running: connections, HTTP requests, bytes and memory.
    pub fn watch(&self, server: Arc<Metrics>) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.push(server);
    }

    /// All counts, as text. The content type is [`CONTENT_TYPE`](Self::CONTENT_TYPE).
    pub fn text(&self) -> String {
        text::of(self)
    }

    /// The content type of [`text`](Self::text).
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";
}

impl Observer for Prometheus {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let named = Named::of(request);
        if let Some(measured) = self.series.find(&named) {
            let (counters, adder) = measured.counters.here();
            adder.add(&counters.begun, 1);
            return Some(measured.clone());
        }
        self.totals.of(named.is_sent).unknown.fetch_add(1, Relaxed);
        Some(Arc::new(Unknown {
            kept: named.keep(|_| true),
            totals: self.totals.clone(),
            ended: self.ended.clone(),
            series: self.series.clone(),
        }))
    }

    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let is_client = session.side() == Side::Client;
        self.totals.of(is_client).sessions.fetch_add(1, Relaxed);
        Some(Box::new(Session {
            totals: self.totals.clone(),
            ended: self.ended.clone(),
            begun: Instant::now(),
            is_client,
            revision: session.revision(),
            transport: session.channel().map(|channel| channel.transport),
        }))
    }
}

impl Measured {
    fn new(kept: &Kept, totals: &Arc<Totals>, ended: &Arc<EndedCounts>) -> Self {
        Self {
            totals: totals.clone(),
            ended: ended.clone(),
            is_sent: kept.is_sent,
            counters: Sharded::default(),
            failed: Failures::default(),
        }
    }

    /// The requests that have begun here.
    pub fn begun(&self) -> u64 {
        self.counters.sum(|it| &it.begun)
    }

    /// The requests that have ended here, with those that began before this was there.
    pub fn ended(&self) -> u64 {
        let succeeded = self.counters.each().map(|it| it.succeeded.count());
        let failed = self.failed.all().into_iter();
        succeeded.chain(failed.map(|(_, it)| it.count())).sum()
    }

    fn note(&self, end: &RequestEnd) {
        let lasted = end.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        let (counters, adder) = self.counters.here();
        match end.outcome {
            RequestOutcome::Done => counters.succeeded.record(lasted, adder),
            outcome => {
                let (_, failed) = self.failed.of(Ended::of(outcome, self.is_sent));
                failed.record(lasted, Adder::Shared);
            }
        }
        adder.add(&counters.request_bytes, end.request_bytes as u64);
        adder.add(&counters.answer_bytes, end.answer_bytes as u64);
        if let Some(reason) = refusal(end.outcome).filter(|_| !self.is_sent) {
            let refused = &self.ended.refused;
            let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
            *refused.entry(reason).or_default() += 1;
        }
    }
}

impl RequestObserver for Measured {
    fn end(&self, end: &RequestEnd) {
        self.note(end);
    }

    fn waits(&self, waits: bool) {
        self.totals.waits(waits);
    }
}

/// A request of a series that may get measurements of its own when the request has ended.
#[derive(Debug)]
struct Unknown {
    kept: Kept,
    totals: Arc<Totals>,
    ended: Arc<EndedCounts>,
    series: Arc<SeriesTable<Measured>>,
}

impl RequestObserver for Unknown {
    fn end(&self, end: &RequestEnd) {
        let make = |kept: &Kept| Measured::new(kept, &self.totals, &self.ended);
        let measured = self.series.admit(&self.kept, end.outcome, make);
        measured.note(end);
    }

    fn waits(&self, waits: bool) {
        self.totals.waits(waits);
    }
}

#[derive(Debug)]
struct Session {
    totals: Arc<Totals>,
    ended: Arc<EndedCounts>,
    begun: Instant,
    is_client: bool,
    revision: Revision,
    transport: Option<NetworkTransport>,
}

impl SessionObserver for Session {
    fn end(self: Box<Self>, reason: &ConnectionError) {
        let open = &self.totals.of(self.is_client).sessions;
        open.fetch_sub(1, Relaxed);
        let transport = self.transport.map(NetworkTransport::name);
        let (revision, error) = (self.revision.name(), session_error(reason));
        let key = (self.is_client, revision, transport, error);
        let sessions = &self.ended.sessions;
        let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = sessions.entry(key).or_default().clone();
        drop(sessions);
        histogram.record(self.begun.elapsed(), Adder::Shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Method;
    use crate::telemetry::MAX_SERIES;

    #[test]
    fn requests_beyond_the_most_series_count_together() {
        let prometheus = Prometheus::new();
        for n in 0..MAX_SERIES + 3 {
            let kept = Kept {
                is_sent: true,
                method: Ok(Method::ListTools),
                name: None,
                revision: Revision::NEWEST,
                transport: None,
                protocol: None,
                server: Some((format!("{n}.example.com").into(), None)),
                is_overflow: false,
            };
            let begun = &prometheus.totals.of(true).unknown;
            begun.fetch_add(1, Relaxed);
            let request = Unknown {
                kept,
                totals: prometheus.totals.clone(),
                ended: prometheus.ended.clone(),
                series: prometheus.series.clone(),
            };
            request.end(&RequestEnd {
                begun: None,
                outcome: RequestOutcome::Done,
                request_bytes: 1,
                answer_bytes: 1,
            });
        }
        let text = prometheus.text();
        let counts = "mcp_client_operation_duration_seconds_count";
        let counts: Vec<_> = text.lines().filter(|it| it.starts_with(counts)).collect();
        assert_eq!(counts.len(), MAX_SERIES + 1);
        let is_overflow = |it: &&&str| it.ends_with("{otel_metric_overflow=\"true\"} 3");
        assert_eq!(counts.iter().filter(is_overflow).count(), 1);
        assert!(text.contains("mcpbolt_client_active_requests 0\n"));
    }
}
