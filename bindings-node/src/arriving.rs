//! The body of a request, as JavaScript passes it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::inbox::{Event, Inbox};
use crate::kinds::Inbound;

/// Once this much memory of a body waits for the engine, JavaScript pauses.
pub const MAX_WAITING: usize = 1 << 20;
/// The memory of a piece besides its bytes.
pub const PIECE_BYTES: usize = 64;

/// A body that ends when the sender of its pieces is dropped.
pub struct Arriving {
    pub pieces: UnboundedReceiver<Bytes>,
    /// The memory of the pieces in the channel.
    pub waiting: Arc<AtomicUsize>,
    pub number: u32,
    pub inbox: Arc<Inbox>,
}

impl Body for Arriving {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.poll_recv(cx);
        if let Poll::Ready(Some(piece)) = &piece {
            let cost = piece.len() + PIECE_BYTES;
            let before = self.waiting.fetch_sub(cost, Ordering::Relaxed);
            if before >= MAX_WAITING && before - cost < MAX_WAITING {
                let room = Event::row(Inbound::Room, self.number, 0, String::new());
                self.inbox.push(room);
            }
        }
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
