//! Several observers as one.

use std::sync::Arc;

use crate::connection::{
    ObservedRequest, ObservedSession, Observer, RequestEnd, RequestObserver, RequestScope,
    SessionObserver,
};
use crate::error::ConnectionError;
use crate::mcp::TraceContext;

/// Has all of `observers` told of everything, in that order; `None` if there are none. Handlers run within the scopes of all of
/// them; a request that is sent carries the trace context of the first that gives it one.
pub fn several(observers: Vec<Arc<dyn Observer>>) -> Option<Arc<dyn Observer>> {
    match observers.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(Arc::new(Several(observers))),
    }
}

#[derive(Debug)]
struct Several<T>(Vec<T>);

impl Observer for Several<Arc<dyn Observer>> {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        let all = self
            .0
            .iter()
            .filter_map(|observer| observer.request(request));
        Some(Arc::new(Several(all.collect::<Vec<_>>())))
    }

    fn session(&self, session: &ObservedSession<'_>) -> Option<Box<dyn SessionObserver>> {
        let all = self
            .0
            .iter()
            .filter_map(|observer| observer.session(session));
        Some(Box::new(Several(all.collect::<Vec<_>>())))
    }
}

impl RequestObserver for Several<Arc<dyn RequestObserver>> {
    fn end(&self, end: &RequestEnd) {
        self.0.iter().for_each(|observer| observer.end(end));
    }

    fn waits(&self, waits: bool) {
        self.0.iter().for_each(|observer| observer.waits(waits));
    }

    fn scope(self: Arc<Self>) -> Option<RequestScope> {
        let scopes = self
            .0
            .iter()
            .filter_map(|observer| observer.clone().scope());
        scopes.reduce(|outer, inner| {
            RequestScope::new(move |poll| outer.enter(&mut || inner.enter(poll)))
        })
    }

    fn trace_context(&self) -> Option<TraceContext> {
        self.0.iter().find_map(|observer| observer.trace_context())
    }
}

impl SessionObserver for Several<Box<dyn SessionObserver>> {
    fn end(self: Box<Self>, reason: &ConnectionError) {
        self.0.into_iter().for_each(|observer| observer.end(reason));
    }
}
