//! Options of a request of this side, and the outcome that its caller gets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::keys::CallKey;
use crate::message::RequestId;

/// One notification of progress on a request of this side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Amount done so far; strictly increases (R-PRG-02).
    pub progress: f64,
    /// Amount to be done in total, if known.
    pub total: Option<f64>,
    /// A message for people.
    pub message: Option<&'a str>,
}

impl Progress<'_> {
    /// Returns the params of a progress notification for a request that is no longer in flight; `meta`
    /// is the notification's `_meta`, a JSON object.
    pub(crate) fn to_params(self, token: RequestId<'_>, meta: &str) -> String {
        let mut params = serde_json::json!({ "progress": self.progress });
        if let Some(total) = self.total {
            params["total"] = total.into();
        }
        if let Some(message) = self.message {
            params["message"] = message.into();
        }
        let members = params.to_string();
        let members = members.strip_suffix('}').unwrap_or_default();
        format!(
            "{members},\"progressToken\":{},\"_meta\":{meta}}}",
            token.raw()
        )
    }
}

/// Callback for progress notifications. Called on the driver's thread, only before the answer is handed
/// over. Must not block.
pub type ProgressFn = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// Callback for the parts of an action's answer, each raw JSON. Called on the driver's thread, only
/// before the answer is handed over. Must not block.
pub type PartialFn = Arc<dyn Fn(&str) + Send + Sync>;

/// Options of one action.
#[derive(Clone, Default)]
pub struct ActOptions {
    /// The tool or namespace that the action is addressed to.
    pub tool: Option<Box<str>>,
    /// The process or state that the action belongs to.
    pub context: Option<Box<str>>,
    /// Further members of the action's metadata: a JSON object.
    pub metadata: Option<Box<str>>,
    /// How long to wait for the answer; [`Limits::request_timeout`](crate::limits::Limits) when `None`.
    /// Each part of the answer restarts the time.
    pub timeout: Option<Duration>,
    /// Receives the parts of the answer.
    pub partial: Option<PartialFn>,
    /// Whether to request the answer in parts.
    pub streamed: bool,
}

impl fmt::Debug for ActOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActOptions")
            .field("tool", &self.tool)
            .field("context", &self.context)
            .field("timeout", &self.timeout)
            .field("partial", &self.partial.is_some())
            .finish()
    }
}

/// Options of one request.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long to wait for the answer; [`Limits::request_timeout`](crate::limits::Limits) when `None`.
    /// Each progress notification whose `progress` increases restarts the time.
    pub timeout: Option<Duration>,
    /// How long to wait in total, regardless of progress. When `None`, the longer of
    /// [`Limits::max_request_timeout`](crate::limits::Limits) and `timeout`.
    pub max_timeout: Option<Duration>,
    /// Requests progress notifications from the peer and receives them.
    pub progress: Option<ProgressFn>,
    /// Further `_meta` members: a JSON object. A member that `params` has too gets the value given here.
    pub meta: Option<Box<str>>,
    /// The peer's request on whose behalf this request is made. This request is sent on the stream of
    /// that one (R-HTP-08).
    pub within: Option<CallKey>,
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The peer's description of itself when the connection opened. For display only: it is not
/// verified (R-MET-07).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerInfo {
    /// The peer's `Implementation`, a JSON object; empty if it sent none.
    pub implementation: Box<str>,
    /// The peer's capabilities, a JSON object.
    pub capabilities: Box<str>,
    /// The server's instructions for the model.
    pub instructions: Option<Box<str>>,
}
