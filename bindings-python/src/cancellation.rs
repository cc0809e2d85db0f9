//! Tells the event loop that a call is cancelled which runs as an MCP task and is answered already.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use mcpbolt::connection::CallKey;
use mcpbolt::correlate::Cancelled;
use mcpbolt::server;

use crate::hub::Event;
use crate::session::Session;

/// Has the event loop told when the call is cancelled; keep the returned future for that. If it is cancelled
/// already, tells it at once and returns `None`.
pub fn watch(session: &Arc<Session>, key: CallKey, context: &server::Context) -> Option<Cancelled> {
    let mut cancelled = context.cancel_token().cancelled();
    let session = session.clone();
    let waker = Waker::from(Arc::new(CancellationWaker { session, key }));
    let polled = Pin::new(&mut cancelled).poll(&mut Context::from_waker(&waker));
    if polled.is_ready() {
        waker.wake();
        return None;
    }
    Some(cancelled)
}

/// The waker that tells the event loop that a call is cancelled.
struct CancellationWaker {
    session: Arc<Session>,
    key: CallKey,
}

impl Wake for CancellationWaker {
    fn wake(self: Arc<Self>) {
        let hub = &self.session.hub;
        hub.inbox
            .push(Event::Cancelled(self.session.clone(), self.key));
    }
}
