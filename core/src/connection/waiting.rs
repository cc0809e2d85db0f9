//! Requests of one stream that have not begun.

use std::collections::VecDeque;

use crate::correlate::{InFlight, IncomingKey};
use crate::limits::WAITING_REQUEST_BYTES;
use crate::mcp::{Method, Revision};
use crate::message::Message;

/// A request that has not begun.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub message: Message,
    pub method: Option<Method>,
    pub revision: Revision,
}

impl Waiting {
    /// Bytes that the request counts against the cap of waiting requests.
    pub fn cost(&self) -> usize {
        cost(self.message.as_ref().bytes().len())
    }
}

/// Bytes that a request of this length counts against the cap of waiting requests.
pub(super) fn cost(frame_len: usize) -> usize {
    frame_len + WAITING_REQUEST_BYTES
}

/// The requests of one stream that have not begun, in the order of arrival. Their messages are in the
/// table of requests in flight, so that their ids count as taken.
#[derive(Debug, Default)]
pub(crate) struct WaitingQueue {
    /// May still contain cancelled requests.
    keys: VecDeque<IncomingKey>,
    len: usize,
    bytes: usize,
}

impl WaitingQueue {
    /// Whether no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the waiting requests hold.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, key: IncomingKey, cost: usize) {
        self.keys.push_back(key);
        self.len += 1;
        self.bytes += cost;
    }

    /// Takes the request that came first; it may be cancelled.
    pub fn pop(&mut self) -> Option<IncomingKey> {
        self.keys.pop_front()
    }

    /// Subtracts a request that was removed from the table or begins.
    pub fn subtract(&mut self, request: &Waiting) {
        self.len -= 1;
        self.bytes -= request.cost();
    }

    /// Drops cancelled requests, so that they do not pile up.
    #[inline]
    pub fn tidy<I, D>(&mut self, table: &InFlight<I, D>) {
        if self.keys.len() > 2 * self.len + 64 {
            self.keys.retain(|key| table.get(*key).is_some());
        }
    }
}
