//! The queue of what other threads have submitted and the driver has not taken yet.
//!
//! ```text
//!   threads ── push ─▶  submissions: [ frame 90 | request 130 | sleep | frame … ]
//!                       bytes:       [ ……90…… | ……130…… ]
//!   driver  ◀─ take ──  swaps both for its own, which are empty
//! ```
//!
//! Short frames are copied into one buffer, so that submitting does not allocate in steady state; a
//! long frame travels as a block of its own. The lock is held only for that copy and, by the driver,
//! for the swap: no encoding, decoding or foreign code runs under it.

#[cfg(all(test, loom))]
mod models;

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::answer::Answer;
use super::awaited::Awaited;
use super::batches::NewBatch;
use super::call::{Call, Disposition};
use super::keys::{CallKey, StreamId};
use super::observed::Observed;
use super::observer::RequestOutcome;
use super::options::{PartialFn, ProgressFn};
use super::submitted_frame::FramePlace;
use super::timers::SleepGuard;
use crate::correlate::RequestKey;
use crate::limits::KEEP_BYTES;
use crate::mcp::Revision;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Mutex, MutexGuard};

/// A task for the driver.
#[derive(Debug)]
pub(crate) enum Submission {
    /// One encoded frame.
    Frame { frame: FramePlace, kind: FrameKind },
    /// One encoded request of this side.
    Request { frame: FramePlace, request: Request },
    /// Tell the peer that the caller of a request has cancelled it.
    Cancelled {
        key: RequestKey,
        reason: Option<Box<str>>,
    },
    /// Wake a sleeping handler after `duration`.
    Sleep {
        alarm: SleepGuard,
        duration: Duration,
    },
    /// Serve the requests that this request of the peer brought.
    Batch { key: CallKey, batch: Box<NewBatch> },
    /// Answer a request of the peer if its handler has not done so within `limit`.
    Limit {
        key: CallKey,
        limit: Duration,
        answer: LateAnswer,
    },
    /// Pass a deferred request to the host again, with what it has waited for.
    Awaited(Box<Call>, Box<Awaited>),
    /// Pass a call to the host that is in flight nowhere.
    #[cfg(feature = "server")]
    Detached(Box<Call>),
    /// End the stream of a call early; its client may reconnect for the rest after `retry`.
    Release { key: CallKey, retry: Duration },
    /// Close the connection.
    Close,
    /// Finish requests in flight, for at most this long, then close.
    Drain(Duration),
}

#[derive(Debug)]
pub(crate) enum FrameKind {
    Answer {
        key: CallKey,
        outcome: RequestOutcome,
    },
    Progress(CallKey),
    /// A notification on behalf of a call that is not answered yet.
    Event(CallKey),
    /// A log message on behalf of a call; dropped under back-pressure.
    Log(CallKey),
    Notification,
}

pub(crate) struct Request {
    pub key: RequestKey,
    /// The stream to send the request on.
    pub on: StreamId,
    pub time: TimeLimits,
    pub interim: Option<InterimFn>,
    /// The observer of the request, if it has one.
    pub observed: Option<Box<Observed>>,
}

/// How long to wait for the answer to a request.
#[derive(Clone, Copy)]
pub(crate) struct TimeLimits {
    /// Since the request was sent or last made progress.
    pub timeout: Duration,
    /// Since the request was sent.
    pub max_timeout: Duration,
}

/// Receives what arrives before the answer to a request.
pub(crate) enum InterimFn {
    Progress(ProgressFn),
    Part(PartialFn),
}

/// Answers a request of the peer in place of its handler, whose time is up.
pub(crate) struct LateAnswer {
    pub revision: Revision,
    pub answer: Box<LateFn>,
}

pub(crate) type LateFn = dyn FnOnce(Answer<'_>) -> Disposition + Send + Sync;

/// Submissions in order, and the bytes of their short frames.
#[derive(Debug, Default)]
pub(crate) struct Submitted {
    pub submissions: Vec<Submission>,
    pub bytes: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Bytes submitted that the driver has not processed.
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    batch: Submitted,
    bytes: usize,
    closed: bool,
    /// How many times the driver has taken submissions.
    taken: u64,
}

impl Queue {
    /// Bytes submitted that the driver has not processed.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Whether no submission is queued.
    pub fn is_empty(&self) -> bool {
        self.lock().batch.submissions.is_empty()
    }

    /// Appends what `add` adds; `frames` holds the bytes of the submissions whose frame is
    /// [`FramePlace::Next`]. Returns whether the queue was empty: then the driver has not been woken yet.
    #[inline]
    pub fn push(&self, frames: &[u8], add: impl FnOnce(&mut Vec<Submission>)) -> bool {
        let mut waiting = self.lock();
        if waiting.closed {
            return false;
        }
        if waiting.batch.submissions.capacity() == 0 {
            // A vector begins with room for four, which few connections need at a time, and many are idle.
            waiting.batch.submissions.reserve_exact(1);
        }
        let before = waiting.batch.submissions.len();
        waiting.batch.bytes.extend_from_slice(frames);
        add(&mut waiting.batch.submissions);
        let added = waiting.batch.submissions.iter().skip(before);
        let added: usize = added.map(Submission::len).sum();
        waiting.bytes += added;
        // Only written under the lock.
        self.bytes.store(self.bytes() + added, Relaxed);
        before == 0
    }

    /// Takes everything queued, in exchange for `batch`, which the driver has processed. Returns
    /// whether there was anything.
    pub fn take(&self, batch: &mut Submitted) -> bool {
        batch.clear();
        let mut waiting = self.lock();
        self.bytes
            .store(std::mem::take(&mut waiting.bytes), Relaxed);
        waiting.taken += 1;
        let is_some = !waiting.batch.submissions.is_empty();
        if is_some {
            std::mem::swap(&mut waiting.batch, batch);
        }
        is_some
    }

    /// How many times the driver has taken submissions. While the count is unchanged, everything
    /// submitted since is still queued, and when the driver takes it, it sees everything that the
    /// reader of the count did before.
    pub fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Closes the queue: drops what is queued and whatever is submitted later.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        let left = std::mem::take(&mut waiting.batch);
        drop(waiting);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing done under the lock can panic half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Submitted {
    /// Empties the batch; keeps capacity up to a bound.
    fn clear(&mut self) {
        self.submissions.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEEP_BYTES);
        self.submissions
            .shrink_to(KEEP_BYTES / size_of::<Submission>());
    }
}

impl Submission {
    /// Bytes of its frame.
    fn len(&self) -> usize {
        match self {
            Self::Frame { frame, .. } | Self::Request { frame, .. } => frame.len(),
            _ => 0,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateAnswer").finish_non_exhaustive()
    }
}
