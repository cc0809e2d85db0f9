//! Requests and sessions for the OpenTelemetry SDK of another language, which makes the spans and records the durations.
//!
//! ```text
//!   a handler is about to run      ─▶ HostTelemetry::begun, in its scope ─▶ the host begins a span
//!   a request is about to be sent  ─▶ TelemetryHost::sent ─▶ the host begins a span, whose context the request carries
//!   a request or a session is over ─▶ TelemetryHost::wake, then HostTelemetry::take ─▶ the host ends the span, or makes one
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::attributes::{self, Value};
use super::histogram::BUCKETS;
use super::instruments;
use super::names::{Ended, Failures, session_error};
use super::passing::{Begun, Held, Passed, Passing};
use super::series::{Kept, Named, SeriesTable};
use crate::connection::{
    ObservedRequest, ObservedSession, Observer, RequestEnd, RequestObserver, RequestScope,
    SessionObserver,
};
use crate::error::ConnectionError;
use crate::mcp::{Side, TraceContext};

/// Maximum number of records of ended requests and sessions that wait for the host. Beyond it, records are dropped, except those
/// whose span the host has begun.
pub const MAX_RECORDS: usize = 65_536;

/// The other language's part of a [`HostTelemetry`]. Called on any thread; must not block.
pub trait TelemetryHost: fmt::Debug + Send + Sync {
    /// Something waits for [`HostTelemetry::take`]. Called once until that has taken it.
    fn wake(&self);

    /// A request is about to be sent on this thread. Begins its span, which is described as [`HostTelemetry::begun`] does, and returns the
    /// span's context; `None` if it cannot do so here. A span that was not begun is made when its record is taken.
    fn sent(&self, begun: &dyn Fn() -> String) -> Option<TraceContext>;
}

/// An [`Observer`] for bindings: hands requests and sessions to the OpenTelemetry SDK of their language, as JSON.
///
/// A time is `[seconds, nanoseconds]` since 1970. A place in a trace is `[traceparent, tracestate]`, the latter `null` if there is
/// none. The description of a span has `key`, `name`, `isSent`, `time`, `attributes`, and if there are any, `parent` and `link`.
///
/// A record of what has ended has `time`, `seconds`, `histogram`, the name of one of [`instruments`](Self::instruments), and
/// `attributes`, those of the histogram. That of a request has the `key` of its span, `ended`, the attributes to add to the span, and
/// `isError`; and `begun`, the description of the span, unless the host got it before. `renamed` is the span's name if it has another one
/// now, and `unsent` the key of a span that no request was sent with.
///
/// Of a [`Front`](crate::chain::Front) it is the observer and the first middleware. Among the records is then `{"passes": [OWN, SENT]}` for
/// each request that came: the host begins both spans, the second within the first, and calls [`passed`](Self::passed), for which
/// the request waits.
#[derive(Clone)]
pub struct HostTelemetry(Arc<Shared>);

struct Shared {
    host: Box<dyn TelemetryHost>,
    next: AtomicU64,
    series: SeriesTable<(Attributes, Failures<()>)>,
    waiting: Mutex<Entries>,
    /// Requests at a front that wait for the host, by the key of their span.
    held: Mutex<HashMap<u64, Held>>,
}

/// What the host takes.
#[derive(Default)]
struct Entries {
    /// Requests that wait for the host, by the key of their span.
    passing: BTreeMap<u64, Passing>,
    ended: Vec<Record>,
    /// Whether the host knows that there is something.
    is_told: bool,
}

/// One of them, as the host reads it.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Passing(&'a Passing),
    Ended(&'a Record),
}

thread_local! {
    /// The request whose scope surrounds this thread.
    static CURRENT: RefCell<Option<Arc<HostedRequest>>> = const { RefCell::new(None) };
}

impl HostTelemetry {
    /// Hands everything to `host`.
    pub fn new(host: impl TelemetryHost + 'static) -> Self {
        Self(Arc::new(Shared {
            host: Box::new(host),
            next: AtomicU64::new(1),
            series: SeriesTable::default(),
            waiting: Mutex::default(),
            held: Mutex::default(),
        }))
    }

