//! What carries whole messages to a server and back, never blocking on either.

use std::time::Duration;

use anyhow::Result;

pub trait Carrier {
    /// Queues one message, written by `write`.
    fn queue(&mut self, write: &mut dyn FnMut(&mut Vec<u8>));

    /// Moves what can be moved, waiting at most `wait` for something to happen, and hands every
    /// whole message that came to `on`.
    ///
    /// # Errors
    /// The server is gone, or what came is no message.
    fn turn(&mut self, wait: Duration, on: &mut dyn FnMut(&[u8])) -> Result<()>;
}
