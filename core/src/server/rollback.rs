//! Tools that roll back when a call fails (R-ACT-18).

use crate::panics::contain;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The completed steps of a call, each with its undo function. See [`Builder::atomic_tool`](super::Builder::atomic_tool).
#[derive(Clone, Default)]
pub struct Steps(Arc<Mutex<State>>);

enum State {
    /// The call is running.
    Open(Vec<Undo>),
    /// The call succeeded.
    Kept,
    /// The call failed.
    Undone,
}

type Undo = Box<dyn FnOnce() + Send>;

impl Default for State {
    fn default() -> Self {
        Self::Open(Vec::new())
    }
}

impl Steps {
    /// Records how to undo a step that was just taken. If the call has failed meanwhile, `undo`
    /// runs at once.
    pub fn taken(&self, undo: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            State::Open(steps) => steps.push(Box::new(undo)),
            State::Kept => {}
            State::Undone => {
                drop(state);
                undo();
            }
        }
    }

    fn end(&self, state: State) {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let undone = matches!(state, State::Undone);
        let State::Open(steps) = std::mem::replace(&mut *own, state) else {
            return;
        };
        drop(own);
        if undone {
            for undo in steps.into_iter().rev() {
                // An undo that panics does not keep the others from running.
                contain("an undo function", undo);
            }
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Steps(..)")
    }
}

/// A running call. Dropping it before success (the call failed, panicked, timed out or was
/// cancelled) undoes its steps.
#[derive(Default)]
pub(super) struct Attempt(Steps);

impl Attempt {
    /// The steps of this call.
    pub fn steps(&self) -> Steps {
        self.0.clone()
    }

    /// Keeps what the steps did.
    pub fn keep(self) {
        self.0.end(State::Kept);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.end(State::Undone);
    }
}
