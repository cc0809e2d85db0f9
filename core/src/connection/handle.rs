//! What other threads hold of a connection: the slab of pending requests and the submission
//! queue. Cloning is one reference count; nothing here waits for the driver.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use smallvec::SmallVec;

use super::config::Config;
use super::host::CallKey;
use super::params;
use super::replies::Replies;
use super::sleep::Alarm;
use crate::correlate::{Outgoing, RequestKey, Unregistered};
use crate::error::{ConnectionError, RequestError};
use crate::mcp::{LogLevel, Revision};
use crate::message::{Message, encode};

/// Tells the parked driver of a connection that submissions wait.
pub trait Wake: Send + Sync {
    /// Called from any thread; must not block.
    fn wake(&self);

    /// The same, as the last act of a handler: it may wait for the handlers queued right behind
    /// this one, so that their answers leave in one piece.
    fn wake_soon(&self) {
        self.wake();
    }
}

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

/// Called on the driver's thread for each progress notification, before the answer is handed
/// over and never after. Must not block.
pub type ProgressFn = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// How one request is to be treated.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long to wait without news; [`Limits::request_timeout`](crate::limits::Limits) when
    /// `None`. Progress starts it again.
    pub timeout: Option<Duration>,
    /// How long to wait in all, whatever the progress.
    pub max_timeout: Option<Duration>,
    /// Asks the peer for progress, and receives it.
    pub progress: Option<ProgressFn>,
    /// More `_meta` members: a JSON object.
    pub meta: Option<Box<str>>,
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
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub outgoing: Outgoing<Result<Message, RequestError>>,
    submissions: Sender<Submission>,
    /// Whether the driver knows that submissions wait.
    signalled: AtomicBool,
    wake: OnceLock<Arc<dyn Wake>>,
    /// Index of the revision in force; `u8::MAX` before there is one.
    revision: AtomicU8,
    pub peer: OnceLock<Peer>,
    pub closed: OnceLock<ConnectionError>,
    /// Why no further request is taken, while what is in flight is finished.
    draining: OnceLock<ConnectionError>,
    openers: Mutex<Vec<Waker>>,
    pub strays: AtomicU64,
    log_level: AtomicU8,
}

pub(crate) enum Submission {
    /// Encoded frames, one after the other, without any framing between them.
    Frames {
        bytes: Vec<u8>,
        items: SmallVec<[Item; 2]>,
    },
    /// The caller of a request gave up.
    Cancelled {
        key: RequestKey,
        reason: Option<Box<str>>,
    },
    /// Rouse a handler that sleeps.
    Sleep { alarm: Alarm, duration: Duration },
    /// Close once everything queued is written.
    Close,
    /// Finish what is in flight, for so long, then close.
    Drain(Duration),
}

pub(crate) struct Item {
    pub len: usize,
    pub kind: ItemKind,
}

pub(crate) enum ItemKind {
    Answer(CallKey),
    Progress(CallKey),
    /// A log message, on behalf of a call or of none; shed under back-pressure.
    Log(Option<CallKey>),
    Notification,
    Request(Box<Request>),
}

pub(crate) struct Request {
    pub key: RequestKey,
    pub timeout: Duration,
    pub max_timeout: Duration,
    pub progress: Option<ProgressFn>,
}

impl Handle {
    pub(crate) fn new(config: Arc<Config>) -> (Self, Receiver<Submission>) {
        let (submissions, receiver) = channel();
        let shared = Shared {
            outgoing: Outgoing::new(config.limits.max_outgoing),
            config,
            submissions,
            signalled: AtomicBool::new(false),
            wake: OnceLock::new(),
            revision: AtomicU8::new(u8::MAX),
            peer: OnceLock::new(),
            closed: OnceLock::new(),
            draining: OnceLock::new(),
            openers: Mutex::new(Vec::new()),
            strays: AtomicU64::new(0),
            log_level: AtomicU8::new(LogLevel::Info as u8),
        };
        (
            Self {
                shared: Arc::new(shared),
            },
            receiver,
        )
    }

