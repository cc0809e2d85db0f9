//! Reads the messages of one stream of a session: the response body of a POST or a GET.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::events::{Encoder, Message, Source};
use super::log::Position;
use super::session::{Next, Reading, Session};
use crate::error::ConnectionError;

/// Detaches itself when dropped; unread messages are kept for a client that reconnects.
pub struct Reader {
    session: Arc<Session>,
    reading: Reading,
    /// A message that was taken from the session but is not written yet.
    held: Option<(Position, Next)>,
    greeting: Greeting,
    /// Dropping this reader ends the session (R-LEG-06).
    is_session: bool,
}

/// The first event of a stream.
pub enum Greeting {
    None,
    /// A position to reconnect to (R-SSE-06).
    Position,
    /// The URI to POST messages to, in revision 2024-11-05.
    Endpoint(String),
}

/// The kind of answer to a POST.
pub enum Said {
    /// No answer, and none will come.
    Nothing,
    /// Only the answer.
    Answer(Message),
    /// Other messages beside the answer: a stream of events.
    Stream,
}

impl Reader {
    pub fn new(session: Arc<Session>, reading: Reading) -> Self {
        Self {
            session,
            reading,
            held: None,
            greeting: Greeting::None,
            is_session: false,
        }
    }

    /// Waits for the first message of a POST and tells the kind of answer.
    pub async fn said(&mut self) -> Said {
        let found = poll_fn(|cx| self.session.poll_read(self.reading, cx)).await;
        match &found.1 {
            Next::End => return Said::Nothing,
            Next::Message(message)
                if !is_notification(message) && self.session.is_at_end(self.reading) =>
            {
                return Said::Answer(message.clone());
            }
            _ => {}
        }
        self.held = Some(found);
        Said::Stream
    }

    /// Begins the stream; from here on a client may reconnect.
    pub fn begin(mut self, greeting: Greeting) -> Self {
        self.session.keep(self.reading);
        self.is_session = matches!(greeting, Greeting::Endpoint(_));
        self.greeting = greeting;
        self
    }
}

/// Whether a message is a notification: the engine writes `method` directly after the version if there
/// is no id.
fn is_notification(message: &Message) -> bool {
    let head = message.first().map_or(&[][..], |piece| piece);
    head.starts_with(b"{\"jsonrpc\":\"2.0\",\"method\"")
}

impl Source for Reader {
    fn poll_events(&mut self, encoder: &mut Encoder, cx: &mut Context<'_>) -> Poll<()> {
        match std::mem::replace(&mut self.greeting, Greeting::None) {
            Greeting::None => {}
            Greeting::Position => encoder.position(Position {
                stream: self.reading.stream,
                read: 0,
            }),
            Greeting::Endpoint(uri) => encoder.endpoint(&uri),
        }
        while !encoder.is_full() {
            let (position, next) = match self.held.take() {
                Some(held) => held,
                None => std::task::ready!(self.session.poll_read(self.reading, cx)),
            };
            match next {
                Next::Message(message) => encoder.event(Some(position), &message),
                Next::Retry(retry) => {
                    encoder.retry(retry);
                    encoder.position(position);
                    return Poll::Ready(());
                }
                Next::End => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.leave(self.reading);
        if self.is_session {
            self.session.close(ConnectionError::ClosedByPeer);
        }
    }
}
