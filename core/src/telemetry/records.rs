//! What the host of [`HostTelemetry`](super::host::HostTelemetry) reads, as JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub key: u64,
    /// Its series, which says its name, its kind, and what further attributes it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<u32>,
    /// Without a series: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Without a series: whether this side sends the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_sent: Option<bool>,
    pub time: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Place>,
    pub attributes: Attributes,
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

#[derive(Debug, Serialize)]
pub(super) struct SessionRecord {
    pub time: Time,
    pub seconds: f64,
    pub histogram: &'static str,
    pub attributes: Attributes,
}
