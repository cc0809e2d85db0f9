//! Operations, on their way to JavaScript's handlers.

use std::sync::Arc;

use mcpbolt::connection::{Batch, CallKey};
use mcpbolt::handler::Executor;

use crate::inbox::{Event, Inbox};

/// Hands operations over to JavaScript, a turn's at once.
pub struct Handlers(pub Arc<Inbox>);

impl Executor for Handlers {
    fn run(&mut self, batch: Batch) {
        self.0.push_calls(&batch);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.0.cancel(key, reason);
    }

    fn initialized(&mut self) {
        self.0.push(Event::Initialized);
    }
}
