//! A request that somebody observes: keeps what its end will tell, and tells it once.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::observer::{RequestEnd, RequestObserver, RequestOutcome, RequestScope};
use crate::mcp::TraceContext;

/// A request in progress with its observer. Dropped before its end, it counts as lost.
pub(crate) struct Observed {
    /// `None` once the end was told.
    observer: Option<Arc<dyn RequestObserver>>,
    begun: Option<Instant>,
    request_bytes: usize,
    waits: bool,
}

impl Observed {
    pub fn new(observer: Arc<dyn RequestObserver>, begun: Option<Instant>, bytes: usize) -> Self {
        Self {
            observer: Some(observer),
            begun,
            request_bytes: bytes,
            waits: false,
        }
    }

    /// A request of this side is sent.
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        (self.begun, self.request_bytes) = (Some(now), bytes);
    }

    /// The request has to wait for room, or waits no longer.
    pub fn waits(&mut self, waits: bool) {
        if std::mem::replace(&mut self.waits, waits) != waits
            && let Some(observer) = &self.observer
        {
            observer.waits(waits);
        }
    }

    /// The trace context that the request is to carry in its `_meta`.
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.observer.as_ref()?.trace_context()
    }

    /// What surrounds the handler of the request.
    pub fn scope(&self) -> Option<RequestScope> {
        self.observer.clone()?.scope()
    }

    /// Tells the end of the request.
    pub fn end(mut self, outcome: RequestOutcome, answer_bytes: usize) {
        self.tell(outcome, answer_bytes);
    }

    fn tell(&mut self, outcome: RequestOutcome, answer_bytes: usize) {
        let Some(observer) = self.observer.take() else {
            return;
        };
        if self.waits {
            observer.waits(false);
        }
        observer.end(&RequestEnd {
            begun: self.begun,
            outcome,
            request_bytes: self.request_bytes,
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
        self.tell(RequestOutcome::Lost, 0);
    }
}

/// A request that the driver's thread is about to answer or to keep, and its observer if it has one. Either of the two takes it out.
pub(super) struct Undecided(Cell<Option<Observed>>);

impl Undecided {
    #[inline]
    pub fn new(observed: Option<Observed>) -> Self {
        Self(Cell::new(observed))
    }

    /// A request that was kept before.
    pub fn of(kept: &mut Option<Box<Observed>>) -> Self {
        Self::new(kept.take().map(|it| *it))
    }

    /// `None` if nobody observes the request.
    #[inline]
    pub fn get(&mut self) -> Option<&Self> {
        self.0.get_mut().is_some().then_some(self)
    }

    pub fn take(&self) -> Option<Observed> {
        self.0.take()
    }

    /// What surrounds the handler of the request.
    pub fn scope(&self) -> Option<RequestScope> {
        let observed = self.take()?;
        let scope = observed.scope();
        self.0.set(Some(observed));
        scope
    }

    /// Tells the end of the request, unless it was told or the request is kept.
    pub fn end(&self, outcome: RequestOutcome, answer_bytes: usize) {
        if let Some(observed) = self.take() {
            observed.end(outcome, answer_bytes);
        }
    }
}

impl fmt::Debug for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undecided(..)")
    }
}
