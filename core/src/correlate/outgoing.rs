//! PendingRequests requests that wait for an outcome, shared between threads without locks.
//!
//! ```text
//!  chunks   [64 slots] [128] [256] …        made when first needed, never moved, never given back
//!  free     tag | slot ─▶ slot ─▶ slot      last in, first out: a warm slot is used again
//!  made     how many slots were ever handed out
//! ```
//!
//! The free list is Treiber's stack (IBM RJ 5118, 1986) with a tag that counts pops, to detect a
//! slot that was popped and pushed back in between (the ABA problem).

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::task::{Context, Poll};

use super::key::{MAX_SLOTS, RequestKey, SLOT_BITS};
use super::slab::Slot;
use crate::sync::atomic::AtomicU64;

/// Slots of the first chunk; each further chunk has twice as many.
const FIRST_CHUNK: u32 = 64;
/// Enough chunks for [`MAX_SLOTS`].
const CHUNKS: usize = (SLOT_BITS - FIRST_CHUNK.ilog2() + 1) as usize;
/// Flag in `free` and `made`: no more requests are registered.
const CLOSED: u64 = 1 << 63;
/// One pop in the tag of `free`.
const TAG: u64 = 1 << SLOT_BITS;
/// Mask in `free`: the top slot + 1, or 0.
const TOP: u64 = MAX_SLOTS as u64;

/// Why a request was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unregistered {
    /// The table's limit of pending requests is reached.
    Full,
    /// The table was closed.
    Closed,
}

impl fmt::Display for Unregistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "too many requests are pending",
            Self::Closed => "the connection is closed",
        })
    }
}

impl std::error::Error for Unregistered {}

/// PendingRequests requests that wait for an outcome `T`.
///
/// Each registered request ends exactly once: by the first [`complete`](Self::complete) (an answer,
/// a deadline, a cancellation by another thread), by its waiter's [`cancel`](Self::cancel), or by
/// [`close`](Self::close). Later calls learn that they are late. All methods are lock-free, may be
/// called from any thread, and allocate only while the table grows to its largest number of
/// simultaneous requests.
pub struct PendingRequests<T> {
    free: AtomicU64,
    made: AtomicU64,
    max: u32,
    chunks: [OnceLock<Box<[Entry<T>]>>; CHUNKS],
}

/// A slot and its link in the free list, on cache lines of its own.
#[repr(align(64))]
struct Entry<T> {
    slot: Slot<T>,
    /// The next free slot + 1, or 0.
    next: AtomicU64,
}

