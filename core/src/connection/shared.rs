//! What the driver of a connection and the threads with a handle have in common.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use smallvec::SmallVec;

use super::config::Config;
use super::handle::{Peer, ProgressFn};
use super::host::CallKey;
use super::sleep::Alarm;
use crate::correlate::{Outgoing, RequestKey};
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

pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub outgoing: Outgoing<Result<Message, RequestError>>,
    submissions: Sender<Submission>,
    /// Whether the driver knows that submissions wait.
    signalled: AtomicBool,
    /// Bytes submitted that the driver has not taken over.
    submitted_bytes: AtomicUsize,
    /// Bytes that the driver has taken over and the peer has not: as of the driver's last turn.
    output_bytes: AtomicUsize,
    wake: OnceLock<Arc<dyn Wake>>,
    /// Index of the revision in force; `u8::MAX` before there is one.
    revision: AtomicU8,
    pub peer: OnceLock<Peer>,
    pub closed: OnceLock<ConnectionError>,
    /// Why no further request is taken, while what is in flight is finished.
    draining: OnceLock<ConnectionError>,
    pub openers: Mutex<Vec<Waker>>,
    pub strays: AtomicU64,
    log_level: AtomicU8,
}

pub(crate) enum Submission {
    /// Encoded frames, one after the other, without any framing between them.
    Frames {
        bytes: Vec<u8>,
        items: SmallVec<[Item; 2]>,
    },
    /// One encoded request of this side.
    Request { bytes: Vec<u8>, request: Request },
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
}

pub(crate) struct Request {
    pub key: RequestKey,
    pub timeout: Duration,
    pub max_timeout: Duration,
    pub progress: Option<ProgressFn>,
}

impl Submission {
    /// Bytes it holds for the peer.
    pub fn len(&self) -> usize {
        match self {
            Self::Frames { bytes, .. } | Self::Request { bytes, .. } => bytes.len(),
            _ => 0,
        }
    }
}

impl Shared {
    pub fn new(config: Arc<Config>) -> (Self, Receiver<Submission>) {
        let (submissions, receiver) = channel();
        let shared = Self {
            outgoing: Outgoing::new(config.limits.max_outgoing),
            config,
            submissions,
            signalled: AtomicBool::new(false),
            submitted_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            wake: OnceLock::new(),
            revision: AtomicU8::new(u8::MAX),
            peer: OnceLock::new(),
            closed: OnceLock::new(),
            draining: OnceLock::new(),
            openers: Mutex::new(Vec::new()),
            strays: AtomicU64::new(0),
            log_level: AtomicU8::new(LogLevel::Info as u8),
        };
        (shared, receiver)
    }

    pub fn revision(&self) -> Option<Revision> {
        Revision::from_index(self.revision.load(Ordering::Acquire))
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
        self.submit_with(submission, |wake| wake.wake());
    }

    pub fn submit_last(&self, submission: Submission) {
        self.submit_with(submission, |wake| wake.wake_soon());
    }

    #[inline]
    fn submit_with(&self, submission: Submission, wake_with: fn(&dyn Wake)) {
        if self.closed.get().is_some() {
            return;
        }
        self.submitted_bytes
            .fetch_add(submission.len(), Ordering::Relaxed);
        // The receiver is gone only after the connection is, and then nobody waits.
        let _ = self.submissions.send(submission);
        if !self.signalled.swap(true, Ordering::AcqRel)
            && let Some(wake) = self.wake.get()
        {
            wake_with(wake.as_ref());
        }
    }

    /// The driver took over so many bytes of submissions.
    pub fn took(&self, bytes: usize) {
        if bytes > 0 {
            self.submitted_bytes.fetch_sub(bytes, Ordering::Relaxed);
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
        self.output_bytes() + self.submitted_bytes.load(Ordering::Relaxed)
    }

    /// Whether more is on the way to the peer than may be: what can be left out is.
    pub fn is_backed_up(&self) -> bool {
        self.queued_bytes() > self.config.limits.output_cap_bytes
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

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("pending", &self.outgoing.pending_count())
            .finish_non_exhaustive()
    }
}
