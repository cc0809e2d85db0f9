//! One request, or one session, of a [`HostTelemetry`]: what the host is told of it, and when.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::attributes;
use super::host::{HostSeries, HostTelemetry};
use super::names::{Ended, session_error};
use super::passing::{Begun, Passed};
use super::records::{
    Attributes, Place, Record, RequestRecord, SessionRecord, Span, SpanSeries, Time, json,
};
use super::series::Kept;
use crate::connection::{
    ObservedRequest, RequestEnd, RequestObserver, RequestScope, SessionObserver,
};
use crate::error::ConnectionError;
use crate::mcp::TraceContext;

thread_local! {
    /// The request whose scope surrounds this thread.
    static CURRENT: RefCell<Option<Arc<HostedRequest>>> = const { RefCell::new(None) };
}

/// What the host was told of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Begun,
    Ended,
}

/// Where a span belongs.
pub(super) enum Origin {
    /// In the first place, with a link to the second one.
    Places([Option<Place>; 2]),
    /// Where a front passes a request on.
    Passed(Passed),
}

impl Origin {
    /// As far as the request says it.
    pub fn said(request: &ObservedRequest<'_>) -> Self {
        let said = request.trace_context().map(Place::from);
        let head = request.channel().filter(|_| !request.is_sent());
        let head = head.and_then(|it| it.trace.clone()).map(Place::from);
        Self::Places(match said {
            Some(_) => [said, head],
            None => [head, None],
        })
    }
}

pub(super) struct HostedRequest {
    pub telemetry: HostTelemetry,
    /// Its series; the name of one that is not known yet.
    series: Result<Arc<HostSeries>, Kept>,
    key: u64,
    time: Time,
    places: [Option<Place>; 2],
    /// The attributes that it has beside those of its series.
    own: Attributes,
    told: Mutex<Told>,
    /// What the request carries, if this side sends it.
    context: Option<TraceContext>,
    /// Whether its span began before it was known where it is sent.
    is_passed: bool,
    /// The spans that the host has begun, if it is passed on.
    begun: Mutex<Option<Begun>>,
}

impl HostedRequest {
    pub fn new(
        telemetry: &HostTelemetry,
        series: Result<Arc<HostSeries>, Kept>,
        request: &ObservedRequest<'_>,
        origin: Origin,
    ) -> Self {
        let elapsed = request.arrived().map(|it| it.elapsed());
        let mut own = Attributes::default();
        attributes::of_request(request, own.gather());
        let (key, places, told, context) = match origin {
            Origin::Passed(Passed::By(key, context)) => {
                (key, [None, None], Told::Begun, Some(context))
            }
            Origin::Passed(Passed::Within(context)) => {
                let within = [Some(context.clone().into()), None];
                (telemetry.key(), within, Told::Nothing, Some(context))
            }
            Origin::Places(places) => (telemetry.key(), places, Told::Nothing, None),
        };
        Self {
            telemetry: telemetry.clone(),
            series,
            key,
            time: Time::before_now(elapsed.unwrap_or_default()),
            places,
            own,
            told: Mutex::new(told),
            context,
            is_passed: told == Told::Begun,
            begun: Mutex::default(),
        }
    }

    /// The same, which is about to be sent: `send` has the host begin its span, if that has not begun.
    pub fn sent(mut self, send: impl FnOnce(&dyn Fn() -> String) -> Option<TraceContext>) -> Self {
        if self.context.is_none()
            && let Some(context) = send(&|| json(&self.span()))
        {
            self.told = Mutex::new(Told::Begun);
            self.context = Some(context);
        }
        self
    }

    /// The request whose scope surrounds this thread.
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, Option<Begun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> &Kept {
        match &self.series {
            Ok(series) => &series.kept,
            Err(kept) => kept,
        }
    }

    /// Its attributes with those of its series.
    fn attributes(&self) -> Attributes {
        let mut all = Attributes::default();
        attributes::of_series(self.kept(), all.gather());
        all.extend(self.own.clone());
        all
    }

    /// The description of its span.
    pub fn span(&self) -> Span {
        let [parent, link] = self.places.clone();
        let (series, attributes) = match &self.series {
            Ok(series) => (SpanSeries::Known(series.number), self.own.clone()),
            Err(kept) => {
                let series = SpanSeries::Unknown(kept.title(), kept.is_sent);
                (series, self.attributes())
            }
        };
        Span {
            key: self.key,
            series,
            time: self.time,
            parent,
            link,
            attributes,
        }
    }

    /// The description of the span of the request by which this one is passed on, as far as it is known before.
    pub fn passed_on(&self, key: u64) -> Span {
        let mut attributes = self.attributes();
        attributes.retain(|name| {
            name == "mcp.method.name" || name == "mcp.resource.uri" || name.starts_with("gen_ai.")
        });
        Span {
            key,
            series: SpanSeries::Unknown(self.kept().title(), true),
            time: Time::now(),
            parent: None,
            link: None,
            attributes,
        }
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

    /// The key of its span, if the host has begun that at a front and the request is not over.
    pub fn key_at_front(&self) -> Option<u64> {
        self.begun().is_some().then_some(self.key)
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

    /// How a request with that method is sent for this one, if that is passed on.
    pub fn passes(&self, method: &str) -> Option<Passed> {
        let is_alike = self.kept().method() == method;
        self.begun().as_mut().map(|begun| begun.pass(is_alike))
    }
}

impl fmt::Debug for HostedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostedRequest").field(self.kept()).finish()
    }
}

impl RequestObserver for HostedRequest {
    fn end(&self, end: &RequestEnd) {
        let told = match std::mem::replace(&mut *self.told(), Told::Ended) {
            Told::Begun if self.telemetry.withdraw(self.key) => Told::Nothing,
            told => told,
        };
        let shared = &self.telemetry.0;
        let ended = Ended::of(end.outcome, self.kept().is_sent);
        let series = match &self.series {
            Ok(series) => series.clone(),
            Err(kept) => shared.admit(kept, end.outcome),
        };
        let (mut of_span, mut failed) = (Attributes::default(), Attributes::default());
        attributes::of_end(&ended, of_span.gather());
        let is_error = ended.error.is_some();
        if ended != Ended::default() {
            let (ended, ()) = series.failed.of(ended);
            attributes::of_end(&ended, failed.gather());
        }
        if self.is_passed {
            of_span.extend(self.attributes());
        }
        let record = RequestRecord {
            key: self.key,
            series: series.number,
            time: Time::now(),
            seconds: end.begun.map_or(0.0, |it| it.elapsed().as_secs_f64()),
            is_error,
            ended: of_span,
            failed,
            begun: (told == Told::Nothing).then(|| Box::new(self.span())),
            renamed: self.is_passed.then(|| self.kept().title()),
            unsent: self.begun().take().and_then(Begun::unsent),
        };
        shared.record(Record::Request(record), told == Told::Begun);
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
pub(super) struct HostedSession {
    pub telemetry: HostTelemetry,
    pub begun: Instant,
    pub histogram: &'static str,
    pub attributes: Attributes,
}

impl SessionObserver for HostedSession {
    fn end(self: Box<Self>, reason: &ConnectionError) {
        let mut attributes = self.attributes;
        if let Some(error) = session_error(reason) {
            attributes.gather()("error.type", error.into());
        }
        let record = SessionRecord {
            time: Time::now(),
            seconds: self.begun.elapsed().as_secs_f64(),
            histogram: self.histogram,
            attributes,
        };
        self.telemetry.0.record(Record::Session(record), false);
    }
}
