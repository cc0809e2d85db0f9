//! What the thread of a client's event loop is told.

use std::sync::Arc;

use mcpbolt::error::RequestError;

use crate::inbox::Inbox;
use crate::work::Made;

/// One thing that it is told.
#[derive(Debug)]
pub enum News {
    /// The opening has come to its end, one way or the other.
    Opened,
    /// The outcome of something under way is there.
    Done(u64),
    /// What became of something that may have told of its progress before.
    Outcome(u64, Box<Result<Made, RequestError>>),
    /// A request makes progress: how far, of how much, and a sentence.
    Progress(u64, f64, Option<f64>, Option<String>),
    /// How far a task is, in JSON.
    State(u64, String),
    /// A notification of the server's: the method and the params.
    Notice(String, String),
    /// The server asks something: what, and its params.
    Asked(u64, &'static str, String),
    /// The server waits for that answer no longer.
    GivenUp(u64),
    /// A line that the server's process wrote to its stderr.
    Stderr(String),
    /// The connection is over, and nothing more comes.
    Ended,
}

/// However the engine's thread ends, the interpreter learns it: held by what ends with it.
pub struct Ending(pub Arc<Inbox<News>>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.extend([News::Opened, News::Ended]);
    }
}
