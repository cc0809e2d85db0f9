//! What JavaScript's thread has for the engine's: where a runtime drives the connections, one
//! wake-up for all that was said in a tick, to however many clients.

use std::sync::{Arc, Mutex, PoisonError};

use mcpbolt::connection::Replies;
use tokio::runtime::Handle;

/// What is on its way to those who drive the connections, in order.
#[derive(Default)]
pub struct Outbox(Mutex<Vec<Replies>>);

impl Outbox {
    /// Hands over what was said: soon, by the runtime, which wakes its own tasks without a system
    /// call.
    pub fn send(self: &Arc<Self>, replies: Vec<Replies>, runtime: &Handle) {
        if replies.is_empty() {
            return;
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = !waiting.is_empty();
        waiting.extend(replies);
        drop(waiting);
        if !is_known {
            let outbox = self.clone();
            runtime.spawn(async move { outbox.flush() });
        }
    }

    /// Hands over what waits. Nobody else does meanwhile: order is kept.
    pub fn flush(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is dropped is submitted.
        waiting.clear();
    }
}
