//! One slot of the outgoing table; holds the only `unsafe` code of this module.
//!
//! ```text
//!             register               complete                 publish            poll
//!   FREE(g) ───────────▶ PENDING(g) ──────────▶ SETTLING(g) ──────────▶ DONE(g) ──────▶ TAKING ──▶ FREE(g+1)
//!                            │ cancel                │ cancel: ABANDONED    │ cancel
//!                            └──────────────▶ TAKING ◀──────────────────────┘
//! ```
//!
//! A slot's word holds its generation, its phase and three flags. The thread that wins the step out
//! of `PENDING` decides the outcome; every other thread learns that it came too late.
//!
//! # Invariants
//!
//! 1. The *value* cell belongs to the thread that moved the word into `SETTLING`, until it
//!    publishes `DONE`; then to the thread that moves the word into `TAKING` (or, under `LOCK`,
//!    finds `DONE` at its unlock), until it stores `FREE`. No other thread touches the cell.
//! 2. The *waker* cell belongs to the thread that set `LOCK`, until it clears it. `LOCK` is only
//!    set from `PENDING`. Without `LOCK` it belongs to the owner of `SETTLING` or `TAKING`.
//! 3. `DONE | LOCK` is left only by the owner of `LOCK`; `TAKING | LOCK` is freed by the owner of
//!    `LOCK`, and no other thread touches that slot any more.
//! 4. Every step that hands a cell over is a release write of the word, and every step that
//!    takes a cell over reads that write with acquire; the free list orders `FREE` likewise.
//! 5. No foreign code (a waker's clone, wake or drop; a value's drop) runs while a cell is
//!    borrowed or a flag is held, so a panic in it cannot leave a slot behind.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::task::{Poll, Waker};

use super::key::MAX_GENERATION;
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU64;

const PHASE: u64 = 7;
const FREE: u64 = 0;
const PENDING: u64 = 1;
const SETTLING: u64 = 2;
const DONE: u64 = 3;
const TAKING: u64 = 4;
/// Never free again: the table was closed, or the generations are used up.
const RETIRED: u64 = 5;

/// A polling thread is using the waker cell.
const LOCK: u64 = 8;
/// The waker cell holds a waker.
const WAKER: u64 = 16;
/// The waiter left during `SETTLING`; the thread that publishes frees the slot.
const ABANDONED: u64 = 32;

const GENERATION_SHIFT: u32 = 8;

const fn word(generation: u64, phase: u64) -> u64 {
    generation << GENERATION_SHIFT | phase
}

/// `state` in another phase, with its flags kept.
const fn in_phase(state: u64, phase: u64) -> u64 {
    state & !PHASE | phase
}

