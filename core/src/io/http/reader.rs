//! Who reads what was written on one stream of a session: the answer to a POST, or to a GET.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::events::{Encoder, Message, Source};
use super::log::Position;
use super::session::{Reading, Session};

/// Leaves when it is dropped: what it has not read is kept for who comes back.
pub struct Reader {
    session: Arc<Session>,
    reading: Reading,
    /// What was read and is not yet written.
    held: Option<(Position, Message)>,
    /// The stream begins with a position to come back to (R-SSE-06).
    primed: bool,
}

/// What is said to a POST.
pub enum Said {
    /// Nothing, and nothing more will come.
    Nothing,
    /// The answer alone.
    Answer(Message),
    /// A message that is not all there will be.
    First,
}

impl Reader {
    pub fn new(session: Arc<Session>, reading: Reading) -> Self {
        Self {
            session,
            reading,
            held: None,
            primed: false,
        }
    }

    /// What is said to a POST, once anything is.
    pub async fn said(&mut self) -> Said {
        let next = poll_fn(|cx| self.session.poll_read(self.reading, cx)).await;
        let Some((position, message)) = next else {
            return Said::Nothing;
        };
        let rest = &mut Context::from_waker(Waker::noop());
        if !is_notification(&message)
            && let Poll::Ready(None) = self.session.poll_read(self.reading, rest)
        {
            return Said::Answer(message);
        }
        self.held = Some((position, message));
        Said::First
    }

    /// From here on a client may come back.
    pub fn begin(mut self, primed: bool) -> Self {
        self.session.keep(self.reading);
        self.primed = primed;
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
        if std::mem::take(&mut self.primed) {
            encoder.position(Position {
                stream: self.reading.stream,
                read: 0,
            });
        }
        if let Some((position, message)) = self.held.take() {
            encoder.event(Some(position), &message);
        }
        while let Some((position, message)) =
            std::task::ready!(self.session.poll_read(self.reading, cx))
        {
            encoder.event(Some(position), &message);
        }
        Poll::Ready(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.leave(self.reading);
    }
}
