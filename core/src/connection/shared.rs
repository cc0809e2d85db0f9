//! The state shared by the driver of a connection and its handles.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use super::callers::Callers;
use super::channel::Channel;
use super::config::Config;
use super::observed::Observed;
use super::observer::{ObservedRequest, RequestText};
use super::options::PeerInfo;
use super::params;
use super::principal::Principal;
use super::queue::{Queue, Submission};
use super::source::RequestSource;
use crate::correlate::PendingRequests;
use crate::error::{ConnectionError, RequestError};
use crate::mcp::{LogLevel, Revision};
use crate::message::Message;

/// Wakes the parked driver of a connection.
pub trait Wake: Send + Sync {
    /// Wakes the driver because submissions wait. Called from any thread; must not block.
    fn wake(&self);

    /// Like [`wake`](Self::wake), called as the last act of a handler. An implementation may delay the
    /// wake until the handlers queued right behind this one have run, so that their answers are sent
    /// together.
    fn wake_soon(&self) {
        self.wake();
    }
}

/// The log level for a peer of the handshake era that has not set one.
pub(super) const FIRST_LOG_LEVEL: LogLevel = LogLevel::Info;

pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub outgoing: PendingRequests<Result<Message, RequestError>>,
    pub queue: Queue,
    /// Bytes of output not written yet, as of the driver's last turn.
    output_bytes: AtomicUsize,
    wake: OnceLock<Arc<dyn Wake>>,
    /// Index of the revision in force; `u8::MAX` before the connection is open.
    revision: AtomicU8,
    /// The `_meta` members of every request in that revision. Set before `revision`.
    envelope: OnceLock<Box<[u8]>>,
    pub peer: OnceLock<PeerInfo>,
    pub closed: OnceLock<ConnectionError>,
    /// Why the connection is shutting down; set while no new request is accepted.
    draining: OnceLock<ConnectionError>,
    openers: Mutex<Vec<Waker>>,
    /// Whether this side reads messages that belong to no request.
    listens: AtomicBool,
    pub strays: AtomicU64,
    log_level: AtomicU8,
    /// The peer as the transport has verified it.
    pub principal: OnceLock<Principal>,
    /// How messages travel, for observers.
    pub channel: OnceLock<Arc<Channel>>,
    /// The connection whose timers outlive this one.
    pub timers: OnceLock<Arc<Self>>,
    /// The name by which all processes know the session of this connection.
    pub session: OnceLock<Box<str>>,
    /// Who sends the requests, on a connection within a process.
    pub callers: OnceLock<Arc<dyn Callers>>,
    /// The source that limits count against, as far as the transport knows it.
    source: Mutex<RequestSource>,
}

