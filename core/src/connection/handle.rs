//! Access to a connection from other threads: the table of pending requests and the submission queue.
//! Cloning a handle increments one reference count. No method waits for the driver.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::actions::client as action_client;
use super::answer::Answer;
use super::awaited::Awaited;
use super::call::{Call, Disposition};
#[cfg(feature = "server")]
use super::callers::Callers;
use super::config::{Config, OpeningMode};
use super::keys::{CallKey, StreamId};
use super::observed::Observed;
use super::observer::RequestText;
use super::options::{ActOptions, PeerInfo, RequestOptions};
use super::params;
use super::principal::Principal;
use super::queue::{FrameKind, InterimFn, LateAnswer, Request, Submission, TimeLimits};
use super::replies::Replies;
use super::response::Response;
use super::scratch;
use super::shared::Shared;
use super::source::RequestSource;
use super::submitted_frame::{FramePlace, is_long};
use crate::correlate::{RequestKey, Unregistered};
use crate::error::{ConnectionError, RequestError};
use crate::json::string;
use crate::mcp::{LogLevel, Method, Revision, TraceContext};

/// A cloneable handle to a connection, for use from any thread.
#[derive(Clone)]
pub struct Handle {
    pub(super) shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let shared = Arc::new(Shared::new(config));
        Self { shared }
    }

    /// The configuration of this side.
    pub fn config(&self) -> &Arc<Config> {
        &self.shared.config
    }

    /// The verified peer, as text; `None` if nobody verified it. See
    /// [`Connection::set_principal`](super::Connection::set_principal). The peer's description of
    /// itself proves nothing (R-MET-07).
    pub fn principal(&self) -> Option<&str> {
        self.verified().map(Principal::as_str)
    }

    /// The source that limits count against: the principal if known, else the source that the transport
    /// set.
    pub fn source(&self) -> RequestSource {
        self.shared.source().or_principal(self.verified())
    }

    /// The verified peer with the scopes granted to it; `None` if nobody verified it.
    pub fn verified(&self) -> Option<&Principal> {
        self.shared.principal.get()
    }

    /// Who sends the requests, if this side is told.
    #[cfg(feature = "server")]
    pub(crate) fn callers(&self) -> Option<&dyn Callers> {
        self.shared.callers.get().map(|callers| &**callers)
    }

    /// Whether requests of several clients come on this connection: it is one within this process, on which a
    /// [`Front`](crate::chain::Front) passes on what comes without a session. Values that a server keeps for a connection are then to
    /// be kept for a request.
    #[cfg(all(feature = "server", feature = "client"))]
    pub fn is_of_many(&self) -> bool {
        self.callers().is_some_and(|callers| callers.are_many())
    }

    /// The connection whose timers outlive this one, if this one may end before the work that it has begun.
    #[cfg(feature = "server")]
    pub(crate) fn timers(&self) -> Option<Self> {
        let shared = self.shared.timers.get()?.clone();
        Some(Self { shared })
    }

    /// Sets that connection. Only the first call counts.
    #[cfg(feature = "http")]
    pub(crate) fn set_timers(&self, timers: &Self) {
        let _ = self.shared.timers.set(timers.shared.clone());
    }

    /// The name by which all processes know the session of this connection; `None` if this process alone knows it.
    #[cfg(feature = "server")]
    pub(crate) fn shared_session(&self) -> Option<&str> {
        self.shared.session.get().map(|name| &**name)
    }

    /// Sets that name. Only the first call counts.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub(crate) fn set_shared_session(&self, name: &str) {
        let _ = self.shared.session.set(name.into());
    }

    /// Has the ids of this side's requests begin at a random place, before the first one.
    #[cfg(all(feature = "http", feature = "sealing"))]
    pub(crate) fn number_apart(&self, chance: u32) {
        self.shared.outgoing.number_apart(chance);
    }

    /// How many times the driver has taken submissions.
    pub(crate) fn taken(&self) -> u64 {
        self.shared.queue.taken()
    }

    /// Whether both handles belong to the same connection.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// A number that no other connection has at the same time.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// The revision in force; `None` until the connection is open. On a server, the revision of the
    /// handshake, if there was one: stateless requests carry their own.
    pub fn revision(&self) -> Option<Revision> {
        self.shared.revision()
    }

    /// The peer's description of itself, once the connection is open.
    pub fn peer(&self) -> Option<&PeerInfo> {
        self.shared.peer.get()
    }

    /// Whether the connection has ended. Its pending requests fail with [`RequestError::Closed`].
    pub fn is_closed(&self) -> bool {
        self.shared.closed.get().is_some()
    }

    /// Why the connection ended; `None` while it is open.
    pub fn close_reason(&self) -> Option<&ConnectionError> {
        self.shared.closed.get()
    }

    /// Number of frames received so far that were of no use, such as late answers and invalid messages.
    pub fn stray_count(&self) -> u64 {
        self.shared.strays.load(Ordering::Relaxed)
    }

    /// The least severe level of log messages that a peer of the handshake era wants (R-LOG-02).
    pub fn log_level(&self) -> LogLevel {
        self.shared.log_level()
    }

    /// Sets the level of log messages, when the peer asks for it.
    pub fn set_log_level(&self, level: LogLevel) {
        self.shared.set_log_level(level);
    }

    /// Number of requests of this side that wait for an answer.
    pub fn pending_count(&self) -> usize {
        self.shared.outgoing.pending_count()
    }

    /// Waits until the connection is open; resolves to its revision, or to the reason why it failed.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub fn opened(&self) -> impl Future<Output = Result<Revision, RequestError>> + Unpin + Send {
        poll_fn(|cx| self.shared.poll_open(cx))
    }

    /// Sends a request. `params` is a JSON object; the `_meta` members that the revision requires are
    /// added. The returned future resolves to the answer's message, which holds the result.
    ///
    /// # Errors
    /// Returned at once, and nothing is sent:
    /// - [`RequestError::Closed`] if the connection has ended or is shutting down;
    /// - [`RequestError::Overloaded`] if too many requests wait for an answer, or too many bytes for
    ///   the peer to read them;
    /// - [`RequestError::Misuse`] if the connection is not open yet, if `params` or `meta` is not a
    ///   JSON object, or if `_meta` has a trace context or baggage that is not valid.
    pub fn request(
        &self,
        method: &str,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<Response, RequestError> {
        let (mut options, (key, response)) = (options, self.register()?);
        let observed = match self.shared.config.observer {
            None => None,
            Some(_) => self.observe_sent(key, method, params, &mut options),
        };
        let mut frame = scratch::take();
        let envelope = self.shared.envelope();
        params::request(&mut frame, envelope, key, method, params, &options)?;
        let request = Request {
            key,
            on: options.within.map_or(StreamId::FIRST, |call| call.stream),
            time: self.time_limits(options.timeout, options.max_timeout),
            interim: options.progress.map(InterimFn::Progress),
            observed,
        };
        self.submit_frame(frame, |frame| Submission::Request { frame, request });
        Ok(response)
    }

    /// Tells the observer of a request, which is to carry its trace context.
    #[cold]
    fn observe_sent(
        &self,
        key: RequestKey,
        method: &str,
        params: Option<&str>,
        options: &mut RequestOptions,
    ) -> Option<Box<Observed>> {
        let (observed, context) = self.observe(key, method, params, options.meta.as_deref());
        if let Some(context) = &context {
            options.meta = Some(params::with_context(options.meta.as_deref(), context));
        }
        observed
    }

    /// The `_meta` members that this side's requests carry in the revision in force: JSON without the braces; empty if
    /// there are none.
    #[cfg(all(feature = "server", feature = "client"))]
    pub(crate) fn envelope(&self) -> &str {
        let envelope = self.shared.envelope().unwrap_or_default();
        std::str::from_utf8(envelope).unwrap_or_default()
    }

    /// Sends a request whose params, `params`, were validated when they arrived on another connection. `write` appends the member
    /// `params`, with the comma before it, on one line; it is given the id of the request, which is also its
    /// progress token, and the trace context to put in the place of the one that the params have, if there is one. Nothing is
    /// added to the params. The observer is told of the request unless `is_told` is false, because it was before.
    ///
    /// # Errors
    /// As [`request`](Self::request), but for the params.
    #[cfg(all(feature = "server", feature = "client"))]
    pub(crate) fn forward(
        &self,
        (method, params): (&str, Option<&str>),
        (options, is_told): (RequestOptions, bool),
        write: impl FnOnce(&mut Vec<u8>, RequestKey, Option<&TraceContext>),
    ) -> Result<Response, RequestError> {
        let (key, response) = self.register()?;
        let (observed, context) = match is_told {
            true => self.observe(key, method, params, None),
            false => (None, None),
        };
        let mut frame = scratch::take();
        params::forwarded(&mut frame, key, method, |out, key| {
            write(out, key, context.as_ref());
        });
        let request = Request {
            key,
            on: options.within.map_or(StreamId::FIRST, |call| call.stream),
            time: self.time_limits(options.timeout, options.max_timeout),
            interim: None,
            observed,
        };
        self.submit_frame(frame, |frame| Submission::Request { frame, request });
        Ok(response)
    }

    /// Sends a request of the action dialect, on a connection that was
    /// [opened](super::OpeningMode::Actions) for it. `params` is a JSON object. The returned future
    /// resolves to the answer's message, whether the action succeeded or failed;
    /// [`decode`](crate::action::decode) reads it.
    ///
    /// # Errors
    /// Like [`request`](Self::request); also [`RequestError::Misuse`] if the connection was not opened
    /// for actions.
    pub fn act(
        &self,
        action: &str,
        params: &str,
        options: ActOptions,
    ) -> Result<Response, RequestError> {
        if self.shared.config.opening != OpeningMode::Actions {
            return Err(RequestError::Misuse(
                "the connection does not speak actions",
            ));
        }
        let (key, response) = self.register()?;
        let named = self.shared.config.observer.as_ref().map(|_| {
            let mut named = b"{\"name\":".to_vec();
            string::append(&mut named, action);
            named.push(b'}');
            String::from_utf8(named).unwrap_or_default()
        });
        let (observed, _) = self.observe(key, Method::CallTool.name(), named.as_deref(), None);
        let mut frame = scratch::take();
        action_client::request(&mut frame, key, (action, params), &options)?;
        let request = Request {
            key,
            on: StreamId::FIRST,
            time: self.time_limits(options.timeout, None),
            interim: options.partial.map(InterimFn::Part),
            observed,
        };
        self.submit_frame(frame, |frame| Submission::Request { frame, request });
        Ok(response)
    }

    fn time_limits(&self, timeout: Option<Duration>, max_timeout: Option<Duration>) -> TimeLimits {
        let limits = &self.shared.config.limits;
        let timeout = timeout.unwrap_or(limits.request_timeout);
        TimeLimits {
            timeout,
            max_timeout: max_timeout.unwrap_or(limits.max_request_timeout.max(timeout)),
        }
    }

    /// Tells the observer of a request that is about to be sent; returns what observes the rest of it, and the trace context that
    /// the request carries.
    fn observe(
        &self,
        key: RequestKey,
        method: &str,
        params: Option<&str>,
        meta: Option<&str>,
    ) -> (Option<Box<Observed>>, Option<TraceContext>) {
        if self.shared.config.observer.is_none() {
            return (None, None);
        }
        let id = key.get();
        let text = RequestText::Sent {
            id,
            method,
            params,
            meta,
        };
        let revision = self.revision().unwrap_or(Revision::NEWEST);
        let observed = self.shared.observe(text, revision, None);
        let context = observed.as_ref().and_then(Observed::trace_context);
        (observed.map(Box::new), context)
    }

    /// Registers one more request of this side, if the connection and its limits allow it.
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

    /// Sends a notification. If the peer has stopped reading and the output is at its cap, the
    /// connection ends instead.
    ///
    /// # Errors
    /// If `params` is not a JSON object; nothing is sent then.
    pub fn notify(&self, method: &str, params: Option<&str>) -> Result<(), RequestError> {
        let mut frame = scratch::take();
        params::notification(&mut frame, method, params)?;
        let kind = FrameKind::Notification;
        self.submit_frame(frame, |frame| Submission::Frame { frame, kind });
        Ok(())
    }

    /// Starts a batch of answers and notifications for calls, which are submitted together.
    pub fn replies(&self) -> Replies {
        Replies::new(self.shared.clone())
    }

    /// Ends the stream of a call early; its client may reconnect for the rest after `retry`.
    pub(crate) fn release(&self, key: CallKey, retry: Duration) {
        self.submit(Submission::Release { key, retry });
    }

    /// Sets a time limit for a request of the peer. If the request is not answered within `limit` from
    /// now, its handler is cancelled and `answer` answers it on the driver's thread.
    pub fn limit(
        &self,
        key: CallKey,
        revision: Revision,
        limit: Duration,
        answer: impl FnOnce(Answer<'_>) -> Disposition + Send + Sync + 'static,
    ) {
        let answer = LateAnswer {
            revision,
            answer: Box::new(answer),
        };
        self.submit(Submission::Limit { key, limit, answer });
    }

    /// Passes a deferred request to the host again, on the driver's thread, with what it has waited for: see
    /// [`Host::awaited`](super::Host::awaited). Does nothing if the request was cancelled meanwhile.
    pub fn decide(&self, call: Call, awaited: Awaited) {
        self.submit(Submission::Awaited(Box::new(call), Box::new(awaited)));
    }

    /// Passes a call that is in flight nowhere to the host, on the driver's thread: its answer goes to a task.
    #[cfg(feature = "server")]
    pub(crate) fn run_detached(&self, call: Call) {
        self.submit(Submission::Detached(Box::new(call)));
    }

    /// Sets whether this side reads messages that belong to no request, which over HTTP takes a stream (R-HTP-11). At first it does.
    pub(crate) fn set_listens(&self, listens: bool) {
        self.shared.set_listens(listens);
    }

    /// Whether this side reads messages that belong to no request.
    #[cfg(feature = "http-client")]
    pub(crate) fn listens(&self) -> bool {
        self.shared.listens()
    }

    /// Closes the connection once the driver has processed what was submitted before. Queued output may
    /// still be written.
    pub fn close(&self) {
        self.submit(Submission::Close);
    }

    /// Finishes requests in flight, for at most `grace`, then closes the connection. See
    /// [`Connection::drain`](super::Connection::drain).
    pub fn drain(&self, grace: Duration) {
        self.shared.drain(&ConnectionError::ShuttingDown);
        self.submit(Submission::Drain(grace));
    }

    /// Number of handles of this connection, this one included.
    pub(super) fn count(&self) -> usize {
        let count = Arc::strong_count(&self.shared);
        // Makes visible what was done through handles that have been dropped since.
        std::sync::atomic::fence(Ordering::Acquire);
        count
    }

    /// Whether the connection is shutting down and refuses new requests.
    pub fn is_draining(&self) -> bool {
        self.shared.drain_reason().is_some()
    }

    /// Submits one frame, encoded in a scratch buffer, which is given back if the frame is short.
    #[inline(always)]
    fn submit_frame(&self, frame: Vec<u8>, submission: impl FnOnce(FramePlace) -> Submission) {
        if is_long(frame.len()) {
            return self.submit(submission(FramePlace::Own(frame.into())));
        }
        let add = |all: &mut Vec<_>| all.push(submission(FramePlace::Next(frame.len())));
        self.shared.submit_frames(&frame, add, |wake| wake.wake());
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