    /// The histograms, as a JSON object by name: `unit`, `description`, `boundaries`.
    pub fn instruments() -> String {
        let all = [false, true].map(|is_sent| {
            [
                instruments::of_requests(is_sent),
                instruments::of_sessions(is_sent),
            ]
        });
        let all = all.as_flattened().iter().map(|one| {
            let description = one.description;
            let (unit, boundaries) = ("s", &BUCKETS[..]);
            let about = Instrument {
                unit,
                description,
                boundaries,
            };
            (one.name, about)
        });
        json(&all.collect::<BTreeMap<_, _>>())
    }

    /// The description of the span of the request whose [`RequestScope`] surrounds this thread. `None` if there is no such request,
    /// if it is over, or if its description was asked for before.
    pub fn begun() -> Option<String> {
        let current = CURRENT.with_borrow(Clone::clone)?;
        current.begins().then(|| json(&current.span))
    }

    /// Takes the records of what has ended, as a JSON array; `None` if there are none.
    pub fn take(&self) -> Option<String> {
        let Entries { passing, ended, .. } = std::mem::take(&mut *self.0.waiting());
        // Requests first: their own records must not overtake them.
        let passing = passing.values().map(Entry::Passing);
        let all: Vec<_> = passing.chain(ended.iter().map(Entry::Ended)).collect();
        (!all.is_empty()).then(|| json(&all))
    }

    /// The request whose scope surrounds this thread, if this is its observer.
    pub(super) fn current(&self) -> Option<Arc<HostedRequest>> {
        let current = CURRENT.with_borrow(Clone::clone)?;
        Arc::ptr_eq(&current.telemetry.0, &self.0).then_some(current)
    }

    /// A key for the next span.
    pub(super) fn key(&self) -> u64 {
        self.0.next.fetch_add(1, Relaxed)
    }

    pub(super) fn held(&self) -> MutexGuard<'_, HashMap<u64, Held>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the host begin the spans of a request, which waits for it. As many wait as are in flight at most: a request that ends before
    /// the host has taken it is withdrawn.
    pub(super) fn ask(&self, key: u64, passing: Passing) {
        self.0
            .hand_over(|waiting| waiting.passing.insert(key, passing));
    }

    /// Withdraws the request whose own span has that key; returns whether the host had not taken it. What waits is not woken: it is
    /// dropped when the request is cancelled, which is about to happen, and would send the request on if it ran before.
    fn withdraw(&self, key: u64) -> bool {
        self.0.waiting().passing.remove(&key).is_some()
    }
}

impl fmt::Debug for HostTelemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostTelemetry").field(&self.0.host).finish()
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Entries> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what `put` adds.
    fn hand_over<T>(&self, put: impl FnOnce(&mut Entries) -> T) {
        let mut waiting = self.waiting();
        put(&mut waiting);
        let was_told = std::mem::replace(&mut waiting.is_told, true);
        drop(waiting);
        if !was_told {
            self.host.wake();
        }
    }

    /// Hands over a record. One that nobody waits for may be dropped.
    fn record(&self, record: Record, is_awaited: bool) {
        self.hand_over(|waiting| {
            if is_awaited || waiting.ended.len() < MAX_RECORDS {
                waiting.ended.push(record);
            }
        });
    }
}

/// Writes what serde writes without fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Time(u64, u32);

impl Time {
    pub fn before_now(elapsed: Duration) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let then = now.unwrap_or_default().saturating_sub(elapsed);
        Self(then.as_secs(), then.subsec_nanos())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Plain {
    Text(String),
    Number(i64),
}

/// Attributes by name.
pub(super) type Attributes = BTreeMap<&'static str, Plain>;

fn gathered(to: &mut Attributes) -> impl FnMut(&'static str, Value<'_>) {
    |name, value| {
        let value = match value {
            Value::Text(text) => Plain::Text(text.into_owned()),
            Value::Number(number) => Plain::Number(number),
        };
        to.insert(name, value);
    }
}

#[derive(Serialize)]
struct Instrument {
    unit: &'static str,
    description: &'static str,
    boundaries: &'static [f64],
}

/// `traceparent` and `tracestate`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Place(String, Option<String>);

impl From<TraceContext> for Place {
    fn from(context: TraceContext) -> Self {
        Self(context.parent, context.state)
    }
}

/// What a span begins with.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub key: u64,
    pub name: String,
    pub is_sent: bool,
    pub time: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Place>,
    pub attributes: Attributes,
}