impl Shared {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            outgoing: PendingRequests::new(config.limits.max_outgoing),
            config,
            queue: Queue::default(),
            output_bytes: AtomicUsize::new(0),
            wake: OnceLock::new(),
            revision: AtomicU8::new(u8::MAX),
            envelope: OnceLock::new(),
            peer: OnceLock::new(),
            closed: OnceLock::new(),
            draining: OnceLock::new(),
            openers: Mutex::new(Vec::new()),
            listens: AtomicBool::new(true),
            strays: AtomicU64::new(0),
            log_level: AtomicU8::new(FIRST_LOG_LEVEL as u8),
            principal: OnceLock::new(),
            channel: OnceLock::new(),
            timers: OnceLock::new(),
            session: OnceLock::new(),
            callers: OnceLock::new(),
            source: Mutex::default(),
        }
    }

    pub fn source(&self) -> RequestSource {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        source.clone()
    }

    pub fn set_source(&self, source: &RequestSource) {
        let mut own = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        own.clone_from(source);
    }

    pub fn revision(&self) -> Option<Revision> {
        Revision::from_index(self.revision.load(Ordering::Acquire))
    }

    #[cfg(feature = "http-client")]
    pub fn listens(&self) -> bool {
        self.listens.load(Ordering::Acquire)
    }

    pub fn set_listens(&self, listens: bool) {
        if self.listens.swap(listens, Ordering::AcqRel) != listens
            && let Some(wake) = self.wake.get()
        {
            wake.wake();
        }
    }

    /// The `_meta` members of every request of this side in the revision in force.
    pub fn envelope(&self) -> Option<&[u8]> {
        self.envelope.get().map(|envelope| &**envelope)
    }

    /// Tells the observer of a request that this side is about to send; `channel` is that of its stream, if it has one of its own.
    pub fn observe(
        &self,
        text: RequestText<'_>,
        revision: Revision,
        channel: Option<&Arc<Channel>>,
    ) -> Option<Observed> {
        let observer = self.config.observer.as_deref()?;
        let observer = observer.request(&ObservedRequest {
            text,
            side: self.config.side,
            revision,
            arrived: None,
            channel: channel.or_else(|| self.channel.get()),
        })?;
        Some(Observed::new(observer, None, 0))
    }

    pub fn log_level(&self) -> LogLevel {
        LogLevel::from_index(self.log_level.load(Ordering::Relaxed))
    }

    pub fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    pub fn drain_reason(&self) -> Option<&ConnectionError> {
        self.draining.get()
    }

    pub fn submit(&self, submission: Submission) {
        self.submit_frames(&[], |all| all.push(submission), |wake| wake.wake());
    }

    /// Submits the tasks that `add` adds, whose frames lie one after another in `frames`. Wakes the driver
    /// if the queue was empty.
    #[inline]
    pub fn submit_frames(
        &self,
        frames: &[u8],
        add: impl FnOnce(&mut Vec<Submission>),
        wake_with: fn(&dyn Wake),
    ) {
        if self.closed.get().is_none()
            && self.queue.push(frames, add)
            && let Some(wake) = self.wake.get()
        {
            wake_with(wake.as_ref());
        }
    }

    /// Sets the number of bytes of output that are not written yet.
    pub fn set_output_bytes(&self, bytes: usize) {
        self.output_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of output not written yet, as last set.
    pub fn output_bytes(&self) -> usize {
        self.output_bytes.load(Ordering::Relaxed)
    }

    /// Bytes on the way to the peer: submitted, or not written yet.
    pub fn queued_bytes(&self) -> usize {
        self.output_bytes() + self.queue.bytes()
    }

    /// Whether so much is on the way to the peer that new requests fail and progress and log messages
    /// are dropped.
    pub fn is_backed_up(&self) -> bool {
        self.queued_bytes() > self.config.limits.output_cap_bytes
    }

    pub(crate) fn set_wake(&self, wake: Arc<dyn Wake>) {
        let _ = self.wake.set(wake);
        if !self.queue.is_empty()
            && let Some(wake) = self.wake.get()
        {
            wake.wake();
        }
    }

    pub(crate) fn open(&self, revision: Revision, peer: PeerInfo) {
        let _ = self.peer.set(peer);
        if let Some(envelope) = params::envelope(&self.config, revision) {
            let _ = self.envelope.set(envelope);
        }
        self.revision.store(revision as u8, Ordering::Release);
        self.wake_openers();
    }

    /// Whether the connection is open, or why it has ended; until then, the task of `cx` is woken when
    /// that changes.
    pub(crate) fn poll_open(&self, cx: &Context<'_>) -> Poll<Result<Revision, RequestError>> {
        let mut openers = self.openers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = self.closed.get() {
            return Poll::Ready(Err(RequestError::Closed(reason.clone())));
        }
        if let Some(revision) = self.revision() {
            return Poll::Ready(Ok(revision));
        }
        if !openers.iter().any(|waker| waker.will_wake(cx.waker())) {
            openers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Refuses requests from now on. Only the first reason counts.
    pub(crate) fn drain(&self, reason: &ConnectionError) {
        let _ = self.draining.set(reason.clone());
    }

    /// Ends the connection for every holder of a handle. Only the first reason counts.
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

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("pending", &self.outgoing.pending_count())
            .finish_non_exhaustive()
    }
}
