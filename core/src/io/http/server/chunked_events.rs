//! Writes the rest of a response whose events may come for hours, as HTTP/1.1 chunks. It holds no
//! buffers while there is nothing to write.

use std::future::Future;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::sse::SseEvents;
use crate::buffer::Output;

/// Bytes that a client may send while it reads; it was told that none of them are answered.
const UNHEARD_BYTES: usize = 64 << 10;

/// Bytes waiting to be written above which no further events are requested.
const WAITING_BYTES: usize = 64 << 10;

/// Maximum number of slices in one write.
const SLICES: usize = 16;

/// Completes when the events end, or when the client is gone.
pub struct ChunkedEvents<S> {
    stream: S,
    events: Box<SseEvents>,
    /// Chunks that are not written yet.
    out: Output,
    /// The last chunk is in `out`, or is written.
    over: bool,
    /// How many more bytes are read and discarded.
    unheard: usize,
}

impl<S> ChunkedEvents<S> {
    /// The head is already written to the stream.
    pub fn new(stream: S, events: Box<SseEvents>) -> Self {
        Self {
            stream,
            events,
            out: Output::new(),
            over: false,
            unheard: UNHEARD_BYTES,
        }
    }

    fn chunk(&mut self, piece: Bytes) {
        self.out.append_with(|tail| {
            // Writing to memory cannot fail.
            let _ = write!(tail, "{:x}\r\n", piece.len());
        });
        self.out.push(piece);
        self.out.append(b"\r\n");
    }

    fn gather(&mut self, cx: &mut Context<'_>) {
        while !self.over && self.out.len() < WAITING_BYTES {
            match self.events.poll_piece(cx) {
                // An empty chunk would end the body.
                Poll::Ready(Some(piece)) if piece.is_empty() => {}
                Poll::Ready(Some(piece)) => self.chunk(piece),
                Poll::Ready(None) => {
                    self.out.append(b"0\r\n\r\n");
                    self.over = true;
                }
                Poll::Pending => return,
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ChunkedEvents<S> {
    /// `Ready` when the client is gone, or has sent too much.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut passed = [0; 512];
        loop {
            let mut passed = ReadBuf::new(&mut passed);
            let outcome = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut passed));
            let read = passed.filled().len();
            match self.unheard.checked_sub(read) {
                Some(unheard) if outcome.is_ok() && read > 0 => self.unheard = unheard,
                _ => return Poll::Ready(()),
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.gather(cx);
            if self.out.is_empty() {
                // Frees the buffers: the next event may be an hour away.
                self.out = Output::new();
                ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
                return match self.over {
                    true => Pin::new(&mut self.stream).poll_shutdown(cx),
                    false => Poll::Pending,
                };
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let used = self.out.io_slices(&mut slices);
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write_vectored(cx, &slices[..used]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.out.advance(written),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for ChunkedEvents<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A client that disconnects is not an error of the server.
        match self.poll_gone(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => self.poll_write(cx).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use smallvec::smallvec;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::sse::{SseEncoder, SseSource};
    use super::*;

    /// That many messages, one at a time, of growing length.
    struct Growing(usize);

    impl SseSource for Growing {
        fn poll_events(&mut self, encoder: &mut SseEncoder, _: &mut Context<'_>) -> Poll<()> {
            let Some(left) = self.0.checked_sub(1) else {
                return Poll::Ready(());
            };
            self.0 = left;
            encoder.event(None, &smallvec![vec![b'x'; left * 5000].into()]);
            Poll::Pending
        }
    }

    /// The content of chunks, after which nothing follows.
    fn joined(mut chunked: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let line = chunked.iter().position(|byte| *byte == b'\r').unwrap();
            let len = std::str::from_utf8(&chunked[..line]).unwrap();
            let len = usize::from_str_radix(len, 16).unwrap();
            let chunk = &chunked[line + 2..];
            assert_eq!(&chunk[len..len + 2], b"\r\n");
            all.extend_from_slice(&chunk[..len]);
            chunked = &chunk[len + 2..];
            if len == 0 {
                assert!(chunked.is_empty());
                return all;
            }
        }
    }

    /// R-SSE-01: long messages, written in many small pieces, arrive whole and in order.
    #[tokio::test]
    async fn events_are_chunks_to_the_last() {
        let (stream, mut far) = tokio::io::duplex(777);
        let events = SseEvents::new(Growing(20), Duration::from_secs(60));
        let writer = tokio::spawn(ChunkedEvents::new(stream, Box::new(events)));
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        writer.await.unwrap();
        let mut expected = SseEncoder::default();
        for left in (0..20).rev() {
            expected.event(None, &smallvec![vec![b'x'; left * 5000].into()]);
        }
        let expected: Vec<u8> = expected.finish().into_iter().flatten().collect();
        assert!(joined(&read) == expected);
    }

    /// Counts the messages that it has given; has no end.
    struct Endless(Arc<AtomicUsize>);

    impl SseSource for Endless {
        fn poll_events(&mut self, encoder: &mut SseEncoder, cx: &mut Context<'_>) -> Poll<()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            encoder.event(None, &smallvec![vec![b'x'; 5000].into()]);
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_written_little() {
        let (stream, far) = tokio::io::duplex(777);
        let given = Arc::<AtomicUsize>::default();
        let events = SseEvents::new(Endless(given.clone()), Duration::from_secs(60));
        let mut writer = std::pin::pin!(ChunkedEvents::new(stream, Box::new(events)));
        std::future::poll_fn(|cx| {
            for _ in 0..1000 {
                assert!(writer.as_mut().poll(cx).is_pending());
            }
            Poll::Ready(())
        })
        .await;
        let bytes = given.load(Ordering::SeqCst) * 5000;
        assert!((777..=4 * WAITING_BYTES).contains(&bytes), "{bytes}");
        drop(far);
    }

    #[tokio::test]
    async fn a_client_that_is_not_heard_says_little() {
        let (stream, mut far) = tokio::io::duplex(777);
        let events = SseEvents::new(Silent, Duration::from_secs(60));
        let writer = tokio::spawn(ChunkedEvents::new(stream, Box::new(events)));
        let said = far.write_all(&vec![b'x'; 10 * UNHEARD_BYTES]).await;
        assert!(said.is_err(), "the connection is closed");
        writer.await.unwrap();
    }

    /// Has no messages and no end.
    struct Silent;

    impl SseSource for Silent {
        fn poll_events(&mut self, _: &mut SseEncoder, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }
}
