//! Requests and sessions for the OpenTelemetry SDK of another language, which makes the spans and records the durations.
//!
//! ```text
//!   a handler is about to run      ─▶ HostTelemetry::begun, in its scope ─▶ the host begins a span
//!   a request is about to be sent  ─▶ TelemetryHost::sent ─▶ the host begins a span, whose context the request carries
//!   a request or a session is over ─▶ TelemetryHost::wake, then HostTelemetry::take ─▶ the host ends the span, or makes one
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;

use super::attributes;
use super::histogram::BUCKETS;
use super::hosted::{HostedRequest, HostedSession, Origin};
use super::instruments;
use super::names::Failures;
use super::passing::Held;
use super::records::{About, Attributes, Passing, Record, Row, json};
use super::series::{Kept, Named, SeriesTable};
use crate::connection::{
    ObservedRequest, ObservedSession, Observer, RequestObserver, RequestOutcome, SessionObserver,
};
use crate::mcp::{Side, TraceContext};

/// Maximum number of records of ended requests and sessions that wait for the host. Beyond it, records are dropped, except those
/// whose span the host has begun.
pub const MAX_RECORDS: usize = 65_536;

/// Numbers of a row of [`HostTelemetry::take_rows`].
const ROW: usize = size_of::<Row>() / size_of::<f64>();

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
/// none. A series is a number for requests that are alike; [`series`](Self::series) says what they have in common.
///
/// The description of a span is an array: its key, its series, the two numbers of its time, and an object with the attributes that it has
/// beside those of the series. In place of a series that is not known yet there is `[name, isSent]`, and then those are all attributes. If the
/// span has a parent or a link, these two follow, `null` for the one that it does not have.
///
/// The record of a request that has ended has the `key` of its span, `series`, `time` and `seconds`; `isError` if it is `true`; if there
/// are any, `ended`, the attributes to add to the span, and `failed`, those to add to the ones of the series in the histogram; and `begun`,
/// the description of the span, unless the host got it before. `renamed` is the span's name if it has another one now, and `unsent` the
/// key of a span that no request was sent with. The record of a session has `time`, `seconds`, `histogram`, the name of one of
/// [`instruments`](Self::instruments), and its `attributes`.
///
/// Of a [`Front`](crate::chain::Front) it is the observer and the first middleware. Among the records is then `{"passes": [OWN, SENT]}` for
/// each request that came: the host begins both spans, the second within the first, and calls [`passed`](Self::passed), for which
/// the request waits.
#[derive(Clone)]
pub struct HostTelemetry(pub(super) Arc<Shared>);

pub(super) struct Shared {
    host: Box<dyn TelemetryHost>,
    next: AtomicU64,
    series: SeriesTable<HostSeries>,
    /// The descriptions of the series, by number.
    about: Mutex<Vec<Arc<str>>>,
    waiting: Mutex<Entries>,
    /// Requests at a front that wait for the host, by the key of their span.
    held: Mutex<HashMap<u64, Held>>,
}

