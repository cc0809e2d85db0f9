//! What other threads hold of a connection: the slab of pending requests and the submission
//! queue. Cloning is one reference count; nothing here waits for the driver.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::config::{Config, Opening};
use super::host::{CallKey, StreamId};
use super::principal::Principal;
use super::queue::{FrameKind, Place, Request, Submission, is_long};
use super::replies::Replies;
use super::response::{Opened, Response};
use super::shared::Shared;
use super::{params, scratch};
use crate::correlate::{RequestKey, Unregistered};
use crate::error::{ConnectionError, RequestError};
use crate::mcp::{LogLevel, Revision};
#[cfg(feature = "server")]
use crate::message::RequestId;

/// One notification of progress on a request of this side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// How far; strictly increases (R-PRG-02).
    pub progress: f64,
    /// How far in all, when known.
    pub total: Option<f64>,
    /// A sentence for people.
    pub message: Option<&'a str>,
}

impl Progress<'_> {
    /// As the params of a notification that no request in flight carries; `meta` is its `_meta`.
    #[cfg(feature = "server")]
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

/// Called on the driver's thread for each progress notification, before the answer is handed
/// over and never after. Must not block.
pub type ProgressFn = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// Called on the driver's thread with each part of an action's answer, raw JSON, before the answer
/// is handed over and never after. Must not block.
pub type PartialFn = Arc<dyn Fn(&str) + Send + Sync>;

/// How one action is to be treated.
#[derive(Clone, Default)]
pub struct ActOptions {
    /// The tool or namespace that is asked.
    pub tool: Option<Box<str>>,
    /// The process or state that the action belongs to.
    pub context: Option<Box<str>>,
    /// More members of its metadata: a JSON object.
    pub metadata: Option<Box<str>>,
    /// How long to wait without news; [`Limits::request_timeout`](crate::limits::Limits) when
    /// `None`. Parts of the answer start it again.
    pub timeout: Option<Duration>,
    /// Takes the parts of the answer.
    pub partial: Option<PartialFn>,
    /// Asks for the answer in parts.
    pub streamed: bool,
}

impl std::fmt::Debug for ActOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActOptions")
            .field("tool", &self.tool)
            .field("context", &self.context)
            .field("timeout", &self.timeout)
            .field("partial", &self.partial.is_some())
            .finish()
    }
}

/// How one request is to be treated.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long to wait without news; [`Limits::request_timeout`](crate::limits::Limits) when
    /// `None`. Progress starts it again.
    pub timeout: Option<Duration>,
    /// How long to wait in all, whatever the progress. When `None`, the longer of
    /// [`Limits::max_request_timeout`](crate::limits::Limits) and `timeout`.
    pub max_timeout: Option<Duration>,
    /// Asks the peer for progress, and receives it.
    pub progress: Option<ProgressFn>,
    /// More `_meta` members: a JSON object.
    pub meta: Option<Box<str>>,
    /// The peer's request on whose behalf this one is made: it goes out on that one's stream
    /// (R-HTP-08).
    pub within: Option<CallKey>,
}

impl std::fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What the peer said of itself when the connection opened. Display only (R-MET-07).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peer {
    /// Its `Implementation`, a JSON object; empty when it named none.
    pub implementation: Box<str>,
    /// Its capabilities, a JSON object.
    pub capabilities: Box<str>,
    /// The server's instructions.
    pub instructions: Option<Box<str>>,
}

