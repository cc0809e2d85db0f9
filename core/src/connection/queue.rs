//! What other threads have submitted and the driver has not taken over.
//!
//! ```text
//!   threads ── push ─▶  submissions: [ frame 90 | request 130 | sleep | frame … ]
//!                       bytes:       [ ……90…… | ……130…… ]
//!   driver  ◀─ take ──  both at once, for its own, which are empty
//! ```
//!
//! Small frames are copied one behind the other, so that in steady state submitting allocates
//! nothing; a long one travels as a block of its own. All that happens under the lock is that
//! copy, and for the driver an exchange: nobody encodes, decodes or calls anything foreign there.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::bundle::Bundle;
use super::handle::{PartialFn, ProgressFn};
use super::host::{CallKey, StreamId};
use super::overdue::Overdue;
use super::sleep::Alarm;
use crate::correlate::RequestKey;
use crate::limits::{COPY_IN_BYTES, KEEP_BYTES};

/// Something for the driver to do.
#[derive(Debug)]
pub(crate) enum Submission {
    /// One encoded frame.
    Frame { frame: Place, kind: FrameKind },
    /// One encoded request of this side.
    Request { frame: Place, request: Request },
    /// The caller of a request gave up.
    Cancelled {
        key: RequestKey,
        reason: Option<Box<str>>,
    },
    /// Rouse a handler that sleeps.
    Sleep { alarm: Alarm, duration: Duration },
    /// Serve requests that came as one.
    Bundle(Box<Bundle>),
    /// Answer a request of the peer if its handler has not after so long.
    Limit { limit: Duration, overdue: Overdue },
    /// End the stream of a call whose client comes back for the rest, after so long.
    #[cfg(feature = "server")]
    Release { key: CallKey, retry: Duration },
    /// Close once everything queued is written.
    Close,
    /// Finish what is in flight, for so long, then close.
    Drain(Duration),
}

#[derive(Debug)]
pub(crate) enum FrameKind {
    Answer(CallKey),
    Progress(CallKey),
    /// A notification on behalf of a call that stays open.
    Event(CallKey),
    /// A log message, on behalf of a call or of none; shed under back-pressure.
    Log(Option<CallKey>),
    Notification,
}

pub(crate) struct Request {
    pub key: RequestKey,
    /// The stream that it goes out on.
    pub on: StreamId,
    pub timeout: Duration,
    pub max_timeout: Duration,
    pub progress: Option<ProgressFn>,
    pub partial: Option<PartialFn>,
}

/// Where the bytes of a submitted frame are.
#[derive(Debug)]
pub(crate) enum Place {
    /// So many bytes, behind those of the frame before.
    Next(usize),
    /// Here.
    Own(Bytes),
}

/// The bytes of a submitted frame.
pub(crate) enum Encoded<'a> {
    Copied(&'a [u8]),
    Own(Bytes),
}

/// Submissions in their order, and the bytes of their small frames.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub submissions: Vec<Submission>,
    pub bytes: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Bytes submitted that the driver has not dealt with.
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Waiting {
    batch: Batch,
    bytes: usize,
    closed: bool,
    /// How often the driver has taken what waited.
    taken: u64,
}

impl Queue {
    /// Bytes submitted that the driver has not dealt with.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Whether nothing waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.lock().batch.submissions.is_empty()
    }

    /// Appends submissions whose frames, as far as they are [`Place::Next`], lie in `frames`.
    /// Whether nothing waited before: then nobody has told the driver.
    #[inline]
    pub fn push(&self, frames: &[u8], submissions: impl IntoIterator<Item = Submission>) -> bool {
        self.add(frames, |into| {
            let mut bytes = 0;
            into.extend(submissions.into_iter().inspect(|each| bytes += each.len()));
            bytes
        })
    }

    /// The same for one.
    #[inline]
    pub fn push_one(&self, frame: &[u8], submission: Submission) -> bool {
        self.add(frame, |into| {
            let bytes = submission.len();
            into.push(submission);
            bytes
        })
    }

    /// Appends what `add` does; it says how many bytes that holds.
    #[inline]
    fn add(&self, frames: &[u8], add: impl FnOnce(&mut Vec<Submission>) -> usize) -> bool {
        let mut waiting = self.lock();
        if waiting.closed {
            return false;
        }
        let first = waiting.batch.submissions.is_empty();
        waiting.batch.bytes.extend_from_slice(frames);
        let added = add(&mut waiting.batch.submissions);
        waiting.bytes += added;
        // Only written under the lock.
        self.bytes.store(self.bytes() + added, Relaxed);
        first
    }

    /// The driver has dealt with `batch` and takes what waits now, if anything does.
    pub fn take(&self, batch: &mut Batch) -> bool {
        batch.clear();
        let mut waiting = self.lock();
        self.bytes
            .store(std::mem::take(&mut waiting.bytes), Relaxed);
        std::mem::swap(&mut waiting.batch, batch);
        waiting.taken += 1;
        !batch.submissions.is_empty()
    }

    /// How often the driver has taken what waited. While that stays the same, what was submitted
    /// since is still here; and who reads it sees to it that the driver, when it takes that, knows
    /// of everything done before.
    #[cfg(feature = "server")]
    pub fn taken(&self) -> u64 {
        self.lock().taken
    }

    /// Nobody takes anything any more: drops what waits, and whatever is submitted later.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        let left = std::mem::take(&mut waiting.batch);
        drop(waiting);
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that is done under the lock panics half way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// Empties it; room is kept up to a bound.
    fn clear(&mut self) {
        self.submissions.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEEP_BYTES);
        self.submissions
            .shrink_to(KEEP_BYTES / size_of::<Submission>());
    }
}

impl Submission {
    /// Bytes it holds for the peer.
    fn len(&self) -> usize {
        match self {
            Self::Frame { frame, .. } | Self::Request { frame, .. } => frame.len(),
            _ => 0,
        }
    }
}

impl Place {
    fn len(&self) -> usize {
        match self {
            Self::Next(len) => *len,
            Self::Own(bytes) => bytes.len(),
        }
    }

    /// The bytes, of which those of small frames are taken off the head of `next`.
    pub fn find<'a>(self, next: &mut &'a [u8]) -> Encoded<'a> {
        match self {
            Self::Next(len) => {
                let (frame, rest) = next.split_at(len.min(next.len()));
                *next = rest;
                Encoded::Copied(frame)
            }
            Self::Own(bytes) => Encoded::Own(bytes),
        }
    }
}

/// Whether a frame of that length is too long to be copied under the lock.
pub(crate) fn is_long(len: usize) -> bool {
    len > COPY_IN_BYTES
}

impl std::ops::Deref for Encoded<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
