//! What the host of [`HostTelemetry`](super::host::HostTelemetry) reads, as JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

use super::attributes::Value;
use crate::mcp::TraceContext;

/// Writes what serde writes without fail.
pub(super) fn json(value: &impl Serialize) -> String {
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

    pub fn now() -> Self {
        Self::before_now(Duration::ZERO)
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Plain {
    Text(String),
    Number(i64),
    Flag(bool),
}

/// Attributes by name, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes(Vec<(&'static str, Plain)>);

impl Attributes {
    /// Gathers attributes.
    pub fn gather(&mut self) -> impl FnMut(&'static str, Value<'_>) {
        |name, value| {
            let value = match value {
                Value::Text(text) => Plain::Text(text.into_owned()),
                Value::Number(number) => Plain::Number(number),
                Value::Flag(flag) => Plain::Flag(flag),
            };
            self.0.push((name, value));
        }
    }

    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub fn retain(&mut self, has: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| has(name));
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
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
#[derive(Debug)]
pub(super) struct Span {
    pub key: u64,
    pub series: SpanSeries,
    pub time: Time,
    pub parent: Option<Place>,
    pub link: Option<Place>,
    pub attributes: Attributes,
}

/// The name and the kind of a span.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum SpanSeries {
    /// Those of a series, which also says what further attributes the span has.
    Known(u32),
    /// Without a series: the name, and whether this side sends the request.
    Unknown(String, bool),
}

/// As an array, since each request has one: that takes less time to read than an object.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Time(seconds, nanos) = self.time;
        let mut all = serializer.serialize_seq(None)?;
        all.serialize_element(&self.key)?;
        all.serialize_element(&self.series)?;
        all.serialize_element(&seconds)?;
        all.serialize_element(&nanos)?;
        all.serialize_element(&self.attributes)?;
        if self.parent.is_some() || self.link.is_some() {
            all.serialize_element(&self.parent)?;
            all.serialize_element(&self.link)?;
        }
        all.end()
    }
}

/// What requests of a series have in common.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct About {
    pub name: String,
    pub is_sent: bool,
    pub histogram: &'static str,
    pub attributes: Attributes,
}

/// Two spans that are to begin: of a request that arrived, and within it of the one by which it is passed on.
#[derive(Debug, Serialize)]
pub(super) struct Passing {
    pub passes: [Span; 2],
}

/// What has ended.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Record {
    Request(RequestRecord),
    Session(SessionRecord),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestRecord {
    pub key: u64,
    pub series: u32,
    pub time: Time,
    pub seconds: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    pub ended: Attributes,
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    pub failed: Attributes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun: Option<Box<Span>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsent: Option<u64>,
}

/// A request that ended well, and whose span the host has: the key, the series, seconds and nanoseconds since 1970, and how many
/// seconds the request took.
pub(super) type Row = [f64; 5];

impl RequestRecord {
    /// The record as numbers, if there is nothing else to say.
    pub fn row(&self) -> Option<Row> {
        let is_more = self.is_error
            || !self.ended.is_empty()
            || !self.failed.is_empty()
            || self.begun.is_some()
            || self.renamed.is_some()
            || self.unsent.is_some();
        let Time(seconds, nanos) = self.time;
        (!is_more).then(|| {
            // Numbers of this size are exact.
            let [key, seconds] = [self.key, seconds].map(|it| it as f64);
            [key, self.series.into(), seconds, nanos.into(), self.seconds]
        })
    }
}

#[derive(Debug, Serialize)]
pub(super) struct SessionRecord {
    pub time: Time,
    pub seconds: f64,
    pub histogram: &'static str,
    pub attributes: Attributes,
}