/// What has ended.
#[derive(Debug, Serialize)]
struct Record {
    time: Time,
    seconds: f64,
    histogram: &'static str,
    attributes: Attributes,
    #[serde(flatten)]
    of_request: Option<OfRequest>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OfRequest {
    key: u64,
    is_error: bool,
    ended: Attributes,
    #[serde(skip_serializing_if = "Option::is_none")]
    begun: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsent: Option<u64>,
}

/// What the host was told of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Begun,
    Ended,
}

pub(super) struct HostedRequest {
    telemetry: HostTelemetry,
    series: Kept,
    span: Span,
    told: Mutex<Told>,
    /// What the request carries, if this side sends it.
    context: Option<TraceContext>,
    /// Whether its span began before it was known where it is sent.
    is_passed: bool,
    /// The spans that the host has begun, if it is passed on.
    begun: Mutex<Option<Begun>>,
}

impl HostedRequest {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, Option<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Notes that the host begins the span. Returns whether it is to: not if the request is over, or the second time.
    pub fn begins(&self) -> bool {
        let mut told = self.told();
        let is_first = *told == Told::Nothing;
        if is_first {
            *told = Told::Begun;
        }
        is_first
    }

    /// Keeps the spans that the host has begun; returns whether the request is not over.
    pub fn has_begun(&self, begun: Begun) -> bool {
        let told = self.told();
        let is_open = *told == Told::Begun;
        if is_open {
            *self.begun() = Some(begun);
        }
        is_open
    }

    /// How a request with these attributes is sent for this one, if that is passed on.
    fn passes(&self, attributes: &Attributes) -> Option<Passed> {
        let method = |of: &Attributes| of.get("mcp.method.name").cloned();
        let is_alike = method(attributes) == method(&self.span.attributes);
        self.begun().as_mut().map(|begun| begun.pass(is_alike))
    }
}

impl fmt::Debug for HostedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostedRequest")
            .field(&self.span.name)
            .finish()
    }
}

impl Observer for HostTelemetry {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let named = Named::of(request);
        let elapsed = request.arrived().map(|it| it.elapsed());
        let mut attributes = Attributes::new();
        attributes::of_series(&named, gathered(&mut attributes));
        attributes::of_request(request, gathered(&mut attributes));
        let passed = match named.is_sent {
            true => self.current().and_then(|it| it.passes(&attributes)),
            false => None,
        };
        let (key, parent, link) = match &passed {
            Some(Passed::By(key, _)) => (*key, None, None),
            Some(Passed::Within(context)) => (self.key(), Some(context.clone().into()), None),
            None => {
                let [parent, link] = places(request);
                (self.key(), parent, link)
            }
        };
        let span = Span {
            key,
            name: named.title(),
            is_sent: named.is_sent,
            time: Time::before_now(elapsed.unwrap_or_default()),
            parent,
            link,
            attributes,
        };
        let (told, is_passed) = (Told::Nothing, matches!(passed, Some(Passed::By(..))));
        let (told, context) = match passed {
            Some(Passed::By(_, context)) => (Told::Begun, Some(context)),
            Some(Passed::Within(context)) => (told, Some(context)),
            None if named.is_sent => match self.0.host.sent(&|| json(&span)) {
                Some(context) => (Told::Begun, Some(context)),
                None => (told, None),
            },
            None => (told, None),
        };
        Some(Arc::new(HostedRequest {
            telemetry: self.clone(),
            series: named.keep(|_| true),
            told: Mutex::new(told),
            span,
            context,
            is_passed,
            begun: Mutex::default(),
        }))
    }

    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let mut attributes = Attributes::new();
        attributes::of_session(session, gathered(&mut attributes));
        Some(Box::new(Session {
            telemetry: self.clone(),
            begun: Instant::now(),
            histogram: instruments::of_sessions(session.side() == Side::Client).name,
            attributes,
        }))
    }
}

