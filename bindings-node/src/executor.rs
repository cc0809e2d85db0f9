//! Operations, on their way to JavaScript's handlers.

use std::sync::Arc;

use mcpbolt::connection::{Batch, CallKey, Handle};
use mcpbolt::error::ConnectionError;
use mcpbolt::handler::Executor;
use mcpbolt::server::{Seal, View};

use crate::calls::Arrived;
use crate::client::peer_json;
use crate::inbox::{Event, Farewell, Inbox};
use crate::offer::{Served, Templates};

/// Hands operations over to JavaScript, a turn's at once.
pub struct Handlers {
    inbox: Arc<Inbox>,
    handle: Handle,
    view: View<Templates>,
    /// Signs what clients keep between the rounds of a call.
    seal: Option<Seal>,
    /// Dropped last, where the thread has nothing else to say.
    _farewell: Option<Farewell>,
}

impl Executor for Handlers {
    fn run(&mut self, batch: Batch) {
        let registry = self.view.offer().registry.clone();
        let (handle, seal) = (&self.handle, self.seal.as_ref());
        let arrived = |call| Arrived::new(call, handle, seal, &registry);
        let calls = batch.calls().filter_map(arrived);
        self.inbox.push_calls(calls);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.inbox.cancel(key, reason);
    }

    fn initialized(&mut self) {
        self.inbox.push(Event::Initialized(peer_json(&self.handle)));
    }

    fn roots_changed(&mut self) {
        self.inbox.push(Event::RootsChanged);
    }

    fn closed(&mut self) {
        let reason = self.handle.close_reason().cloned();
        let reason = reason.unwrap_or(ConnectionError::ClosedLocally);
        self.inbox.push(Event::Closed(reason));
    }
}

impl Handlers {
    /// Those of what is served, on the connection of `handle`.
    pub fn new(
        served: &Served,
        handle: Handle,
        inbox: Arc<Inbox>,
        farewell: Option<Farewell>,
    ) -> Self {
        Self {
            inbox,
            handle,
            view: View::of(&served.live),
            seal: served.seal.clone(),
            _farewell: farewell,
        }
    }
}