/// A series that the host may know.
#[derive(Debug)]
pub(super) struct HostSeries {
    pub number: u32,
    pub kept: Kept,
    pub failed: Failures<()>,
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

impl HostTelemetry {
    /// Hands everything to `host`.
    pub fn new(host: impl TelemetryHost + 'static) -> Self {
        Self(Arc::new(Shared {
            host: Box::new(host),
            next: AtomicU64::new(1),
            series: SeriesTable::default(),
            about: Mutex::default(),
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

    /// What the requests of a series have in common, as a JSON object: `name` and `isSent` of their spans, `histogram`, and `attributes`
    /// of both. Never changes; `None` if no span and no record has told of a series with that number.
    pub fn series(&self, number: u32) -> Option<String> {
        let about = self.0.about.lock().unwrap_or_else(PoisonError::into_inner);
        let about = usize::try_from(number).ok().and_then(|at| about.get(at));
        about.map(|about| (**about).to_owned())
    }

    /// The description of the span of the request whose [`RequestScope`](crate::connection::RequestScope) surrounds this thread; of a
    /// request whose span the host has begun at a front, an array of the key alone. `None` if there is no such request, if it is over, or
    /// if its description was asked for before.
    pub fn begun() -> Option<String> {
        let current = HostedRequest::current()?;
        match current.begins() {
            true => Some(json(&current.span())),
            false => current.key_at_front().map(|key| json(&[key])),
        }
    }

    /// Takes the records of what has ended, as a JSON array; `None` if there are none.
    pub fn take(&self) -> Option<String> {
        let Entries { passing, ended, .. } = std::mem::take(&mut *self.0.waiting());
        // Requests first: their own records must not overtake them.
        let passing = passing.values().map(Entry::Passing);
        let all: Vec<_> = passing.chain(ended.iter().map(Entry::Ended)).collect();
        (!all.is_empty()).then(|| json(&all))
    }

    /// Like [`take`](Self::take), but requests that ended well and whose spans the host has are written to `rows`, while there is
    /// room: five numbers for each, its `key`, `series`, the two of its `time`, and `seconds`. Returns how many numbers were written,
    /// and the remaining records.
    pub fn take_rows(&self, rows: &mut [f64]) -> (usize, Option<String>) {
        let Entries { passing, ended, .. } = std::mem::take(&mut *self.0.waiting());
        let mut used = 0;
        let is_left = |record: &&Record| {
            let row = match record {
                Record::Request(request) => request.row(),
                Record::Session(_) => None,
            };
            let place = rows.get_mut(used..used + ROW);
            let Some((place, row)) = place.zip(row) else {
                return true;
            };
            place.copy_from_slice(&row);
            used += ROW;
            false
        };
        let passing = passing.values().map(Entry::Passing);
        let left = ended.iter().filter(is_left).map(Entry::Ended);
        let all: Vec<_> = passing.chain(left).collect();
        (used, (!all.is_empty()).then(|| json(&all)))
    }

    /// The request whose scope surrounds this thread, if this is its observer.
    pub(super) fn current(&self) -> Option<Arc<HostedRequest>> {
        HostedRequest::current().filter(|it| Arc::ptr_eq(&it.telemetry.0, &self.0))
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
    pub(super) fn withdraw(&self, key: u64) -> bool {
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
    pub fn record(&self, record: Record, is_awaited: bool) {
        self.hand_over(|waiting| {
            if is_awaited || waiting.ended.len() < MAX_RECORDS {
                waiting.ended.push(record);
            }
        });
    }

    /// The series of a request that has ended, if it was not known when that began.
    pub fn admit(&self, kept: &Kept, outcome: RequestOutcome) -> Arc<HostSeries> {
        self.series.admit(kept, outcome, |kept| {
            let mut attributes = Attributes::default();
            attributes::of_series(kept, attributes.gather());
            let description = json(&About {
                name: kept.title(),
                is_sent: kept.is_sent,
                histogram: instruments::of_requests(kept.is_sent).name,
                attributes,
            });
            let mut about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
            let number = u32::try_from(about.len()).unwrap_or(u32::MAX);
            about.push(description.into());
            HostSeries {
                number,
                kept: kept.clone(),
                failed: Failures::default(),
            }
        })
    }
}

#[derive(Serialize)]
struct Instrument {
    unit: &'static str,
    description: &'static str,
    boundaries: &'static [f64],
}

impl Observer for HostTelemetry {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let named = Named::of(request);
        let series = self.0.series.find(&named);
        let series = series.cloned().ok_or_else(|| named.keep(|_| true));
        let origin = match named.is_sent {
            true => self.current().and_then(|it| it.passes(named.method())),
            false => None,
        };
        let origin = origin.map_or_else(|| Origin::said(request), Origin::Passed);
        let hosted = HostedRequest::new(self, series, request, origin);
        let send = |begun: &dyn Fn() -> String| self.0.host.sent(begun);
        Some(Arc::new(match named.is_sent {
            true => hosted.sent(send),
            false => hosted,
        }))
    }

    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let mut attributes = Attributes::default();
        attributes::of_session(session, attributes.gather());
        Some(Box::new(HostedSession {
            telemetry: self.clone(),
            begun: Instant::now(),
            histogram: instruments::of_sessions(session.side() == Side::Client).name,
            attributes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::telemetry::records::{SessionRecord, Time};

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
        Record::Session(SessionRecord {
            time: Time::now(),
            seconds: 0.0,
            histogram: "",
            attributes: Attributes::default(),
        })
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
