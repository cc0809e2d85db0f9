//! The timers of a connection.

use super::keys::CallKey;
use crate::correlate::{CancelToken, RequestKey, TimerQueue};

/// The timers of a connection, except the deadlines of its own requests.
pub(super) type Timers = TimerQueue<Timer>;

/// The action when a timer fires.
#[derive(Debug)]
pub(crate) enum Timer {
    /// The current step of the opening takes too long.
    Opening(RequestKey),
    /// The peer may have read no byte of a long output since the timer was set.
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
    Sleep(SleepGuard),
    /// A request of the peer has reached its time limit.
    Overdue(CallKey),
    /// The batch that this request of the peer brought has reached its time limit.
    Batch(CallKey),
}

/// The driver's half of a sleep. Dropping it ends the sleep, whether the timer fired or the connection
/// was dropped.
#[derive(Debug)]
pub(crate) struct SleepGuard(pub CancelToken);

impl Drop for SleepGuard {
    fn drop(&mut self) {
        self.0.cancel(None);
    }
}