/// A cloneable, thread-safe way to a connection.
#[derive(Clone)]
pub struct Handle {
    pub(super) shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let shared = Arc::new(Shared::new(config));
        Self { shared }
    }

    /// What this side brought to the connection.
    pub fn config(&self) -> &Arc<Config> {
        &self.shared.config
    }

    /// Who the peer is, as its carrier has verified: see
    /// [`Connection::set_principal`](super::Connection::set_principal). What the peer says of
    /// itself is no proof (R-MET-07).
    pub fn principal(&self) -> Option<&str> {
        self.verified().map(Principal::as_str)
    }

    /// The same, with what was granted to it.
    pub fn verified(&self) -> Option<&Principal> {
        self.shared.principal.get()
    }

    /// How often the driver has taken what was submitted.
    #[cfg(feature = "server")]
    pub(crate) fn taken(&self) -> u64 {
        self.shared.queue.taken()
    }

    /// Whether both lead to one connection.
    #[cfg(feature = "server")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The revision in force; `None` before the connection is open. On a server, the one that
    /// the handshake settled, if there was one: stateless requests carry their own.
    pub fn revision(&self) -> Option<Revision> {
        self.shared.revision()
    }

    /// What the peer said of itself, once the connection is open.
    pub fn peer(&self) -> Option<&Peer> {
        self.shared.peer.get()
    }

    /// Whether the connection has ended; every pending request knows by then.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.get().is_some()
    }

    /// Why the connection ended.
    pub fn close_reason(&self) -> Option<&ConnectionError> {
        self.shared.closed.get()
    }

    /// Answers nobody waited for, and frames that were no messages, since the start.
    pub fn stray_count(&self) -> u64 {
        self.shared.strays.load(Ordering::Relaxed)
    }

    /// The least severe log messages that a peer of the handshake era wants (R-LOG-02).
    pub fn log_level(&self) -> LogLevel {
        self.shared.log_level()
    }

    /// Sets the same, when the peer asks for it.
    pub fn set_log_level(&self, level: LogLevel) {
        self.shared.set_log_level(level);
    }

    /// Requests of this side that wait for an answer.
    pub fn pending_count(&self) -> usize {
        self.shared.outgoing.pending_count()
    }

    /// Ends when the connection is open, with its revision, or has failed.
    pub fn opened(&self) -> Opened<'_> {
        Opened::new(self)
    }

    /// Sends a request. `params` is a JSON object; the `_meta` that the revision wants is
    /// added. The result is found in the message that the future gives.
    ///
    /// # Errors
    /// At once when the connection is not open, has ended or is about to, when too many requests
    /// wait for an answer or too many bytes for the peer to read them.
    pub fn request(
        &self,
        method: &str,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<Response, RequestError> {
        let (key, response) = self.register()?;
        let mut frame = scratch::take();
        let envelope = self.shared.envelope();
        params::request(&mut frame, envelope, key, method, params, &options)?;
        let limits = &self.shared.config.limits;
        let timeout = options.timeout.unwrap_or(limits.request_timeout);
        let longest = limits.max_request_timeout.max(timeout);
        let request = Request {
            key,
            on: options.within.map_or(StreamId::FIRST, |call| call.stream),
            timeout,
            max_timeout: options.max_timeout.unwrap_or(longest),
            progress: options.progress,
            partial: None,
        };
        self.submit_frame(frame, |frame| Submission::Request { frame, request });
        Ok(response)
    }

    /// Sends a request of the action dialect, on a connection that was
    /// [opened](super::Opening::Actions) for it. `params` is a JSON object. The answer is the
    /// message that the future gives, whether it tells of success or not: see
    /// [`decode`](crate::action::decode).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn act(
        &self,
        action: &str,
        params: &str,
        options: ActOptions,
    ) -> Result<Response, RequestError> {
        if self.shared.config.opening != Opening::Actions {
            return Err(RequestError::Misuse(
                "the connection does not speak actions",
            ));
        }
        let (key, response) = self.register()?;
        let mut frame = scratch::take();
        super::actions::request(&mut frame, key, (action, params), &options)?;
        let limits = &self.shared.config.limits;
        let timeout = options.timeout.unwrap_or(limits.request_timeout);
        let request = Request {
            key,
            on: StreamId::FIRST,
            timeout,
            max_timeout: limits.max_request_timeout.max(timeout),
            progress: None,
            partial: options.partial,
        };
        self.submit_frame(frame, |frame| Submission::Request { frame, request });
        Ok(response)
    }

    /// A place for one more request of this side.
    fn register(&self) -> Result<(RequestKey, Response), RequestError> {
        if let Some(reason) = self.close_reason().or_else(|| self.shared.drain_reason()) {
            return Err(RequestError::Closed(reason.clone()));
        }
        if self.shared.is_backed_up() {
            return Err(RequestError::Overloaded);
        }
        if self.revision().is_none() {
            return Err(RequestError::Misuse("the connection is not open yet"));
        }
        let registered = self.shared.outgoing.register();
        let key = registered.map_err(|why| self.refused(why))?;
        Ok((key, Response::new(self.shared.clone(), key)))
    }

    fn refused(&self, why: Unregistered) -> RequestError {
        match (why, self.close_reason()) {
            (Unregistered::Closed, Some(reason)) => RequestError::Closed(reason.clone()),
            (Unregistered::Closed, None) => RequestError::Closed(ConnectionError::ClosedLocally),
            (Unregistered::Full, _) => RequestError::Overloaded,
        }
    }

    /// Sends a notification. When the peer has stopped reading and the output is at its cap, the
    /// connection ends instead.
    ///
    /// # Errors
    /// When `params` is no JSON object; nothing is sent.
    pub fn notify(&self, method: &str, params: Option<&str>) -> Result<(), RequestError> {
        let mut frame = scratch::take();
        params::notification(&mut frame, method, params)?;
        let kind = FrameKind::Notification;
        self.submit_frame(frame, |frame| Submission::Frame { frame, kind });
        Ok(())
    }

    /// A batch of answers and notifications for calls, to be submitted at once.
    pub fn replies(&self) -> Replies {
        Replies::new(self.clone())
    }

    /// Sends away who reads the stream of a call.
    #[cfg(feature = "server")]
    pub(crate) fn release(&self, key: CallKey, retry: Duration) {
        self.submit(Submission::Release { key, retry });
    }

    /// Closes the connection once everything queued is written.
    pub fn close(&self) {
        self.submit(Submission::Close);
    }

    /// Finishes what is in flight, for at most `grace`, and then closes. See
    /// [`Connection::drain`](super::Connection::drain).
    pub fn drain(&self, grace: Duration) {
        self.shared.drain(&ConnectionError::ShuttingDown);
        self.submit(Submission::Drain(grace));
    }

    /// How many handles of the connection there are, this one counted.
    #[cfg(feature = "http")]
    pub(super) fn count(&self) -> usize {
        let count = Arc::strong_count(&self.shared);
        // What was done by those that are gone is seen from here on.
        std::sync::atomic::fence(Ordering::Acquire);
        count
    }

    /// Whether no further request is taken.
    pub fn is_draining(&self) -> bool {
        self.shared.drain_reason().is_some()
    }

    /// Hands over one frame, a scratch buffer.
    fn submit_frame(&self, frame: Vec<u8>, submission: impl FnOnce(Place) -> Submission) {
        if is_long(frame.len()) {
            return self.submit(submission(Place::Own(frame.into())));
        }
        let submission = submission(Place::Next(frame.len()));
        self.shared.submit_frame(&frame, submission);
        scratch::put(frame);
    }

    pub(super) fn submit(&self, submission: Submission) {
        self.shared.submit(submission);
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("revision", &self.revision())
            .field("pending", &self.pending_count())
            .field("closed", &self.close_reason())
            .finish()
    }
}
