//! The trait of transports that carry whole messages to a server and back without blocking on either side.

use std::time::Duration;

use anyhow::Result;

pub trait Carrier {
    /// Queues one message, written by `write`.
    fn queue(&mut self, write: &mut dyn FnMut(&mut Vec<u8>));

    /// Sends and receives what is possible, waiting at most `wait` for an event, and passes every whole
    /// received message to `on`.
    ///
    /// # Errors
    /// If the server is gone, or sent something that is not a message.
    fn turn(&mut self, wait: Duration, on: &mut dyn FnMut(&[u8])) -> Result<()>;
}
