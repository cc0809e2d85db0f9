//! Operations, on their way to JavaScript's handlers.

use std::sync::Arc;

use mcpbolt::connection::{Batch, Call, CallKey, Handle};
use mcpbolt::error::ConnectionError;
use mcpbolt::handler::Executor;
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::Seal;

use crate::calls::{Arrived, Refused};
use crate::client::peer_json;
use crate::inbox::{Event, Farewell, Inbox};

/// Hands operations over to JavaScript, a turn's at once.
pub struct Handlers {
    pub inbox: Arc<Inbox>,
    pub handle: Handle,
    /// Signs what clients keep between the rounds of a call.
    pub seal: Option<Seal>,
    /// Dropped last, where the thread has nothing else to say.
    pub _farewell: Option<Farewell>,
}

impl Executor for Handlers {
    fn run(&mut self, batch: Batch) {
        let calls = batch.calls().filter_map(|call| self.begin(call));
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
    fn begin(&self, call: Call) -> Option<Arrived> {
        match Arrived::new(call, &self.handle, self.seal.as_ref()) {
            Ok(arrived) => Some(arrived),
            Err(Refused(reply, why)) => {
                let mut replies = self.handle.replies();
                replies.error(&reply, ErrorKind::InvalidParams, why, None);
                None
            }
        }
    }
}
