//! Reads the messages of one log of a session: the response body of a POST or a GET.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::session::{HttpSession, LogEvent};
use super::session_logs::LogReader;
use super::sse::{SseEncoder, SseSource};
use crate::error::ConnectionError;

/// Detaches itself when dropped; unread messages are kept for a client that reconnects.
pub struct SessionReader {
    session: Arc<HttpSession>,
    log: LogReader,
    first: Option<FirstEvent>,
    /// Dropping this reader ends the session (R-LEG-06).
    is_session: bool,
}

/// An event before the messages of a stream.
pub enum FirstEvent {
    /// A position to reconnect to (R-SSE-06).
    Position,
    /// The URI to POST messages to, in revision 2024-11-05.
    Endpoint(String),
}

impl SessionReader {
    pub fn new(session: Arc<HttpSession>, log: LogReader) -> Self {
        Self {
            session,
            log,
            first: None,
            is_session: false,
        }
    }

    /// Begins the stream; from here on a client may reconnect.
    pub fn begin(mut self, first: Option<FirstEvent>) -> Self {
        self.session.keep(self.log);
        self.is_session = matches!(first, Some(FirstEvent::Endpoint(_)));
        self.first = first;
        self
    }
}

impl SseSource for SessionReader {
    fn poll_events(&mut self, encoder: &mut SseEncoder, cx: &mut Context<'_>) -> Poll<()> {
        match self.first.take() {
            None => {}
            Some(FirstEvent::Position) => {
                encoder.position(self.session.position(self.log.stream, 0));
            }
            Some(FirstEvent::Endpoint(uri)) => encoder.endpoint(&uri),
        }
        while !encoder.is_full() {
            let (position, event) = std::task::ready!(self.session.poll_read(self.log, cx));
            match event {
                LogEvent::Message(message) => encoder.event(Some(position), &message),
                LogEvent::Retry(retry) => {
                    encoder.retry(retry);
                    encoder.position(position);
                    return Poll::Ready(());
                }
                LogEvent::End => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

impl Drop for SessionReader {
    fn drop(&mut self) {
        self.session.leave(self.log);
        if self.is_session {
            self.session.close(ConnectionError::ClosedByPeer);
        }
    }
}