    /// What this side brought to the connection.
    pub fn config(&self) -> &Arc<Config> {
        &self.shared.config
    }

    /// The revision in force; `None` before the connection is open. On a server, the one that
    /// the handshake settled, if there was one: stateless requests carry their own.
    pub fn revision(&self) -> Option<Revision> {
        Revision::from_index(self.shared.revision.load(Ordering::Acquire))
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
        LogLevel::from_index(self.shared.log_level.load(Ordering::Relaxed))
    }

    /// Sets the same, when the peer asks for it.
    pub fn set_log_level(&self, level: LogLevel) {
        self.shared.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Requests of this side that wait for an answer.
    pub fn pending_count(&self) -> usize {
        self.shared.outgoing.pending_count()
    }

    /// Ends when the connection is open, with its revision, or has failed.
    pub fn opened(&self) -> Opened<'_> {
        Opened { handle: self }
    }

    /// Sends a request. `params` is a JSON object; the `_meta` that the revision wants is
    /// added. The result is found in the message that the future gives.
    ///
    /// # Errors
    /// At once when the connection is not open, has ended, or too many requests wait.
    pub fn request(
        &self,
        method: &str,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<Response, RequestError> {
        if let Some(reason) = self.close_reason().or_else(|| self.shared.draining.get()) {
            return Err(RequestError::Closed(reason.clone()));
        }
        let revision = self
            .revision()
            .ok_or(RequestError::Misuse("the connection is not open yet"))?;
        let key = self
            .shared
            .outgoing
            .register()
            .map_err(|why| self.refused(why))?;
        let response = Response {
            shared: Some(self.shared.clone()),
            key,
        };
        let mut bytes = Vec::with_capacity(256 + params.map_or(0, str::len));
        params::request(
            &mut bytes,
            &self.shared.config,
            revision,
            key,
            method,
            params,
            &options,
        )?;
        let limits = &self.shared.config.limits;
        let request = Request {
            key,
            timeout: options.timeout.unwrap_or(limits.request_timeout),
            max_timeout: options.max_timeout.unwrap_or(limits.max_request_timeout),
            progress: options.progress,
        };
        self.submit_frame(bytes, ItemKind::Request(Box::new(request)));
        Ok(response)
    }

    fn refused(&self, why: Unregistered) -> RequestError {
        match (why, self.close_reason()) {
            (Unregistered::Closed, Some(reason)) => RequestError::Closed(reason.clone()),
            (Unregistered::Closed, None) => RequestError::Closed(ConnectionError::ClosedLocally),
            (Unregistered::Full, _) => RequestError::Overloaded,
        }
    }

    /// Sends a notification. `params` is a JSON object.
    pub fn notify(&self, method: &str, params: Option<&str>) {
        let mut bytes = Vec::with_capacity(128 + params.map_or(0, str::len));
        encode::notification(&mut bytes, method, params);
        self.submit_frame(bytes, ItemKind::Notification);
    }

    /// A batch of answers and notifications for calls, to be submitted at once.
    pub fn replies(&self) -> Replies {
        Replies::new(self.clone())
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

    /// Whether no further request is taken.
    pub fn is_draining(&self) -> bool {
        self.shared.draining.get().is_some()
    }

    pub(crate) fn submit_frame(&self, bytes: Vec<u8>, kind: ItemKind) {
        let len = bytes.len();
        self.submit(Submission::Frames {
            bytes,
            items: SmallVec::from_iter([Item { len, kind }]),
        });
    }

    pub(crate) fn submit(&self, submission: Submission) {
        self.shared.submit(submission);
    }

    pub(crate) fn submit_last(&self, submission: Submission) {
        self.shared.submit_with(submission, |wake| wake.wake_soon());
    }
}

impl Shared {
    fn submit(&self, submission: Submission) {
        self.submit_with(submission, |wake| wake.wake());
    }

    fn submit_with(&self, submission: Submission, wake_with: fn(&dyn Wake)) {
        // The receiver is gone only after the connection is, and then nobody waits.
        let _ = self.submissions.send(submission);
        if !self.signalled.swap(true, Ordering::AcqRel)
            && let Some(wake) = self.wake.get()
        {
            wake_with(wake.as_ref());
        }
    }

    /// The driver is about to look at the queue; what comes after this wakes it again.
    pub(crate) fn unsignal(&self) {
        self.signalled.swap(false, Ordering::AcqRel);
    }

    pub(crate) fn set_wake(&self, wake: Arc<dyn Wake>) {
        let _ = self.wake.set(wake);
        if self.signalled.load(Ordering::Acquire)
            && let Some(wake) = self.wake.get()
        {
            wake.wake();
        }
    }

    pub(crate) fn open(&self, revision: Revision, peer: Peer) {
        let _ = self.peer.set(peer);
        self.revision.store(revision as u8, Ordering::Release);
        self.wake_openers();
    }

    /// Takes no further request. The first reason stays.
    pub(crate) fn drain(&self, reason: &ConnectionError) {
        let _ = self.draining.set(reason.clone());
    }

    /// Ends the connection for everyone who holds a handle. The first reason stays.
    pub(crate) fn close(&self, reason: ConnectionError) {
        let reason = self.closed.get_or_init(|| reason).clone();
        self.outgoing
            .close(|| Err(RequestError::Closed(reason.clone())));
        self.wake_openers();
    }

    fn wake_openers(&self) {
        let openers =
            std::mem::take(&mut *self.openers.lock().unwrap_or_else(PoisonError::into_inner));
        openers.into_iter().for_each(Waker::wake);
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

/// The end of opening. See [`Handle::opened`].
///
/// # Cancel safety
/// May be dropped at any time.
#[derive(Debug)]
pub struct Opened<'a> {
    handle: &'a Handle,
}

impl Future for Opened<'_> {
    type Output = Result<Revision, RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = &self.handle.shared;
        let mut openers = shared
            .openers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = self.handle.close_reason() {
            return Poll::Ready(Err(RequestError::Closed(reason.clone())));
        }
        if let Some(revision) = self.handle.revision() {
            return Poll::Ready(Ok(revision));
        }
        if !openers.iter().any(|waker| waker.will_wake(cx.waker())) {
            openers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// The answer to come to one request. See [`Handle::request`].
///
/// # Cancel safety
/// Dropping it cancels the request: the peer is told, a late answer is discarded.
#[derive(Debug)]
#[must_use = "dropping the response cancels the request"]
pub struct Response {
    shared: Option<Arc<Shared>>,
    key: RequestKey,
}

impl Response {
    /// The request's id on the wire, for logs.
    pub fn key(&self) -> RequestKey {
        self.key
    }

    /// Gives up and tells the peer why. Does nothing when the answer is there already.
    pub fn cancel(mut self, reason: Option<&str>) {
        self.give_up(reason);
    }

    fn give_up(&mut self, reason: Option<&str>) {
        let Some(shared) = self.shared.take() else {
            return;
        };
        if shared.outgoing.cancel(self.key) {
            shared.submit(Submission::Cancelled {
                key: self.key,
                reason: reason.map(Box::from),
            });
        }
    }
}

impl Future for Response {
    type Output = Result<Message, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(shared) = &self.shared else {
            return Poll::Ready(Err(RequestError::Misuse("polled after it had ended")));
        };
        let outcome = std::task::ready!(shared.outgoing.poll(self.key, cx));
        self.shared = None;
        Poll::Ready(outcome.unwrap_or(Err(RequestError::Misuse("polled after it had ended"))))
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.give_up(None);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("pending", &self.outgoing.pending_count())
            .finish_non_exhaustive()
    }
}
