//! The body of an answer, as hyper writes it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::events::Events;

/// What an [`HttpService`](super::HttpService) answers with: nothing, one message, or events that
/// go on until the request is answered.
///
/// # Cancel safety
/// Dropping it cancels a request that stands alone (R-CAN-06), and leaves a session.
pub struct HttpBody(Inner);

enum Inner {
    Whole(VecDeque<Bytes>),
    Events(Box<Events>),
}

impl HttpBody {
    pub(super) fn empty() -> Self {
        Self(Inner::Whole(VecDeque::new()))
    }

    pub(super) fn whole(pieces: VecDeque<Bytes>) -> Self {
        Self(Inner::Whole(pieces))
    }

    pub(super) fn events(events: Events) -> Self {
        Self(Inner::Events(Box::new(events)))
    }
}

impl std::fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Inner::Whole(_) => "HttpBody::Whole",
            Inner::Events(_) => "HttpBody::Events",
        })
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Inner::Whole(pieces) => pieces.pop_front(),
            Inner::Events(events) => std::task::ready!(events.poll_piece(cx)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Whole(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Inner::Events(_) => SizeHint::default(),
        }
    }
}
