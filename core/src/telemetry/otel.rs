//! Spans and metrics by the OpenTelemetry API.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};
use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry::{InstrumentationScope, KeyValue, global};

use super::attributes;
use super::histogram::BUCKETS;
use super::instruments::{self, Durations};
use super::names::{Ended, Failures, refusal, session_error};
use super::series::{Kept, Named, SeriesTable};
use super::shards::Sharded;
use super::spans::{self, AnyTracer, Traced, Unknown, gathered};
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
    series: Arc<SeriesTable<Attributes>>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Instruments {
    pub totals: Arc<Totals>,
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
    title: Cow<'static, str>,
    all: Vec<KeyValue>,
    pub is_sent: bool,
    pub instruments: Arc<Instruments>,
    pub counters: Sharded<Counters>,
    failed: Failures<()>,
}

/// What each request counts.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub begun: AtomicU64,
    ended: AtomicU64,
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
        let series = Arc::<SeriesTable<_>>::default();
        for (side, is_sent) in SIDES {
            watch_bytes(&meter, side, is_sent, &series);
        }
        Arc::new(Self {
            tracer: Box::new(tracers.tracer_with_scope(scope)),
            instruments: Arc::new(Instruments::new(&meter, &series)),
            series,
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

/// In which requests arrive, or are sent.
const SIDES: [(&str, bool); 2] = [("server", false), ("client", true)];

impl Instruments {
    fn new(meter: &Meter, series: &Arc<SeriesTable<Attributes>>) -> Self {
        let histogram = |of: Durations| {
            let histogram = meter.f64_histogram(of.name).with_unit("s");
            let histogram = histogram.with_boundaries(BUCKETS.to_vec());
            histogram.with_description(of.description).build()
        };
        let totals = Arc::<Totals>::default();
        for (side, is_sent) in SIDES {
            watch_active(meter, side, is_sent, &totals, series);
            watch_sessions(meter, side, is_sent, &totals);
        }
        watch_waiting(meter, &totals);
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
        }
    }

    pub fn total(&self, is_sent: bool) -> &Total {
        self.totals.of(is_sent)
    }
}

/// Shows the requests in progress.
fn watch_active(
    meter: &Meter,
    side: &str,
    is_sent: bool,
    totals: &Arc<Totals>,
    series: &Arc<SeriesTable<Attributes>>,
) {
    let (totals, series) = (totals.clone(), series.clone());
    let counter = meter.i64_observable_up_down_counter(format!("mcpbolt.{side}.active_requests"));
    let counter = counter.with_unit("{request}");
    let counter = counter.with_description("Requests that are not answered yet.");
    let active = move || {
        let sum = |of: fn(&Counters) -> &AtomicU64| series.sum(is_sent, |it| it.counters.sum(of));
        // In this order, since requests begin meanwhile.
        let ended = sum(|it| &it.ended);
        let begun = sum(|it| &it.begun) + totals.of(is_sent).unknown.load(Relaxed);
        i64::try_from(begun.saturating_sub(ended)).unwrap_or(i64::MAX)
    };
    counter
        .with_callback(move |to| to.observe(active(), &[]))
        .build();
}

/// Shows the open sessions.
fn watch_sessions(meter: &Meter, side: &str, is_client: bool, totals: &Arc<Totals>) {
    let totals = totals.clone();
    let counter = meter.i64_observable_up_down_counter(format!("mcpbolt.{side}.active_sessions"));
    let counter = counter.with_unit("{session}");
    let counter = counter.with_description("Sessions that are open.");
    let open = move || totals.of(is_client).sessions.load(Relaxed);
    counter
        .with_callback(move |to| to.observe(open(), &[]))
        .build();
}

/// Shows the requests that wait.
fn watch_waiting(meter: &Meter, totals: &Arc<Totals>) {
    let totals = totals.clone();
    let counter = meter.i64_observable_up_down_counter("mcpbolt.server.waiting_requests");
    let counter = counter.with_unit("{request}");
    let counter = counter.with_description("Active requests that wait for room.");
    counter
        .with_callback(move |to| to.observe(totals.waiting.load(Relaxed), &[]))
        .build();
}

/// Shows the bytes of all series.
fn watch_bytes(meter: &Meter, side: &str, is_sent: bool, series: &Arc<SeriesTable<Attributes>>) {
    type Read = fn(&Counters) -> &AtomicU64;
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
                    to.observe(attributes.counters.sum(read), &attributes.all);
                }
            });
        };
        counter.with_callback(observe).build();
    }
}

/// How many names of spans are kept for as long as the program runs, so that spans have them without a copy.
const MAX_TITLES: usize = 4096;

/// A name of spans that many will have.
fn kept_for_good(title: String) -> Cow<'static, str> {
    static ALL: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(&*title) {
        return Cow::Borrowed(known);
    }
    if all.len() == MAX_TITLES {
        return title.into();
    }
    let title = title.leak();
    all.insert(title);
    Cow::Borrowed(title)
}

impl Attributes {
    pub fn new(kept: &Kept, instruments: &Arc<Instruments>) -> Self {
        let mut all = Vec::new();
        attributes::of_series(kept, gathered(&mut all));
        Self {
            title: kept_for_good(kept.title()),
            all,
            is_sent: kept.is_sent,
            instruments: instruments.clone(),
            counters: Sharded::default(),
            failed: Failures::default(),
        }
    }

    /// Notes a request that has ended.
    pub fn note(&self, ended: Ended, end: &RequestEnd) {
        let seconds = end.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        let instruments = &*self.instruments;
        let histogram = match self.is_sent {
            true => &instruments.sent,
            false => &instruments.received,
        };
        match ended == Ended::default() {
            true => histogram.record(seconds, &self.all),
            false => {
                let (ended, ()) = self.failed.of(ended);
                let mut all = self.all.clone();
                attributes::of_end(&ended, gathered(&mut all));
                histogram.record(seconds, &all);
            }
        }
        let (counters, adder) = self.counters.here();
        adder.add(&counters.ended, 1);
        adder.add(&counters.request_bytes, end.request_bytes as u64);
        adder.add(&counters.answer_bytes, end.answer_bytes as u64);
        if let Some(reason) = refusal(end.outcome).filter(|_| !self.is_sent) {
            let reason = [KeyValue::new("reason", reason)];
            instruments.refused.add(1, &reason);
        }
    }
}

impl Observer for OpenTelemetry {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let named = Named::of(request);
        let instruments = &self.instruments;
        let known = self.series.find(&named);
        let title = match known {
            Some(known) => {
                let (counters, adder) = known.counters.here();
                adder.add(&counters.begun, 1);
                known.title.clone()
            }
            None => {
                let total = instruments.total(named.is_sent);
                total.unknown.fetch_add(1, Relaxed);
                named.title().into()
            }
        };
        Some(Arc::new(Traced {
            span: spans::begin(&*self.tracer, &named, title, request),
            series: known.cloned().ok_or_else(|| Unknown {
                kept: named.keep(|_| true),
                instruments: instruments.clone(),
                series: self.series.clone(),
            }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_spans_are_kept_while_there_are_few() {
        let kept = (0..=MAX_TITLES).map(|n| kept_for_good(n.to_string()));
        let is_kept: Vec<_> = kept.map(|it| matches!(it, Cow::Borrowed(_))).collect();
        // Other tests have names, too.
        assert_eq!((is_kept[0], is_kept[MAX_TITLES]), (true, false));
        assert!(matches!(kept_for_good("0".into()), Cow::Borrowed("0")));
    }
}