/// A slot for one request at a time.
pub(super) struct Slot<T> {
    state: AtomicU64,
    waker: UnsafeCell<Option<Waker>>,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the cells are handed from thread to thread by invariants 1, 2 and 4, never shared, so
// `T: Send` suffices; `Waker` is `Send` itself.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Self {
            state: AtomicU64::new(word(0, FREE)),
            waker: UnsafeCell::new(None),
            value: UnsafeCell::new(None),
        }
    }

    /// A free slot that has been used before.
    #[cfg(test)]
    pub(super) fn at_generation(generation: u64) -> Self {
        let slot = Self::new();
        slot.state.store(word(generation, FREE), Release);
        slot
    }

    /// Starts a use of a slot taken off the free list. Returns the generation, or `None` if the
    /// slot was retired in the meantime.
    #[inline]
    pub(super) fn register(&self) -> Option<u64> {
        let state = self.state.load(Acquire);
        let free = state & PHASE == FREE;
        let pending = in_phase(state, PENDING);
        (free && self.step(state, pending).is_ok()).then_some(state >> GENERATION_SHIFT)
    }

    /// Settles the request, or returns the value if the request is no longer pending. This is the
    /// atomic step that decides the outcome. Calls `recycle` if the waiter left in the meantime.
    #[inline]
    pub(super) fn complete(
        &self,
        generation: u64,
        value: T,
        recycle: impl FnOnce(),
    ) -> Result<(), T> {
        let mut state = self.state.load(Acquire);
        loop {
            if !is(state, generation, PENDING) {
                return Err(value);
            }
            match self.step(state, in_phase(state, SETTLING)) {
                Ok(settling) => {
                    self.put_value(value);
                    self.publish(settling, recycle);
                    return Ok(());
                }
                Err(now) => state = now,
            }
        }
    }

    /// Second half of [`complete`](Self::complete): makes the value visible and wakes the waiter.
    #[inline]
    fn publish(&self, mut state: u64, recycle: impl FnOnce()) {
        let mut waker = None;
        let mut value = None;
        loop {
            let generation = state >> GENERATION_SHIFT;
            let locked = state & LOCK;
            if locked == 0 && state & WAKER != 0 && waker.is_none() {
                waker = self.replace_waker(None);
            }
            let next = if state & ABANDONED == 0 {
                word(generation, DONE)
            } else {
                value = value.or_else(|| self.take_value());
                if locked == 0 {
                    return self.free(generation, recycle);
                }
                word(generation, TAKING)
            };
            match self.step(state, next | locked) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        drop(value);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ends the use of the slot by its waiter; returns whether the request was still pending. Calls
    /// `recycle`, unless another thread is still using the slot and will do so.
    #[inline]
    pub(super) fn cancel(&self, generation: u64, recycle: impl FnOnce()) -> bool {
        let mut state = self.state.load(Acquire);
        loop {
            let phase = state & PHASE;
            let next = match phase {
                _ if state >> GENERATION_SHIFT != generation => return false,
                PENDING => in_phase(state, TAKING),
                SETTLING => state | ABANDONED,
                DONE if state & LOCK == 0 => in_phase(state, TAKING),
                // `DONE | LOCK`: the polling thread takes the value (invariant 3).
                _ => return false,
            };
            match self.step(state, next) {
                Ok(_) => {
                    if phase != SETTLING && state & LOCK == 0 {
                        self.take(generation, recycle);
                    }
                    return phase == PENDING;
                }
                Err(now) => state = now,
            }
        }
    }

    /// Takes the value and calls `recycle`, or registers the waker. `Ready(None)` if nothing waits
    /// under that generation.
    #[inline]
    pub(super) fn poll(
        &self,
        generation: u64,
        waker: &Waker,
        mut recycle: impl FnMut(),
    ) -> Poll<Option<T>> {
        let mut state = self.state.load(Acquire);
        let mut fresh = None;
        loop {
            if is(state, generation, DONE) && state & LOCK == 0 {
                match self.step(state, word(generation, TAKING)) {
                    Ok(_) => return Poll::Ready(self.take(generation, recycle)),
                    Err(now) => state = now,
                }
            } else if is(state, generation, SETTLING) && state & (LOCK | ABANDONED) == 0 {
                // Another thread is storing the value at this moment: poll again at once.
                waker.wake_by_ref();
                return Poll::Pending;
            } else if is(state, generation, PENDING) && state & LOCK == 0 {
                if state & WAKER == 0 && fresh.is_none() {
                    fresh = Some(waker.clone());
                }
                match self.step(state, state | LOCK) {
                    Ok(locked) => {
                        let (known, old) = self.leave_waker(waker, &mut fresh);
                        let outcome = self.unlock(locked, generation, &mut recycle);
                        drop(old);
                        if known || outcome.is_ready() {
                            return outcome;
                        }
                        fresh = Some(waker.clone());
                        state = self.state.load(Acquire);
                    }
                    Err(now) => state = now,
                }
            } else {
                return Poll::Ready(None);
            }
        }
    }

    /// Under `LOCK`: registers the waker. Returns whether the cell now holds it, and the waker it
    /// replaced.
    fn leave_waker(&self, waker: &Waker, fresh: &mut Option<Waker>) -> (bool, Option<Waker>) {
        self.waker.with_mut(|cell| {
            // SAFETY: invariant 2, the caller holds LOCK.
            let cell = unsafe { &mut *cell };
            if cell.as_ref().is_some_and(|left| left.will_wake(waker)) {
                (true, fresh.take())
            } else if fresh.is_some() {
                (true, std::mem::replace(cell, fresh.take()))
            } else {
                (false, None)
            }
        })
    }

    /// Releases `LOCK` and finishes what other threads left to its owner.
    fn unlock(&self, mut state: u64, generation: u64, recycle: impl FnOnce()) -> Poll<Option<T>> {
        loop {
            match state & PHASE {
                PENDING | SETTLING => match self.step(state, state & !LOCK | WAKER) {
                    Ok(_) => return Poll::Pending,
                    Err(now) => state = now,
                },
                DONE => return Poll::Ready(self.take(generation, recycle)),
                // TAKING: cancelled by another thread, which left the slot to this one (invariant
                // 3).
                _ => return Poll::Ready(self.take(generation, recycle)),
            }
        }
    }

    /// Empties and frees the slot. The caller is the owner of `TAKING`, or of `LOCK` when no other
    /// thread uses the slot.
    #[inline]
    fn take(&self, generation: u64, recycle: impl FnOnce()) -> Option<T> {
        let waker = self.replace_waker(None);
        let value = self.take_value();
        self.free(generation, recycle);
        drop(waker);
        value
    }

    /// Ends all use of the slot: retires a free slot, and completes a pending one with `value`.
    pub(super) fn close(&self, value: impl FnOnce() -> T, recycle: impl FnOnce()) {
        let mut state = self.state.load(Acquire);
        loop {
            match state & PHASE {
                FREE => match self.step(state, in_phase(state, RETIRED)) {
                    Ok(_) => return,
                    Err(now) => state = now,
                },
                PENDING => {
                    // If this fails, another outcome came first.
                    _ = self.complete(state >> GENERATION_SHIFT, value(), recycle);
                    return;
                }
                _ => return,
            }
        }
    }

    /// Whether a request waits for its outcome here.
    pub(super) fn is_pending(&self) -> bool {
        self.state.load(Acquire) & PHASE == PENDING
    }

    /// Ends a generation. The caller owns both cells, and both are empty.
    #[inline]
    fn free(&self, generation: u64, recycle: impl FnOnce()) {
        if generation == MAX_GENERATION {
            return self.state.store(word(generation, RETIRED), Release);
        }
        self.state.store(word(generation + 1, FREE), Release);
        recycle();
    }

    /// One compare-and-swap of the word: `Ok` with the new state, `Err` with the state found
    /// instead.
    #[inline]
    fn step(&self, from: u64, to: u64) -> Result<u64, u64> {
        let step = self.state.compare_exchange(from, to, AcqRel, Acquire);
        step.map(|_| to)
    }

    /// Fills the value cell, which must be empty.
    #[inline]
    fn put_value(&self, value: T) {
        // SAFETY: invariant 1, every caller is the owner of SETTLING, TAKING or DONE | LOCK.
        self.value.with_mut(|cell| unsafe { *cell = Some(value) });
    }

    #[inline]
    fn take_value(&self) -> Option<T> {
        // SAFETY: invariant 1, as above.
        self.value.with_mut(|cell| unsafe { (*cell).take() })
    }

    #[inline]
    fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: invariant 2, every caller is the owner of SETTLING, TAKING or LOCK.
        self.waker
            .with_mut(|cell| unsafe { std::mem::replace(&mut *cell, waker) })
    }
}

#[inline]
fn is(state: u64, generation: u64, phase: u64) -> bool {
    state >> GENERATION_SHIFT == generation && state & PHASE == phase
}
