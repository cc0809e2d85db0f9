//! Requests of ours that wait for an outcome, shared between threads without a lock.
//!
//! ```text
//!  chunks   [64 slots] [128] [256] …        made when first needed, never moved, never given back
//!  free     tag | slot ─▶ slot ─▶ slot      last in, first out: a warm slot is used again
//!  made     how many slots were ever handed out
//! ```
//!
//! The free list is Treiber's stack (IBM RJ 5118, 1986) with a tag that counts the pops, so a
//! slot that was popped and pushed back in between is noticed.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::task::{Context, Poll};

use super::key::{MAX_SLOTS, RequestKey, SLOT_BITS};
use super::slab::Slot;
use super::sync::AtomicU64;

/// Slots of the first chunk; each further chunk has twice as many.
const FIRST_CHUNK: u32 = 64;
/// Enough chunks for [`MAX_SLOTS`].
const CHUNKS: usize = (SLOT_BITS - FIRST_CHUNK.ilog2() + 1) as usize;
/// In `free` and `made`: nothing is registered any more.
const CLOSED: u64 = 1 << 63;
/// In `free`: one pop.
const TAG: u64 = 1 << SLOT_BITS;
/// In `free`: the top slot + 1, or 0.
const TOP: u64 = MAX_SLOTS as u64;

/// Why a request was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unregistered {
    /// As many requests are pending as the table admits.
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

/// Requests of this side that wait for an outcome `T`.
///
/// Each registered request ends exactly once: the first [`complete`](Self::complete) (an answer,
/// a deadline, somebody else's cancel), or its waiter's [`cancel`](Self::cancel), or
/// [`close`](Self::close). Whatever comes later learns that it is late. All methods are
/// lock-free, may be called from any thread, and allocate only while the table grows to its
/// largest number of simultaneous requests.
pub struct Outgoing<T> {
    free: AtomicU64,
    made: AtomicU64,
    max: u32,
    chunks: [OnceLock<Box<[Entry<T>]>>; CHUNKS],
}

/// A slot and its place in the free list, on cache lines of its own.
#[repr(align(64))]
struct Entry<T> {
    slot: Slot<T>,
    /// The next free slot + 1, or 0.
    next: AtomicU64,
}

impl<T> Outgoing<T> {
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

    /// Starts a request. Its key, as a number, is the id on the wire. The caller becomes the
    /// waiter: it [`poll`](Self::poll)s until the outcome is there, or [`cancel`](Self::cancel)s.
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
    /// Gives `outcome` back when the key is a stray: never registered, cancelled, settled
    /// already, or of an earlier use of its slot.
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

    /// The waiter gives up. `true`: the request was still pending, so the peer ought to be told;
    /// `false`: it was settled, and its outcome is dropped. Either way the key is void.
    ///
    /// Only the waiter may do this: a waiter that another thread cancels is not woken. To end a
    /// request from elsewhere, [`complete`](Self::complete) it with an error.
    #[inline]
    pub fn cancel(&self, key: RequestKey) -> bool {
        self.entry(key.slot()).is_some_and(|entry| {
            let recycle = || self.push(key.slot(), entry);
            entry.slot.cancel(key.generation(), recycle)
        })
    }

    /// The outcome, once; before it is there, `Pending`, and `cx` is woken when it comes. After
    /// that the key is void. Any [`Waker`](std::task::Waker) will do: a task's, a parked
    /// thread's, or one that posts to a queue.
    ///
    /// `Ready(None)` means that nothing waits under this key (void, or polled by another thread
    /// at this moment).
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

    /// Admits no further request and settles every pending one with what `outcome` makes (which
    /// is dropped where another outcome came first). Takes time in proportion to the largest
    /// number of simultaneous requests so far.
    pub fn close(&self, outcome: impl Fn() -> T) {
        // A registration takes its slot off `free` or `made` either before this (then the loop
        // finds it, free or pending) or after (then it sees the mark).
        self.free.fetch_or(CLOSED, AcqRel);
        let made = self.made.fetch_or(CLOSED, AcqRel) & !CLOSED;
        for slot in 0..made as u32 {
            let entry = self.made_entry(slot);
            entry.slot.close(&outcome, || self.push(slot, entry));
        }
    }

    /// Has [`close`](Self::close) been called?
    pub fn is_closed(&self) -> bool {
        self.free.load(Acquire) & CLOSED != 0
    }

    /// Requests without an outcome. Counts them, in time proportional to the largest number of
    /// simultaneous requests so far; other threads may change it meanwhile.
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
            // The tag may not run into the mark.
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

    /// A slot that was never used.
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

    /// The entry of a slot below `made`; makes the chunk, which whoever handed out the slot may
    /// be about to do too.
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

/// Where a slot lives: chunk, and offset in it.
#[inline]
fn place(slot: u32) -> (usize, usize) {
    let position = slot + FIRST_CHUNK;
    let chunk = position.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (position - (FIRST_CHUNK << chunk)) as usize)
}

impl<T> fmt::Debug for Outgoing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing")
            .field("pending_count", &self.pending_count())
            .field("max", &self.max)
            .field("closed", &self.is_closed())
            .finish()
    }
}
