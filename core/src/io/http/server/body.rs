//! The body of a response, for hyper to write.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

#[cfg(feature = "compression")]
use super::gzip::Gzip;
use super::media::MediaType;
use super::sse::SseEvents;
use crate::io::http::message_bytes::MessageBytes;

/// Answers shorter than this gain nothing from compression.
#[cfg(feature = "compression")]
const LEAST_BYTES: u64 = 1024;

/// The response body of an [`HttpService`](crate::io::http::HttpService): empty, one message, or events until the
/// request is answered.
///
/// # Cancel safety
/// Dropping the body cancels a request that stands alone (R-CAN-06). A request of a session runs on.
pub struct HttpBody {
    inner: Inner,
    kind: Option<MediaType>,
}

enum Inner {
    Whole(smallvec::IntoIter<[Bytes; 1]>),
    #[cfg(feature = "compression")]
    Gzip(Box<Gzip>),
    Events(Box<SseEvents>),
    /// The events were taken out; another writer sends them.
    Elsewhere,
}

impl HttpBody {
    pub(super) fn empty() -> Self {
        Self {
            inner: Inner::Whole(MessageBytes::new().into_iter()),
            kind: None,
        }
    }

    pub(super) fn whole(kind: MediaType, pieces: MessageBytes) -> Self {
        Self {
            inner: Inner::Whole(pieces.into_iter()),
            kind: Some(kind),
        }
    }

    /// A text of any type, which a header names.
    #[cfg(feature = "consent-proxy")]
    pub(super) fn text(text: bytes::Bytes) -> Self {
        Self {
            inner: Inner::Whole(MessageBytes::from_iter([text]).into_iter()),
            kind: None,
        }
    }

    pub(super) fn events(events: SseEvents) -> Self {
        Self {
            inner: Inner::Events(Box::new(events)),
            kind: Some(MediaType::Events),
        }
    }

    /// The type of its content; `None` if it is empty.
    pub(super) fn kind(&self) -> Option<MediaType> {
        self.kind
    }

    /// Takes the events, if the body consists of events, for another writer; the body then stays
    /// pending.
    pub(super) fn take_events(&mut self) -> Option<Box<SseEvents>> {
        match std::mem::replace(&mut self.inner, Inner::Elsewhere) {
            Inner::Events(events) => Some(events),
            other => {
                self.inner = other;
                None
            }
        }
    }
}

#[cfg(feature = "compression")]
impl HttpBody {
    /// Compresses the body if it is whole and not short. Returns whether it did.
    pub(super) fn compress(&mut self) -> bool {
        let long = self
            .size_hint()
            .exact()
            .is_some_and(|len| len >= LEAST_BYTES);
        match &mut self.inner {
            Inner::Whole(pieces) if long => {
                let pieces = std::mem::replace(pieces, MessageBytes::new().into_iter());
                self.inner = Inner::Gzip(Box::new(Gzip::new(pieces)));
                true
            }
            _ => false,
        }
    }
}

impl std::fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.inner {
            Inner::Whole(_) => "HttpBody::Whole",
            #[cfg(feature = "compression")]
            Inner::Gzip(_) => "HttpBody::Gzip",
            Inner::Events(_) => "HttpBody::Events",
            Inner::Elsewhere => "HttpBody::Elsewhere",
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
        let piece = match &mut self.inner {
            Inner::Whole(pieces) => pieces.next(),
            #[cfg(feature = "compression")]
            Inner::Gzip(gzip) => std::task::ready!(gzip.poll_piece(cx)),
            Inner::Events(events) => std::task::ready!(events.poll_piece(cx)),
            Inner::Elsewhere => return Poll::Pending,
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.inner, Inner::Whole(pieces) if pieces.as_slice().is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(pieces) => SizeHint::with_exact(
                pieces
                    .as_slice()
                    .iter()
                    .map(|piece| piece.len() as u64)
                    .sum(),
            ),
            #[cfg(feature = "compression")]
            Inner::Gzip(_) => SizeHint::default(),
            Inner::Events(_) | Inner::Elsewhere => SizeHint::default(),
        }
    }
}
