//! The queue from JavaScript's thread to a runtime that drives the connections: one wake-up for everything
//! that was submitted in a tick, to any number of clients.

use std::sync::{Arc, Mutex, PoisonError};

use mcpbolt::connection::Replies;
use tokio::runtime::Handle;

/// Replies on their way to the connections, in order.
#[derive(Default)]
pub struct Outbox(Mutex<Vec<Replies>>);

impl Outbox {
    /// Sends replies soon, on the runtime, which wakes its own tasks without a system call.
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

    /// Sends the waiting replies. Holds the lock meanwhile, which keeps their order.
    pub fn flush(&self) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping replies submits them.
        waiting.clear();
    }
}
