//! Spans and metrics by the OpenTelemetry API.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry::{InstrumentationScope, KeyValue, global};

use super::attributes;
use super::histogram::BUCKETS;
use super::instruments::{self, Durations};
use super::names::{Ended, Failures, refusal, session_error};
use super::series::{Kept, Named, SeriesTable};
use super::spans::{self, AnyTracer, Traced, gathered};
use super::totals::{Total, Totals};
use crate::connection::{
    ObservedRequest, ObservedSession, Observer, RequestEnd, RequestObserver, SessionObserver,
};
use crate::error::ConnectionError;
use crate::mcp::Side;

/// Makes spans and metrics of requests and sessions by the OpenTelemetry API, as its conventions for MCP say.
///
/// A request that arrives has a span of kind `SERVER`, named by the method and the tool or prompt. Its parent is the context in
/// `params._meta` (SEP-414); the context around it, of the program or in the head of the HTTP request, is a link then, and the
/// parent otherwise. The span is current while the handler runs. A request that this side sends has a span of kind `CLIENT`,
/// within the context that is current where it is sent, and carries the span in its `_meta`.
///
/// The histograms are `mcp.server.operation.duration`, `mcp.client.operation.duration`, `mcp.server.session.duration` and
/// `mcp.client.session.duration`; the other metrics begin with `mcpbolt.`. The first 200 names of tools and prompts are told
/// apart in metrics, if a request that has them succeeds; all others count as `_OTHER`. Arguments, results and texts of errors
/// are never exported, nor the user, password and query of a URI. Names, URIs and ids are cut after 256 bytes.
pub struct OpenTelemetry {
    tracer: Box<dyn AnyTracer>,
    instruments: Arc<Instruments>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Instruments {
    totals: Arc<Totals>,
    series: Arc<SeriesTable<Attributes>>,
    received: Histogram<f64>,
    sent: Histogram<f64>,
    server_sessions: Histogram<f64>,
    client_sessions: Histogram<f64>,
    refused: Counter<u64>,
}

/// The attributes of one series, and its bytes.
#[derive(Debug)]
pub(super) struct Attributes {
    /// The name of its spans.
    title: String,
    all: Vec<KeyValue>,
    is_sent: bool,
    failed: Failures<()>,
    request_bytes: AtomicU64,
    answer_bytes: AtomicU64,
}

impl OpenTelemetry {
    /// Uses the tracer and the meter that the program has set up for all of its parts
    /// ([`opentelemetry::global`]).
    pub fn global() -> Arc<Self> {
        Self::new(&global::tracer_provider(), &*global::meter_provider())
    }

    /// Uses a tracer and a meter of these providers.
    pub fn new<P>(tracers: &P, meters: &(impl MeterProvider + ?Sized)) -> Arc<Self>
    where
        P: TracerProvider<
            Tracer: Tracer<Span: Span + Send + Sync + 'static> + Send + Sync + 'static,
        >,
    {
        let scope = InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let meter = meters.meter_with_scope(scope.clone());
        Arc::new(Self {
            tracer: Box::new(tracers.tracer_with_scope(scope)),
            instruments: Arc::new(Instruments::new(&meter)),
        })
    }
}

impl fmt::Debug for OpenTelemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenTelemetry")
            .field(&self.instruments)
            .finish()
    }
}

impl Instruments {
    fn new(meter: &Meter) -> Self {
        let histogram = |of: Durations| {
            let histogram = meter.f64_histogram(of.name).with_unit("s");
            let histogram = histogram.with_boundaries(BUCKETS.to_vec());
            histogram.with_description(of.description).build()
        };
        let (totals, series) = (Arc::<Totals>::default(), Arc::<SeriesTable<_>>::default());
        for (side, is_sent) in [("server", false), ("client", true)] {
            watch_totals(meter, side, is_sent, &totals);
            watch_bytes(meter, side, is_sent, &series);
        }
        Self {
            received: histogram(instruments::of_requests(false)),
            sent: histogram(instruments::of_requests(true)),
            server_sessions: histogram(instruments::of_sessions(false)),
            client_sessions: histogram(instruments::of_sessions(true)),
            refused: meter
                .u64_counter("mcpbolt.server.refused_requests")
                .with_unit("{request}")
                .with_description("Requests refused by this side.")
                .build(),
            totals,
            series,
        }
    }

    /// Notes a request that has ended.
    pub fn note(&self, series: &Attributes, ended: Ended, end: &RequestEnd) {
        let seconds = end.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        let histogram = match series.is_sent {
            true => &self.sent,
            false => &self.received,
        };
        match ended == Ended::default() {
            true => histogram.record(seconds, &series.all),
            false => {
                let (ended, ()) = series.failed.of(ended);
                let mut all = series.all.clone();
                attributes::of_end(&ended, gathered(&mut all));
                histogram.record(seconds, &all);
            }
        }
        let add = |counter: &AtomicU64, bytes: usize| counter.fetch_add(bytes as u64, Relaxed);
        add(&series.request_bytes, end.request_bytes);
        add(&series.answer_bytes, end.answer_bytes);
        let total = self.totals.of(series.is_sent);
        total.active.fetch_sub(1, Relaxed);
        if let Some(reason) = refusal(end.outcome).filter(|_| !series.is_sent) {
            self.refused.add(1, &[KeyValue::new("reason", reason)]);
        }
    }

