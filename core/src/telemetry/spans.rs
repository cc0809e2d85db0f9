//! Spans of requests, and their parents.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use opentelemetry::trace::{
    Link, Span, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags,
    TraceId, TraceState, Tracer,
};
use opentelemetry::{Context, KeyValue};

use super::attributes::{self, Value};
use super::names::Ended;
use super::otel::{Attributes, Instruments};
use super::series::{Kept, Named, SeriesTable};
use crate::connection::{ObservedRequest, RequestEnd, RequestObserver, RequestScope};
use crate::mcp::TraceContext;

/// A tracer, whatever its spans are.
pub(super) trait AnyTracer: Send + Sync {
    /// Begins a span within a context, with a link if there is one.
    fn begin(
        &self,
        title: Cow<'static, str>,
        kind: SpanKind,
        link: Option<SpanContext>,
        parent: Context,
    ) -> Begun;
}

/// A span that has begun.
#[derive(Debug)]
pub(super) enum Begun {
    /// The context in which it is current.
    Recorded(Context),
    /// One that the sampler left out: the context around it, and its place, by which spans below it are left out, too.
    Unrecorded(Context, SpanContext),
}

impl<T> AnyTracer for T
where
    T: Tracer<Span: Span + Send + Sync + 'static> + Send + Sync,
{
    fn begin(
        &self,
        title: Cow<'static, str>,
        kind: SpanKind,
        link: Option<SpanContext>,
        parent: Context,
    ) -> Begun {
        let mut builder = SpanBuilder::from_name(title).with_kind(kind);
        builder.links = link.map(|link| vec![Link::with_context(link)]);
        let span = self.build_with_context(builder, &parent);
        match span.is_recording() {
            true => Begun::Recorded(parent.with_span(span)),
            false => {
                let place = span.span_context().clone();
                Begun::Unrecorded(parent, place)
            }
        }
    }
}

/// A request with its span and its series.
#[derive(Debug)]
pub(super) struct Traced {
    pub series: Result<Arc<Attributes>, Unknown>,
    pub span: Begun,
}

/// A series that may be admitted when the request ends.
#[derive(Debug)]
pub(super) struct Unknown {
    pub kept: Kept,
    pub instruments: Arc<Instruments>,
    pub series: Arc<SeriesTable<Attributes>>,
}

impl Traced {
    fn is_sent(&self) -> bool {
        match &self.series {
            Ok(series) => series.is_sent,
            Err(unknown) => unknown.kept.is_sent,
        }
    }
}

impl RequestObserver for Traced {
    fn end(&self, end: &RequestEnd) {
        let ended = Ended::of(end.outcome, self.is_sent());
        if let Begun::Recorded(context) = &self.span {
            let span = context.span();
            let mut all = Vec::new();
            attributes::of_end(&ended, gathered(&mut all));
            span.set_attributes(all);
            if ended.error.is_some() {
                span.set_status(Status::error(""));
            }
            span.end();
        }
        match &self.series {
            Ok(series) => series.note(ended, end),
            Err(Unknown {
                kept,
                instruments,
                series,
            }) => {
                let make = |kept: &Kept| Attributes::new(kept, instruments);
                series.admit(kept, end.outcome, make).note(ended, end);
            }
        }
    }

    fn waits(&self, waits: bool) {
        let instruments = match &self.series {
            Ok(series) => &series.instruments,
            Err(unknown) => &unknown.instruments,
        };
        instruments.totals.waits(waits);
    }

    fn scope(self: Arc<Self>) -> Option<RequestScope> {
        let context = match &self.span {
            Begun::Recorded(context) => context.clone(),
            Begun::Unrecorded(_, place) if !place.is_valid() => return None,
            Begun::Unrecorded(around, place) => around.with_remote_span_context(place.clone()),
        };
        Some(RequestScope::new(move |poll| {
            let _attached = context.clone().attach();
            poll();
        }))
    }

    fn trace_context(&self) -> Option<TraceContext> {
        match &self.span {
            Begun::Recorded(context) => told(context.span().span_context()),
            Begun::Unrecorded(_, place) => told(place),
        }
    }
}

/// A place in a trace as a request names it; `None` if there is no span.
fn told(own: &SpanContext) -> Option<TraceContext> {
    let state = own.trace_state().header();
    own.is_valid().then(|| TraceContext {
        parent: format!(
            "00-{}-{}-{:02x}",
            own.trace_id(),
            own.span_id(),
            own.trace_flags()
        ),
        state: Some(state).filter(|state| !state.is_empty()),
        baggage: None,
    })
}

/// Begins the span of a request.
pub(super) fn begin(
    tracer: &dyn AnyTracer,
    named: &Named<'_>,
    title: Cow<'static, str>,
    request: &ObservedRequest<'_>,
) -> Begun {
    let (parent, link) = parent(request);
    let kind = match named.is_sent {
        true => SpanKind::Client,
        false => SpanKind::Server,
    };
    let begun = tracer.begin(title, kind, link, parent);
    if let Begun::Recorded(context) = &begun {
        let mut all = Vec::new();
        attributes::of_series(named, gathered(&mut all));
        attributes::of_request(request, gathered(&mut all));
        context.span().set_attributes(all);
    }
    begun
}

/// The context that a span begins in, and the one to which it has a link.
fn parent(request: &ObservedRequest<'_>) -> (Context, Option<SpanContext>) {
    let current = Context::current();
    let head = || remote(request.channel()?.trace.as_ref()?);
    let ambient = match current.has_active_span() {
        true => Some(current.span().span_context().clone()).filter(SpanContext::is_valid),
        false => None,
    };
    let said = || request.trace_context().as_ref().and_then(remote);
    match (request.is_sent(), ambient) {
        // What the caller says is the place of the call that it serves, which is around the span that is current.
        (true, Some(_)) => (current, None),
        (true, None) => match said() {
            Some(said) => (current.with_remote_span_context(said), None),
            None => (current, None),
        },
        (false, ambient) => match (said(), ambient.is_some()) {
            (Some(said), _) => {
                let link = ambient.or_else(head);
                (current.with_remote_span_context(said), link)
            }
            (None, true) => (current, None),
            (None, false) => match head() {
                Some(head) => (current.with_remote_span_context(head), None),
                None => (current, None),
            },
        },
    }
}

/// A valid trace context of another process.
fn remote(context: &TraceContext) -> Option<SpanContext> {
    let mut parts = context.parent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let state = context.state.as_deref().map(TraceState::from_str);
    let state = state.and_then(Result::ok).unwrap_or_default();
    let context = SpanContext::new(trace, span, TraceFlags::new(flags), true, state);
    context.is_valid().then_some(context)
}

/// Gathers attributes.
pub(super) fn gathered(to: &mut Vec<KeyValue>) -> impl FnMut(&'static str, Value<'_>) {
    |name, value| {
        to.push(match value {
            Value::Text(text) => KeyValue::new(name, text.into_owned()),
            Value::Number(number) => KeyValue::new(name, number),
            Value::Flag(flag) => KeyValue::new(name, flag),
        });
    }
}
