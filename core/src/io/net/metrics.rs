//! What a server has done so far, in numbers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Budget;

/// Counters of a server, for who watches over it. Reading them costs nobody anything.
#[derive(Debug, Default)]
pub struct Metrics {
    /// What knows of calls.
    budget: Arc<Budget>,
    pub(in crate::io) connections: AtomicU64,
    pub(in crate::io) ended: AtomicU64,
    pub(in crate::io) websockets: AtomicU64,
    pub(in crate::io) requests: AtomicU64,
    pub(in crate::io) refused: AtomicU64,
    pub(in crate::io) sessions: AtomicU64,
    pub(in crate::io) sessions_ended: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

/// [`Metrics`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Connections that are open.
    pub open_connections: u64,
    /// Connections since the beginning.
    pub connections: u64,
    /// WebSockets since the beginning; they are connections, too.
    pub websockets: u64,
    /// Requests of HTTP.
    pub http_requests: u64,
    /// Those of them that were answered with a status of 400 or more.
    pub http_errors: u64,
    /// Sessions on HTTP that are open.
    pub open_sessions: u64,
    /// Sessions on HTTP since the beginning.
    pub sessions: u64,
    /// Calls that are under way, on whatever carrier.
    pub open_calls: u64,
    /// Calls that were handed to a handler since the beginning.
    pub calls: u64,
    /// Bytes that came, without those of TLS.
    pub bytes_read: u64,
    /// Bytes that left, likewise.
    pub bytes_written: u64,
}

impl Metrics {
    /// Of a server whose connections have that budget.
    pub(in crate::io) fn of(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            ..Self::default()
        })
    }

    /// The counters now.
    pub fn counts(&self) -> Counts {
        let ended = self.ended.load(Relaxed);
        let connections = self.connections.load(Relaxed);
        let sessions_ended = self.sessions_ended.load(Relaxed);
        let sessions = self.sessions.load(Relaxed);
        Counts {
            open_connections: connections.saturating_sub(ended),
            connections,
            websockets: self.websockets.load(Relaxed),
            http_requests: self.requests.load(Relaxed),
            http_errors: self.refused.load(Relaxed),
            open_sessions: sessions.saturating_sub(sessions_ended),
            sessions,
            open_calls: self.budget.requests() as u64,
            calls: self.budget.calls() as u64,
            bytes_read: self.bytes_read.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
        }
    }
}

/// Adds one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// A stream whose bytes are counted, and whose end is.
pub struct Counted<S> {
    stream: S,
    metrics: Arc<Metrics>,
}

impl<S> Counted<S> {
    /// From now on.
    pub fn new(stream: S, metrics: &Arc<Metrics>) -> Self {
        count(&metrics.connections);
        let metrics = metrics.clone();
        Self { stream, metrics }
    }

    fn written(&self, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(n)) = &outcome {
            self.metrics.bytes_written.fetch_add(*n as u64, Relaxed);
        }
        outcome
    }
}

impl<S> Drop for Counted<S> {
    fn drop(&mut self) {
        count(&self.metrics.ended);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        let read = buf.filled().len() - before;
        self.metrics.bytes_read.fetch_add(read as u64, Relaxed);
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
