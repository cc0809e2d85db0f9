//! The application's side of a client: it offers the server nothing and passes on what it is told.

use std::sync::Arc;

use mcpbolt::connection::{Answer, Batch, CallKey, Disposition, Host, Incoming};
use mcpbolt::error::{ConnectionError, RequestError};
use mcpbolt::mcp::{ErrorKind, Method};
use mcpbolt::message::{Message, MessageRef};

use crate::inbox::Inbox;

/// What the thread of the event loop is told.
#[derive(Debug)]
pub enum News {
    /// The opening has come to its end, one way or the other.
    Opened,
    /// The answer to a request is there.
    Answered(u64),
    /// What became of a request whose answer was there at once.
    Outcome(u64, Result<Message, RequestError>),
    /// A request makes progress: how far, of how much, and a sentence.
    Progress(u64, f64, Option<f64>, Option<String>),
    /// A log message of the server's.
    Log(Message),
    /// A line that the server's process wrote to its stderr.
    Stderr(String),
    /// The connection is over, and nothing more comes.
    Ended,
}

/// Passes on what a server says on its own account.
pub struct ClientHost(pub Arc<Inbox<News>>);

impl Host for ClientHost {
    fn request(&mut self, request: Incoming<'_>, answer: Answer<'_>) -> Disposition {
        let name = request.message.method().unwrap_or_default();
        answer.error(
            ErrorKind::MethodNotFound,
            &format!("no method {name:?} here"),
            None,
        )
    }

    fn dispatch(&mut self, _batch: Batch) {}

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}

    fn notification(&mut self, message: MessageRef<'_>) {
        let method = message.method().and_then(|name| Method::parse(&name));
        if method == Some(Method::LogMessage) {
            self.0.push(News::Log(message.detach()));
        }
    }

    fn closed(&mut self, _reason: &ConnectionError) {
        self.0.push(News::Opened);
    }
}

/// However the engine's thread ends, the interpreter learns it.
impl Drop for ClientHost {
    fn drop(&mut self) {
        self.0.extend([News::Opened, News::Ended]);
    }
}
