//! The body of a response on this crate's own listeners.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::body::HttpBody;
#[cfg(unix)]
use super::hop::Relayed;

/// The body of a response: of this process, or of another worker. Only the second one can break off.
pub enum Carried {
    Own(HttpBody),
    #[cfg(unix)]
    Relayed(Box<Relayed>),
}

impl Body for Carried {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Own(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Poll::Ready(frame.map(|frame| frame.map_err(|never| match never {})))
            }
            #[cfg(unix)]
            Self::Relayed(relayed) => Pin::new(relayed).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            #[cfg(unix)]
            Self::Relayed(relayed) => relayed.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            #[cfg(unix)]
            Self::Relayed(relayed) => relayed.size_hint(),
        }
    }
}
