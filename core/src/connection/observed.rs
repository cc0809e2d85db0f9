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
    observer: Cell<Option<Arc<dyn RequestObserver>>>,
    begun: Cell<Option<Instant>>,
    request_bytes: Cell<usize>,
    waits: Cell<bool>,
}

impl Observed {
    pub fn new(observer: Arc<dyn RequestObserver>, begun: Option<Instant>, bytes: usize) -> Self {
        Self {
            observer: Cell::new(Some(observer)),
            begun: Cell::new(begun),
            request_bytes: Cell::new(bytes),
            waits: Cell::new(false),
        }
    }

    /// Moves what is left to tell to another place; this one tells nothing any more.
    pub fn hand_over(&self) -> Self {
        Self {
            observer: Cell::new(self.observer.take()),
            begun: self.begun.clone(),
            request_bytes: self.request_bytes.clone(),
            waits: Cell::new(self.waits.take()),
        }
    }

    /// A request of this side is sent.
    pub fn sent(&self, now: Instant, bytes: usize) {
        self.begun.set(Some(now));
        self.request_bytes.set(bytes);
    }

    /// The request has to wait for room, or waits no longer.
    pub fn waits(&self, waits: bool) {
        if self.waits.replace(waits) != waits {
            self.with(|observer| observer.waits(waits));
        }
    }

    /// The trace context that the request is to carry in its `_meta`.
    pub fn trace_context(&self) -> Option<TraceContext> {
        let mut context = None;
        self.with(|observer| context = observer.trace_context());
        context
    }

    /// What surrounds the handler of the request.
    pub fn scope(&self) -> Option<RequestScope> {
        let mut scope = None;
        self.with(|observer| scope = observer.clone().scope());
        scope
    }

    /// Tells the end of the request, if it was not told before.
    pub fn end(&self, outcome: RequestOutcome, answer_bytes: usize) {
        self.waits(false);
        if let Some(observer) = self.observer.take() {
            observer.end(&RequestEnd {
                begun: self.begun.get(),
                outcome,
                request_bytes: self.request_bytes.get(),
                answer_bytes,
            });
        }
    }

    fn with(&self, tell: impl FnOnce(&Arc<dyn RequestObserver>)) {
        if let Some(observer) = self.observer.take() {
            tell(&observer);
            self.observer.set(Some(observer));
        }
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
