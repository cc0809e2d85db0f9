//! Operations, on their way to JavaScript's handlers.

use std::sync::Arc;

use mcpbolt::connection::{Batch, CallKey};
use mcpbolt::handler::Executor;

use crate::inbox::{Event, Farewell, Inbox};

/// Hands operations over to JavaScript, a turn's at once.
pub struct Handlers {
    pub inbox: Arc<Inbox>,
    /// Dropped last, where the thread has nothing else to say.
    pub _farewell: Option<Farewell>,
}

impl Executor for Handlers {
    fn run(&mut self, batch: Batch) {
        self.inbox.push_calls(&batch);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.inbox.cancel(key, reason);
    }

    fn initialized(&mut self) {
        self.inbox.push(Event::Initialized);
    }
}