/// The place that a span begins in, and the one to which it has a link, as far as the request says them.
fn places(request: &ObservedRequest<'_>) -> [Option<Place>; 2] {
    let said = request.trace_context().map(Place::from);
    let head = request
        .channel()
        .filter(|_| !request.is_sent())
        .and_then(|it| it.trace.clone())
        .map(Place::from);
    match said {
        Some(_) => [said, head],
        None => [head, None],
    }
}

impl RequestObserver for HostedRequest {
    fn end(&self, end: &RequestEnd) {
        let told = match std::mem::replace(&mut *self.told(), Told::Ended) {
            Told::Begun if self.telemetry.withdraw(self.span.key) => Told::Nothing,
            told => told,
        };
        let shared = &self.telemetry.0;
        let ended = Ended::of(end.outcome, self.series.is_sent);
        let series = shared.series.admit(&self.series, end.outcome, |kept| {
            let mut attributes = Attributes::new();
            attributes::of_series(kept, gathered(&mut attributes));
            (attributes, Failures::default())
        });
        let mut of_end = Attributes::new();
        attributes::of_end(&ended, gathered(&mut of_end));
        let is_error = ended.error.is_some();
        if self.is_passed {
            of_end.extend(self.span.attributes.clone());
        }
        let unsent = self.begun().take().and_then(Begun::unsent);
        let (attributes, failed) = &*series;
        let mut attributes = attributes.clone();
        if ended != Ended::default() {
            let (ended, ()) = failed.of(ended);
            attributes::of_end(&ended, gathered(&mut attributes));
        }
        let record = Record {
            time: Time::before_now(Duration::ZERO),
            seconds: end.begun.map_or(0.0, |it| it.elapsed().as_secs_f64()),
            histogram: instruments::of_requests(self.series.is_sent).name,
            attributes,
            of_request: Some(OfRequest {
                key: self.span.key,
                is_error,
                ended: of_end,
                begun: (told == Told::Nothing).then(|| self.span.clone()),
                renamed: self.is_passed.then(|| self.span.name.clone()),
                unsent,
            }),
        };
        shared.record(record, told == Told::Begun);
    }

    fn scope(self: Arc<Self>) -> Option<RequestScope> {
        Some(RequestScope::new(move |poll| {
            let outer = CURRENT.replace(Some(self.clone()));
            poll();
            CURRENT.set(outer);
        }))
    }

    fn trace_context(&self) -> Option<TraceContext> {
        self.context.clone()
    }
}

#[derive(Debug)]
struct Session {
    telemetry: HostTelemetry,
    begun: Instant,
    histogram: &'static str,
    attributes: Attributes,
}

impl SessionObserver for Session {
    fn end(self: Box<Self>, reason: &ConnectionError) {
        let mut attributes = self.attributes;
        if let Some(error) = session_error(reason) {
            attributes.insert("error.type", Plain::Text(error.into()));
        }
        let record = Record {
            time: Time::before_now(Duration::ZERO),
            seconds: self.begun.elapsed().as_secs_f64(),
            histogram: self.histogram,
            attributes,
            of_request: None,
        };
        self.telemetry.0.record(record, false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Debug, Default)]
    struct Host(Arc<AtomicUsize>);

    impl TelemetryHost for Host {
        fn wake(&self) {
            self.0.fetch_add(1, Relaxed);
        }

        fn sent(&self, _: &dyn Fn() -> String) -> Option<TraceContext> {
            None
        }
    }

    fn record() -> Record {
        Record {
            time: Time(0, 0),
            seconds: 0.0,
            histogram: "",
            attributes: Attributes::new(),
            of_request: None,
        }
    }

    #[test]
    fn records_are_bounded_in_number_except_those_that_a_host_waits_for() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let telemetry = HostTelemetry::new(Host(wakes.clone()));
        for _ in 0..=MAX_RECORDS {
            telemetry.0.record(record(), false);
        }
        assert_eq!(telemetry.0.waiting().ended.len(), MAX_RECORDS);
        telemetry.0.record(record(), true);
        assert_eq!(telemetry.0.waiting().ended.len(), MAX_RECORDS + 1);
        assert_eq!(wakes.load(Relaxed), 1, "once for all");
        assert!(telemetry.take().is_some());
        assert!(telemetry.take().is_none());
        telemetry.0.record(record(), false);
        assert_eq!(wakes.load(Relaxed), 2);
    }
}
