//! Who did what, and what came of it: one event for each call, read, prompt and subscription, and for
//! who was refused over HTTP because nobody knows them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// A result.
    Done,
    /// A result that says that the tool failed.
    ToolFailed,
    /// An error.
    Failed,
    /// The client may not.
    Denied,
    /// The client asked too often.
    Limited,
    /// The handler took too long.
    TimedOut,
    /// Nobody waited for it any more.
    Cancelled,
}

impl Outcome {
    pub(super) const ALL: [Self; 7] = [
        Self::Done,
        Self::ToolFailed,
        Self::Failed,
        Self::Denied,
        Self::Limited,
        Self::TimedOut,
        Self::Cancelled,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::ToolFailed => "tool_failed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Limited => "limited",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// One request and what came of it. Texts come without the credentials that a
/// [`Redaction`](super::Redaction) finds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AuditEvent<'a> {
    /// The method on the wire. Empty, as are the name, the id and the revision, of who was refused
    /// before anything was read.
    pub method: &'a str,
    /// The tool or prompt, or the URI.
    pub name: &'a str,
    /// Who asked, as the carrier has verified.
    pub principal: Option<&'a str>,
    /// The request's id, as it stands on the wire.
    pub id: &'a str,
    /// The revision that it was served in.
    pub revision: &'a str,
    /// What came of it.
    pub outcome: Outcome,
    /// The code of the error, if it is one; the status of HTTP of who was refused before.
    pub code: Option<i64>,
    /// What was said of the failure, if it is one.
    pub message: Option<&'a str>,
    /// From when the request came to when it was answered.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub duration: Duration,
    /// The arguments, raw JSON, where they are kept.
    pub arguments: Option<&'a str>,
}

fn seconds<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}

impl AuditEvent<'_> {
    /// As one JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Who is told.
#[derive(Clone)]
pub(super) struct Sink(Arc<Report>);

type Report = dyn Fn(&AuditEvent<'_>) + Send + Sync;

impl Sink {
    pub fn new(report: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// A sink that panics takes nothing along.
    pub fn tell(&self, event: &AuditEvent<'_>) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink(..)")
    }
}

/// An event of `tracing`, where that is built in and somebody listens.
pub(super) fn trace(event: &AuditEvent<'_>) {
    #[cfg(feature = "tracing")]
    tracing::info!(
        target: "mcpbolt::audit",
        method = event.method,
        name = event.name,
        principal = event.principal,
        id = event.id,
        revision = event.revision,
        outcome = event.outcome.name(),
        code = event.code,
        message = event.message,
        seconds = event.duration.as_secs_f64(),
        arguments = event.arguments,
    );
    #[cfg(not(feature = "tracing"))]
    let _ = event;
}