impl<T> PendingRequests<T> {
    /// An empty table for at most `max_pending` simultaneous requests (and at most 2^20 − 1).
    /// Allocates nothing yet.
    pub fn new(max_pending: usize) -> Self {
        Self {
            free: AtomicU64::new(0),
            made: AtomicU64::new(0),
            max: u32::try_from(max_pending).map_or(MAX_SLOTS, |max| max.min(MAX_SLOTS)),
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// Starts a request. The number of its key is the id on the wire. The caller becomes the
    /// waiter: it must [`poll`](Self::poll) until the outcome is there, or
    /// [`cancel`](Self::cancel).
    ///
    /// # Errors
    ///
    /// [`Unregistered`] when the table is full or closed.
    #[inline]
    pub fn register(&self) -> Result<RequestKey, Unregistered> {
        let slot = match self.pop()? {
            Some(slot) => slot,
            None => self.make()?,
        };
        let generation = self.entry(slot).and_then(|entry| entry.slot.register());
        generation
            .map(|generation| RequestKey::new(slot, generation))
            .ok_or(Unregistered::Closed)
    }

    /// Settles a request and wakes its waiter.
    ///
    /// # Errors
    ///
    /// Returns `outcome` if the key is stray: never registered, cancelled, already settled, or of
    /// an earlier use of its slot.
    #[inline]
    pub fn complete(&self, key: RequestKey, outcome: T) -> Result<(), T> {
        match self.entry(key.slot()) {
            Some(entry) => {
                let recycle = || self.push(key.slot(), entry);
                entry.slot.complete(key.generation(), outcome, recycle)
            }
            None => Err(outcome),
        }
    }

    /// Ends a request for its waiter. `true`: the request was still pending, so the peer should be
    /// notified; `false`: it was settled, and its outcome is dropped. In both cases the key becomes
    /// invalid.
    ///
    /// Only the waiter may call this: a waiter cancelled by another thread is not woken. To end a
    /// request from elsewhere, [`complete`](Self::complete) it with an error.
    #[inline]
    pub fn cancel(&self, key: RequestKey) -> bool {
        self.entry(key.slot()).is_some_and(|entry| {
            let recycle = || self.push(key.slot(), entry);
            entry.slot.cancel(key.generation(), recycle)
        })
    }

    /// Returns the outcome, once; the key is invalid after that. Until the outcome is there,
    /// returns `Pending` and wakes `cx` when it comes. Any [`Waker`](std::task::Waker) will do:
    /// that of a task, of a parked thread, or one that posts to a queue.
    ///
    /// `Ready(None)` means that nothing waits under this key: it is invalid, or another thread is
    /// polling it at this moment.
    #[inline]
    pub fn poll(&self, key: RequestKey, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match self.entry(key.slot()) {
            Some(entry) => {
                let recycle = || self.push(key.slot(), entry);
                entry.slot.poll(key.generation(), cx.waker(), recycle)
            }
            None => Poll::Ready(None),
        }
    }

    /// Accepts no more requests, and settles every pending one with a value made by `outcome`; the
    /// value is dropped if another outcome came first. Takes time proportional to the largest
    /// number of simultaneous requests so far.
    pub fn close(&self, outcome: impl Fn() -> T) {
        // A registration takes its slot off `free` or `made` either before this, and the loop then
        // finds the slot free or pending, or after this, and then sees the flag.
        self.free.fetch_or(CLOSED, AcqRel);
        let made = self.made.fetch_or(CLOSED, AcqRel) & !CLOSED;
        for slot in 0..made as u32 {
            let entry = self.made_entry(slot);
            entry.slot.close(&outcome, || self.push(slot, entry));
        }
    }

    /// Whether [`close`](Self::close) has been called.
    pub fn is_closed(&self) -> bool {
        self.free.load(Acquire) & CLOSED != 0
    }

    /// The number of requests without an outcome. Counts them, in time proportional to the largest
    /// number of simultaneous requests so far; other threads may change the number in the meantime.
    pub fn pending_count(&self) -> usize {
        let made = self.made.load(Acquire) & !CLOSED;
        (0..made as u32)
            .filter(|&slot| {
                self.entry(slot)
                    .is_some_and(|entry| entry.slot.is_pending())
            })
            .count()
    }

    #[inline]
    fn pop(&self) -> Result<Option<u32>, Unregistered> {
        let mut free = self.free.load(Acquire);
        loop {
            if free & CLOSED != 0 {
                return Err(Unregistered::Closed);
            }
            let Some(slot) = ((free & TOP) as u32).checked_sub(1) else {
                return Ok(None);
            };
            let Some(entry) = self.entry(slot) else {
                return Ok(None);
            };
            let next = entry.next.load(Relaxed);
            // The tag must not overflow into the flag.
            let popped = ((free & !TOP).wrapping_add(TAG) & !CLOSED) | next;
            match self
                .free
                .compare_exchange_weak(free, popped, AcqRel, Acquire)
            {
                Ok(_) => return Ok(Some(slot)),
                Err(now) => free = now,
            }
        }
    }

    #[inline]
    fn push(&self, slot: u32, entry: &Entry<T>) {
        let mut free = self.free.load(Acquire);
        loop {
            entry.next.store(free & TOP, Relaxed);
            let pushed = free & !TOP | u64::from(slot + 1);
            match self
                .free
                .compare_exchange_weak(free, pushed, AcqRel, Acquire)
            {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
    }

    /// Takes a slot that was never used.
    #[cold]
    fn make(&self) -> Result<u32, Unregistered> {
        let mut made = self.made.load(Acquire);
        loop {
            if made & CLOSED != 0 {
                return Err(Unregistered::Closed);
            }
            if made >= u64::from(self.max) {
                return Err(Unregistered::Full);
            }
            match self
                .made
                .compare_exchange_weak(made, made + 1, AcqRel, Acquire)
            {
                Ok(_) => break,
                Err(now) => made = now,
            }
        }
        self.made_entry(made as u32);
        Ok(made as u32)
    }

    /// The entry of a slot, if its chunk exists.
    #[inline]
    fn entry(&self, slot: u32) -> Option<&Entry<T>> {
        let (chunk, offset) = place(slot);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// The entry of a slot below `made`. Creates the chunk if needed; other threads may do so at
    /// the same time.
    fn made_entry(&self, slot: u32) -> &Entry<T> {
        let (chunk, offset) = place(slot);
        let entries = self.chunks[chunk].get_or_init(|| {
            let first = slot - offset as u32;
            let len = (FIRST_CHUNK << chunk).min(self.max - first);
            (0..len).map(|_| Entry::new()).collect()
        });
        &entries[offset]
    }
}

impl<T> Entry<T> {
    fn new() -> Self {
        Self {
            slot: Slot::new(),
            next: AtomicU64::new(0),
        }
    }
}

/// The position of a slot: its chunk, and its offset in the chunk.
#[inline]
fn place(slot: u32) -> (usize, usize) {
    let position = slot + FIRST_CHUNK;
    let chunk = position.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (position - (FIRST_CHUNK << chunk)) as usize)
}

impl<T> fmt::Debug for PendingRequests<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests")
            .field("pending_count", &self.pending_count())
            .field("max", &self.max)
            .field("closed", &self.is_closed())
            .finish()
    }
}
