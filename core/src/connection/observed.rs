//! A request that somebody observes: keeps what its end will tell, and tells it once.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::observer::{RequestEnd, RequestObserver, RequestOutcome, RequestScope};
use crate::mcp::TraceContext;

/// A request in progress with its observer. Dropped before its end, it counts as lost.
///
/// One thread at a time uses it: that of the driver, or the one that sends the request. The lock is there because a connection
/// may be shared between threads as a whole.
#[derive(Default)]
pub(crate) struct Observed(Mutex<State>);

#[derive(Default)]
struct State {
    /// `None` once the end was told.
    observer: Option<Arc<dyn RequestObserver>>,
    begun: Option<Instant>,
    request_bytes: usize,
    waits: bool,
}

impl Observed {
    pub fn new(observer: Arc<dyn RequestObserver>, begun: Option<Instant>, bytes: usize) -> Self {
        Self(Mutex::new(State {
            observer: Some(observer),
            begun,
            request_bytes: bytes,
            waits: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observer(&self) -> Option<Arc<dyn RequestObserver>> {
        self.state().observer.clone()
    }

    /// Moves what is left to tell to another place; this one tells nothing any more.
    pub fn hand_over(&self) -> Self {
        Self(Mutex::new(std::mem::take(&mut *self.state())))
    }

    /// A request of this side is sent.
    pub fn sent(&self, now: Instant, bytes: usize) {
        let mut state = self.state();
        (state.begun, state.request_bytes) = (Some(now), bytes);
    }

    /// The request has to wait for room, or waits no longer.
    pub fn waits(&self, waits: bool) {
        if std::mem::replace(&mut self.state().waits, waits) != waits
            && let Some(observer) = self.observer()
        {
            observer.waits(waits);
        }
    }

    /// The trace context that the request is to carry in its `_meta`.
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.observer()?.trace_context()
    }

    /// What surrounds the handler of the request.
    pub fn scope(&self) -> Option<RequestScope> {
        self.observer()?.scope()
    }

    /// Tells the end of the request, if it was not told before.
    pub fn end(&self, outcome: RequestOutcome, answer_bytes: usize) {
        let State {
            observer,
            begun,
            request_bytes,
            waits,
        } = std::mem::take(&mut *self.state());
        let Some(observer) = observer else { return };
        if waits {
            observer.waits(false);
        }
        observer.end(&RequestEnd {
            begun,
            outcome,
            request_bytes,
            answer_bytes,
        });
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observed(..)")
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.end(RequestOutcome::Lost, 0);
    }
}
