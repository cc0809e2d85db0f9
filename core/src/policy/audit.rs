//! Audit events: one per call, read, prompt, completion and subscription, and one per request that was
//! refused over HTTP for its credentials.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::panics::contain;
use serde::Serialize;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditOutcome {
    /// Answered with a result.
    Done,
    /// Answered with a result in which the tool reports a failure.
    ToolFailed,
    /// Answered with an error.
    Failed,
    /// Refused: the client is not allowed to do this.
    Denied,
    /// Refused: the client exceeded its rate or quota.
    Limited,
    /// The handler exceeded its time limit.
    TimedOut,
    /// Cancelled before it was answered, or its connection ended.
    Cancelled,
}

impl AuditOutcome {
    /// The outcome as it is written in JSON.
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

/// One request and its outcome. Credentials that a [`Redaction`](super::Redaction) finds are masked in
/// all texts.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AuditEvent<'a> {
    /// The method on the wire. If a request was refused for its credentials over HTTP, before it was
    /// read, then `method`, `name`, `id` and `revision` are empty.
    pub method: &'a str,
    /// The tool, the prompt or the URI.
    pub name: &'a str,
    /// The client, as it was verified.
    pub principal: Option<&'a str>,
    /// The request's id as raw JSON.
    pub id: &'a str,
    /// The revision in which the request was served.
    pub revision: &'a str,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// The error's code, if the outcome is an error; the HTTP status, if the request was refused for
    /// its credentials.
    pub code: Option<i64>,
    /// The message of the failure, if there is one.
    pub message: Option<&'a str>,
    /// Time from the arrival of the request to its answer.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub duration: Duration,
    /// The arguments, raw JSON, if the policy [includes them](super::Policy::audit_arguments).
    pub arguments: Option<&'a str>,
    /// Number of events dropped right before this one because the [queue](super::AuditQueue) was full.
    pub dropped: u64,
}

fn seconds<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_secs_f64())
}

impl AuditEvent<'_> {
    /// The event as a JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A receiver of audit events.
#[derive(Clone)]
pub(super) struct Sink(Arc<Report>);

type Report = dyn Fn(&AuditEvent<'_>) + Send + Sync;

impl Sink {
    pub fn new(report: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Passes an event on. A receiver that panics affects nothing else.
    pub fn tell(&self, event: &AuditEvent<'_>) {
        contain("a receiver of the audit", || (self.0)(event));
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink(..)")
    }
}

/// Emits a `tracing` event, if the feature is enabled.
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
