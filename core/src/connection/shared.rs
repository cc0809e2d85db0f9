//! What the driver of a connection and the threads with a handle have in common.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;

use super::config::Config;
use super::handle::Peer;
use super::params;
use super::principal::Principal;
use super::queue::{Queue, Submission};
use crate::correlate::Outgoing;
use crate::error::{ConnectionError, RequestError};
use crate::mcp::{LogLevel, Revision};
use crate::message::Message;

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

/// What a peer of the handshake era is told that has not said what it wants.
pub(super) const FIRST_LOG_LEVEL: LogLevel = LogLevel::Info;

pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub outgoing: Outgoing<Result<Message, RequestError>>,
    pub queue: Queue,
    /// Bytes that the driver has taken over and the peer has not: as of the driver's last turn.
    output_bytes: AtomicUsize,
    wake: OnceLock<Arc<dyn Wake>>,
    /// Index of the revision in force; `u8::MAX` before there is one.
    revision: AtomicU8,
    /// What every request carries in that revision. Set before it.
    envelope: OnceLock<Box<[u8]>>,
    pub peer: OnceLock<Peer>,
    pub closed: OnceLock<ConnectionError>,
    /// Why no further request is taken, while what is in flight is finished.
    draining: OnceLock<ConnectionError>,
    pub openers: Mutex<Vec<Waker>>,
    pub strays: AtomicU64,
    log_level: AtomicU8,
    /// Who the peer is, as its carrier has verified.
    pub principal: OnceLock<Principal>,
}

impl Shared {
    pub fn new(config: Arc<Config>) -> Self {
        Self {
            outgoing: Outgoing::new(config.limits.max_outgoing),
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
            strays: AtomicU64::new(0),
            log_level: AtomicU8::new(FIRST_LOG_LEVEL as u8),
            principal: OnceLock::new(),
        }
    }

    pub fn revision(&self) -> Option<Revision> {
        Revision::from_index(self.revision.load(Ordering::Acquire))
    }

    /// What every request of this side carries in the revision in force.
    pub fn envelope(&self) -> Option<&[u8]> {
        self.envelope.get().map(|envelope| &**envelope)
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
        self.submit_frame(&[], submission);
    }

    /// Submits one thing whose frame, if it is [`Place::Next`](super::queue::Place), is `frame`.
    #[inline]
    pub fn submit_frame(&self, frame: &[u8], submission: Submission) {
        if self.closed.get().is_none()
            && self.queue.push_one(frame, submission)
            && let Some(wake) = self.wake.get()
        {
            wake.wake();
        }
    }

    /// Submits frames that lie in `frames` one behind the other, and wakes the driver unless it
    /// knows that something waits.
    #[inline]
    pub fn submit_frames(
        &self,
        frames: &[u8],
        submissions: impl IntoIterator<Item = Submission>,
        wake_with: fn(&dyn Wake),
    ) {
        if self.closed.get().is_none()
            && self.queue.push(frames, submissions)
            && let Some(wake) = self.wake.get()
        {
            wake_with(wake.as_ref());
        }
    }

    /// Says how many bytes the peer has still to take.
    pub fn set_output_bytes(&self, bytes: usize) {
        self.output_bytes.store(bytes, Ordering::Relaxed);
    }

    /// As it was last said.
    pub fn output_bytes(&self) -> usize {
        self.output_bytes.load(Ordering::Relaxed)
    }

    /// Bytes on the way to the peer.
    pub fn queued_bytes(&self) -> usize {
        self.output_bytes() + self.queue.bytes()
    }

    /// Whether more is on the way to the peer than may be: what can be left out is.
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

    pub(crate) fn open(&self, revision: Revision, peer: Peer) {
        let _ = self.peer.set(peer);
        if let Some(envelope) = params::envelope(&self.config, revision) {
            let _ = self.envelope.set(envelope);
        }
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

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("pending", &self.outgoing.pending_count())
            .finish_non_exhaustive()
    }
}
