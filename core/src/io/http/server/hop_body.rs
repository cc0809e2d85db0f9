//! The body of a request on its way to another worker, which may have to be served here after all.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;

use crate::sync::lock;

/// Longest body of which a copy is kept.
pub(super) const MAX_COPIED_BYTES: usize = 64 << 10;

/// A body as it comes from the client, with its copy, or once more.
#[derive(Debug)]
pub enum HopBody {
    Coming(Incoming, Option<KeptBody>),
    Again(Full<Bytes>),
}

/// A copy of a body, as far as it was sent.
#[derive(Clone, Debug, Default)]
pub struct KeptBody(Arc<Mutex<Copied>>);

#[derive(Debug, Default)]
struct Copied {
    bytes: Vec<u8>,
    is_whole: bool,
    is_too_long: bool,
}

impl KeptBody {
    /// The body, if all of it was sent and it is short.
    pub fn again(&self) -> Option<HopBody> {
        let mut copied = lock(&self.0);
        let is_there = copied.is_whole && !copied.is_too_long;
        is_there.then(|| HopBody::Again(Full::new(std::mem::take(&mut copied.bytes).into())))
    }

    fn copy(&self, piece: &[u8]) {
        let mut copied = lock(&self.0);
        if copied.bytes.len() + piece.len() > MAX_COPIED_BYTES {
            copied.is_too_long = true;
            copied.bytes = Vec::new();
        } else if !copied.is_too_long {
            copied.bytes.extend_from_slice(piece);
        }
    }
}

impl HopBody {
    /// A body that comes from the client, and its copy if there is to be one.
    pub fn coming(body: Incoming, keeps: bool) -> (Self, Option<KeptBody>) {
        let kept = keeps.then(KeptBody::default);
        if let Some(kept) = &kept {
            // An empty body is not asked for anything.
            lock(&kept.0).is_whole = body.is_end_stream();
        }
        (Self::Coming(body, kept.clone()), kept)
    }
}

impl Body for HopBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Coming(body, kept) => {
                let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
                if let Some(kept) = kept {
                    if let Some(Ok(piece)) = &frame
                        && let Some(piece) = piece.data_ref()
                    {
                        kept.copy(piece);
                    }
                    // A body whose length is known is not asked for its end.
                    if frame.is_none() || body.is_end_stream() {
                        lock(&kept.0).is_whole = true;
                    }
                }
                Poll::Ready(frame)
            }
            Self::Again(body) => Pin::new(body)
                .poll_frame(cx)
                .map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Coming(body, _) => body.is_end_stream(),
            Self::Again(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Coming(body, _) => body.size_hint(),
            Self::Again(body) => body.size_hint(),
        }
    }
}
