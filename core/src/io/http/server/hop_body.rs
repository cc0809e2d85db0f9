//! The body of a request on its way to another worker, which may have to be served here after all.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;

use crate::connection::{Budget, Held};
use crate::sync::lock;

/// Longest body of which a copy is kept while its owner serves: the copy is needed only if the owner ends just then.
pub(super) const MAX_COPIED_BYTES: usize = 64 << 10;

/// The bounds of copies, for owners that were replaced and leave most requests to others.
#[derive(Clone, Debug)]
pub struct CopyBounds {
    /// Longest body of which a copy is kept.
    pub each: usize,
    /// The budget of copies that are longer than [`MAX_COPIED_BYTES`].
    pub all: Arc<Budget>,
}

impl CopyBounds {
    /// The bounds for an owner that serves.
    pub fn of_serving(&self) -> Self {
        let each = self.each.min(MAX_COPIED_BYTES);
        Self {
            each,
            ..self.clone()
        }
    }
}

/// A body as it comes from the client, with its copy, or once more.
#[derive(Debug)]
pub enum HopBody {
    Coming(Incoming, KeptBody),
    Again(Full<Bytes>),
}

/// A copy of a body, as far as it was sent.
#[derive(Clone, Debug)]
pub struct KeptBody(Arc<Mutex<Copied>>);

#[derive(Debug)]
struct Copied {
    bytes: Vec<u8>,
    /// The copy, once it is sent.
    again: Option<Bytes>,
    is_whole: bool,
    is_too_long: bool,
    bounds: CopyBounds,
    held: Held,
}

impl KeptBody {
    /// The body, if all of it was sent and it is short enough.
    pub fn again(&self) -> Option<HopBody> {
        let mut copied = lock(&self.0);
        if !copied.is_whole || copied.is_too_long {
            return None;
        }
        let Copied {
            bytes,
            bounds,
            held,
            again,
            ..
        } = &mut *copied;
        let again = again.get_or_insert_with(|| {
            let bytes = std::mem::take(bytes);
            let len = bytes.len();
            let counted = bounds.all.counted(bytes.into(), len);
            held.carry(0);
            counted
        });
        Some(HopBody::Again(Full::new(again.clone())))
    }

    fn copy(&self, piece: &[u8]) {
        let mut copied = lock(&self.0);
        if copied.is_too_long {
            return;
        }
        let len = copied.bytes.len() + piece.len();
        let most = copied.bounds.each;
        if len > most || len > MAX_COPIED_BYTES && !copied.held.try_carry(len) {
            copied.is_too_long = true;
            copied.bytes = Vec::new();
            copied.held.carry(0);
        } else {
            copied.bytes.extend_from_slice(piece);
        }
    }
}

impl HopBody {
    /// A body that comes from the client, and its copy.
    pub fn copied(body: Incoming, bounds: CopyBounds) -> (Self, KeptBody) {
        let kept = KeptBody(Arc::new(Mutex::new(Copied {
            bytes: Vec::new(),
            again: None,
            // An empty body is not asked for anything.
            is_whole: body.is_end_stream(),
            is_too_long: false,
            held: Held::of(&bounds.all),
            bounds,
        })));
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
                if let Some(Ok(piece)) = &frame
                    && let Some(piece) = piece.data_ref()
                {
                    kept.copy(piece);
                }
                // A body whose length is known is not asked for its end.
                if frame.is_none() || body.is_end_stream() {
                    lock(&kept.0).is_whole = true;
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
