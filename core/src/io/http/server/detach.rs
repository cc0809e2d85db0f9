//! Takes a connection back from hyper once the head of a long event stream (the answer to a GET) is written. The stream may
//! be silent for hours, and hyper keeps buffers of some 24 KB for as long as it owns the connection.
//!
//! ```text
//!   hyper ─▶ Lent ─▶ socket      the head is written     ChunkedEvents ─▶ socket
//!                                ───────────────────▶
//! ```
//!
//! When hyper closes a connection on HTTP/1.1 after it refused a request with a body, `Lent` reads and
//! discards what the client still sends, for at most [`LINGER`] and [`LINGER_BYTES`]: a reset would
//! destroy the answer before the client reads it (RFC 9112, section 9.6). The answers that hyper makes
//! itself, 400 and 431, are not protected.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::carried::Carried;
use super::chunked_events::ChunkedEvents;
use super::sse::SseEvents;
use crate::io::task::{LINGER, LINGER_BYTES, poll_discard};
use crate::io::wait::Alarm;

/// Shared by hyper's side, the responses, and the writer that takes over. On HTTP/1.1 all run in one task.
pub struct Detach<S> {
    kept: Mutex<Kept<S>>,
    /// There are events, which hyper must not write.
    asked: AtomicBool,
    /// hyper has more to write than the socket takes now.
    behind: AtomicBool,
    /// The last response is an error, and its request had a body.
    has_refused: AtomicBool,
}

struct Kept<S> {
    events: Option<Box<SseEvents>>,
    stream: Option<S>,
}

impl<S> Detach<S> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::new(Kept {
                events: None,
                stream: None,
            }),
            asked: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            has_refused: AtomicBool::new(false),
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept<S>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps the stream for hyper.
    pub fn lend(self: &Arc<Self>, stream: S) -> Lent<S> {
        Lent {
            stream: Some(stream),
            detach: self.clone(),
            ending: None,
            discards: LINGER_BYTES,
            alarm: Alarm::default(),
        }
    }

    /// Records whether a request with a body was refused.
    pub fn answered(&self, has_body: bool, status: StatusCode) {
        let is_error = status.is_client_error() || status.is_server_error();
        self.has_refused.store(has_body && is_error, Relaxed);
    }

    /// Takes the events out of a response on HTTP/1.1. hyper writes only its head, which says that the
    /// connection closes after this response.
    pub fn ask(&self, response: &mut Response<Carried>) {
        if let Carried::Own(body) = response.body_mut()
            && let Some(events) = body.take_events()
        {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
            self.kept().events = Some(events);
            self.asked.store(true, Relaxed);
        }
    }

    /// Whether hyper may be dropped while it waits: it has written everything it had.
    pub fn is_due(&self) -> bool {
        self.asked.load(Relaxed) && !self.behind.load(Relaxed)
    }

    /// The writer that takes over, once hyper was dropped.
    pub fn take(&self) -> Option<ChunkedEvents<S>> {
        let mut kept = self.kept();
        Some(ChunkedEvents::new(kept.stream.take()?, kept.events.take()?))
    }
}

/// A stream that is given back when it is dropped, if a writer is to take over.
pub struct Lent<S> {
    /// `None` once dropped.
    stream: Option<S>,
    detach: Arc<Detach<S>>,
    /// Deadline for discarding what the client still sends; set once our side is shut down.
    ending: Option<Instant>,
    /// How many bytes of it may still be discarded.
    discards: usize,
    alarm: Alarm,
}

impl<S: Unpin> Lent<S> {
    fn stream(&mut self) -> io::Result<Pin<&mut S>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn written(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.detach.behind.store(outcome.is_pending(), Relaxed);
        outcome
    }
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        if self.detach.is_due() {
            self.detach.kept().stream = self.stream.take();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = self.stream()?.poll_write(cx, buf);
        self.written(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = self.stream()?.poll_write_vectored(cx, bufs);
        self.written(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        let stream = self.stream.as_ref();
        stream.is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ending.is_none() {
            ready!(self.stream()?.poll_shutdown(cx))?;
            if !self.detach.has_refused.load(Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let until = *self.ending.get_or_insert_with(|| Instant::now() + LINGER);
        if self.alarm.poll(Some(until), cx) {
            return Poll::Ready(Ok(()));
        }
        let own = &mut *self;
        let Some(stream) = &mut own.stream else {
            return Poll::Ready(Ok(()));
        };
        poll_discard(Pin::new(stream), &mut own.discards, cx).map(Ok)
    }
}
