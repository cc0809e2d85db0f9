//! Who reads what was written on one stream of a session: the answer to a POST, or to a GET.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::events::{Encoder, Message, Source};
use super::log::Position;
use super::session::{Next, Reading, Session};
use crate::error::ConnectionError;

/// Leaves when it is dropped: what it has not read is kept for who comes back.
pub struct Reader {
    session: Arc<Session>,
    reading: Reading,
    /// What was found and is not yet written.
    held: Option<(Position, Next)>,
    greeting: Greeting,
    /// The session ends with the stream (R-LEG-06).
    is_session: bool,
}

/// How a stream begins.
pub enum Greeting {
    None,
    /// With a position to come back to (R-SSE-06).
    Position,
    /// With where messages are to be posted, in 2024-11-05.
    Endpoint(String),
}

/// What is said to a POST.
pub enum Said {
    /// Nothing, and nothing more will come.
    Nothing,
    /// The answer alone.
    Answer(Message),
    /// More than that.
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

    /// What is said to a POST, once anything is.
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

    /// From here on a client may come back.
    pub fn begin(mut self, greeting: Greeting) -> Self {
        self.session.keep(self.reading);
        self.is_session = matches!(greeting, Greeting::Endpoint(_));
        self.greeting = greeting;
        self
    }
}

/// The engine writes `method` right behind the version, where there is no id.
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
