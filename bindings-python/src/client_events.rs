//! Events of a client's connection, for the event loop's thread.

use std::sync::Arc;

use mcpbolt::error::RequestError;

use crate::inbox::Inbox;
use crate::operation::Outcome;

/// One event of a client's connection.
pub enum ClientEvent {
    /// The connection is open, or opening it has failed.
    Opened,
    /// An operation may have its outcome and must be polled.
    Done(u64),
    /// The outcome of an operation; it comes after the operation's progress reports.
    Outcome(u64, Box<Result<Outcome, RequestError>>),
    /// Progress of a request: the progress, the total and a message.
    Progress(u64, f64, Option<f64>, Option<String>),
    /// The state of a task, or a part of an action's answer, as JSON.
    State(u64, String),
    /// A notification of the server: the method and the params.
    Notice(String, String),
    /// A question of the server: its number, its kind and its params.
    Asked(u64, &'static str, String),
    /// The server no longer waits for the answer to that question.
    GivenUp(u64),
    /// A line that the server's process wrote to its stderr.
    Stderr(String),
    /// The connection is over, and nothing more comes.
    Ended,
}

impl ClientEvent {
    /// The number of the operation that this event belongs to.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Done(number)
            | Self::Outcome(number, _)
            | Self::Progress(number, ..)
            | Self::State(number, _) => Some(*number),
            _ => None,
        }
    }
}

/// Reports the end of the connection when dropped. The connection's host holds it, so that the event loop
/// learns of the end even if the engine's thread panics.
pub struct Ending(pub Arc<Inbox<ClientEvent>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.extend([ClientEvent::Opened, ClientEvent::Ended]);
    }
}