    /// The attributes of a request that has ended.
    pub fn admit(&self, kept: &Kept, end: &RequestEnd) -> Arc<Attributes> {
        self.series.admit(kept, end.outcome, Attributes::new)
    }

    pub fn total(&self, is_sent: bool) -> &Total {
        self.totals.of(is_sent)
    }
}

/// Shows what is in progress.
fn watch_totals(meter: &Meter, side: &str, is_sent: bool, totals: &Arc<Totals>) {
    type Read = fn(&Total) -> i64;
    let all: [(&str, &str, &str, Read); 3] = [
        (
            "active_requests",
            "{request}",
            "Requests that are not answered yet.",
            |total| total.active.load(Relaxed),
        ),
        (
            "waiting_requests",
            "{request}",
            "Active requests that wait for room.",
            |total| total.waiting.load(Relaxed),
        ),
        (
            "active_sessions",
            "{session}",
            "Sessions that are open.",
            |total| total.sessions.load(Relaxed),
        ),
    ];
    for (name, unit, what, read) in all {
        let totals = totals.clone();
        let counter = meter.i64_observable_up_down_counter(format!("mcpbolt.{side}.{name}"));
        let counter = counter.with_unit(unit).with_description(what);
        counter
            .with_callback(move |to| to.observe(read(totals.of(is_sent)), &[]))
            .build();
    }
}

/// Shows the bytes of all series.
fn watch_bytes(meter: &Meter, side: &str, is_sent: bool, series: &Arc<SeriesTable<Attributes>>) {
    type Read = fn(&Attributes) -> &AtomicU64;
    let all: [(&str, &str, Read); 2] = [
        (
            "request_bytes",
            "Bytes of requests, without their framing.",
            |it| &it.request_bytes,
        ),
        (
            "answer_bytes",
            "Bytes of answers, without their framing.",
            |it| &it.answer_bytes,
        ),
    ];
    for (name, what, read) in all {
        let series = series.clone();
        let counter = meter.u64_observable_counter(format!("mcpbolt.{side}.{name}"));
        let counter = counter.with_unit("By").with_description(what);
        let observe = move |to: &dyn opentelemetry::metrics::AsyncInstrument<u64>| {
            series.each(|_, attributes: &Attributes| {
                if attributes.is_sent == is_sent {
                    to.observe(read(attributes).load(Relaxed), &attributes.all);
                }
            });
        };
        counter.with_callback(observe).build();
    }
}

impl Attributes {
    fn new(kept: &Kept) -> Self {
        let mut all = Vec::new();
        attributes::of_series(kept, gathered(&mut all));
        Self {
            title: kept.title(),
            all,
            is_sent: kept.is_sent,
            failed: Failures::default(),
            request_bytes: AtomicU64::new(0),
            answer_bytes: AtomicU64::new(0),
        }
    }
}

impl Observer for OpenTelemetry {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let named = Named::of(request);
        let instruments = &self.instruments;
        instruments
            .total(named.is_sent)
            .active
            .fetch_add(1, Relaxed);
        let known = instruments.series.find(&named);
        let title = known.as_ref().map(|known| known.title.clone());
        let title = title.unwrap_or_else(|| named.title());
        Some(Arc::new(Traced {
            instruments: instruments.clone(),
            is_sent: named.is_sent,
            span: spans::begin(&*self.tracer, &named, title, request),
            known: known.ok_or_else(|| named.keep(|_| true)),
        }))
    }

    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let is_client = session.side() == Side::Client;
        let open = &self.instruments.total(is_client).sessions;
        open.fetch_add(1, Relaxed);
        let mut attributes = Vec::new();
        attributes::of_session(session, gathered(&mut attributes));
        Some(Box::new(Session {
            instruments: self.instruments.clone(),
            begun: Instant::now(),
            is_client,
            attributes,
        }))
    }
}

#[derive(Debug)]
struct Session {
    instruments: Arc<Instruments>,
    begun: Instant,
    is_client: bool,
    attributes: Vec<KeyValue>,
}

impl SessionObserver for Session {
    fn end(self: Box<Self>, reason: &ConnectionError) {
        let instruments = &self.instruments;
        let open = &instruments.total(self.is_client).sessions;
        open.fetch_sub(1, Relaxed);
        let mut attributes = self.attributes;
        attributes.extend(session_error(reason).map(|it| KeyValue::new("error.type", it)));
        let histogram = match self.is_client {
            true => &instruments.client_sessions,
            false => &instruments.server_sessions,
        };
        histogram.record(self.begun.elapsed().as_secs_f64(), &attributes);
    }
}
