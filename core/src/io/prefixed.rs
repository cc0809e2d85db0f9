//! Messages that the program carries itself, as a byte stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length of a message, in bytes, before the message.
const PREFIX: usize = 4;

/// Messages as a byte stream with a length before each, which lets them contain newlines.
pub struct Prefixed<T> {
    transport: T,
    /// The rest of the length before `arrived`.
    prefix: Bytes,
    /// The rest of the message that has arrived last.
    arrived: Bytes,
    /// Output that is not a whole message yet.
    leaving: BytesMut,
}

impl<T> Prefixed<T> {
    pub fn new(transport: T) -> Self {
        Self {
            transport,
            prefix: Bytes::new(),
            arrived: Bytes::new(),
            leaving: BytesMut::new(),
        }
    }
}

impl<T, E> AsyncRead for Prefixed<T>
where
    T: Stream<Item = Result<Bytes, E>> + Unpin,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.prefix.is_empty() && this.arrived.is_empty() {
            match ready!(Pin::new(&mut this.transport).poll_next(cx)) {
                Some(Ok(message)) => {
                    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
                    this.prefix = Bytes::copy_from_slice(&length.to_be_bytes());
                    this.arrived = message;
                }
                Some(Err(_)) | None => return Poll::Ready(Ok(())),
            }
        }
        for part in [&mut this.prefix, &mut this.arrived] {
            let fits = part.len().min(into.remaining());
            into.put_slice(&part.split_to(fits));
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Sink<Bytes> + Unpin> Prefixed<T> {
    /// Passes whole messages on.
    ///
    /// # Errors
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) when the transport takes nothing more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((prefix, rest)) = self.leaving.split_first_chunk::<PREFIX>()
            && let length = u32::from_be_bytes(*prefix) as usize
            && rest.len() >= length
        {
            ready!(Pin::new(&mut self.transport).poll_ready(cx)).map_err(broken)?;
            self.leaving.advance(PREFIX);
            let message = self.leaving.split_to(length).freeze();
            Pin::new(&mut self.transport)
                .start_send(message)
                .map_err(broken)?;
        }
        Poll::Ready(Ok(()))
    }
}

fn broken<E>(_: E) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl<T: Sink<Bytes> + Unpin> AsyncWrite for Prefixed<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        this.leaving.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.transport).poll_flush(cx).map_err(broken)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.transport).poll_close(cx).map_err(broken)
    }
}
