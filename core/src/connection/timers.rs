//! The timers of a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use super::keys::CallKey;
use crate::correlate::{RequestKey, TimerQueue};

/// All timers of a connection.
pub(super) type Timers = TimerQueue<Timer>;

/// What to do when a timer fires.
#[derive(Debug)]
pub(crate) enum Timer {
    /// A request of this side may be overdue.
    Request(RequestKey),
    /// The current step of the opening takes too long.
    Opening(RequestKey),
    /// The peer may have taken nothing of a long output since the timer was set.
    WriteStall,
    /// A drain's grace period is over.
    Drain,
    /// Time to check whether the peer has sent anything (keepalive).
    Silence,
    /// Time to check whether the connection is idle.
    Idle,
    /// Progress that was held back may be sent.
    Report,
    /// A sleeping handler is to be woken.
    Sleep(Alarm),
    /// A request of the peer has reached its time limit.
    Overdue(CallKey),
    /// The batch that this request of the peer brought has reached its time limit.
    Batch(CallKey),
}

/// The driver's half of a sleep. Dropping it ends the sleep, whether the timer fired or the connection
/// was dropped.
#[derive(Debug)]
pub(crate) struct Alarm(pub Arc<Sleeper>);

/// What a sleep and its alarm share.
#[derive(Debug, Default)]
pub(crate) struct Sleeper(Mutex<SleepState>);

#[derive(Debug, Default)]
struct SleepState {
    over: bool,
    waker: Option<Waker>,
}

impl Sleeper {
    /// Replaces the waker; returns whether the sleep is over.
    pub fn watch(&self, waker: Option<Waker>) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut state.waker, waker);
        let over = state.over;
        drop(state);
        drop(old);
        over
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.over = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
