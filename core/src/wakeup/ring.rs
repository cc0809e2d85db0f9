//! A flag that wakes a task.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use crate::sync::atomic::AtomicBool;
use crate::sync::{Mutex, MutexGuard};

/// A flag that any thread can raise to wake the task that watches it.
#[derive(Debug)]
pub(crate) struct Ring {
    is_rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Ring {
    /// A lowered flag that no task watches.
    pub fn new() -> Self {
        Self {
            is_rung: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    /// Raises the flag and wakes the task that watches it. Does nothing if the flag is already up:
    /// the task has then been woken and has not checked yet.
    pub fn ring(&self) {
        if self.is_rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let waker = self.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Registers the task of `cx` to be woken from now on, lowers the flag, and returns whether it
    /// was raised.
    pub fn watch(&self, cx: &Context<'_>) -> bool {
        let mut waker = self.waker();
        match &mut *waker {
            Some(kept) => kept.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        drop(waker);
        self.is_rung.swap(false, Ordering::AcqRel)
    }

    /// Resets the flag to its new state: lowered, and watched by no task. Returns whether it was raised.
    #[cfg(any(feature = "http", all(test, loom)))]
    pub fn reset(&self) -> bool {
        let waker = self.waker().take();
        // An exchange, as every other step: the flag has one order of changes.
        let was_rung = self.is_rung.swap(false, Ordering::AcqRel);
        drop(waker);
        was_rung
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
