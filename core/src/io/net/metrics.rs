//! Counters of a server.

use std::array;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Budget;
#[cfg(feature = "http")]
use crate::connection::Held;

/// Counters of a server, for monitoring. Reading them does not slow the server down.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Counts the calls.
    budget: Arc<Budget>,
    pub(in crate::io) connections: AtomicU64,
    pub(in crate::io) ended: AtomicU64,
    pub(in crate::io) websockets: AtomicU64,
    pub(in crate::io) requests: AtomicU64,
    pub(in crate::io) errors: HttpErrors,
    pub(in crate::io) sessions: AtomicU64,
    pub(in crate::io) sessions_ended: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

/// The values of [`Metrics`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Open connections.
    pub open_connections: u64,
    /// Connections since the start.
    pub connections: u64,
    /// WebSockets since the start; also counted as connections.
    pub websockets: u64,
    /// HTTP requests since the start.
    pub http_requests: u64,
    /// HTTP requests that were answered with a status of 400 or more.
    pub http_errors: u64,
    /// Open HTTP sessions.
    pub open_sessions: u64,
    /// HTTP sessions since the start.
    pub sessions: u64,
    /// Calls in progress, on any transport.
    pub open_calls: u64,
    /// Calls that were handed to a handler since the start.
    pub calls: u64,
    /// Bytes held for peers, which the [total limits](crate::limits::TotalLimits) bound.
    pub held_bytes: u64,
    /// The most bytes that are held for peers.
    pub max_held_bytes: u64,
    /// Bytes received, without the overhead of TLS.
    pub bytes_read: u64,
    /// Bytes sent, without the overhead of TLS.
    pub bytes_written: u64,
}

impl Metrics {
    /// Accounts for this many bytes in the server's memory budget.
    #[cfg(feature = "http")]
    pub(in crate::io) fn occupied(&self, bytes: usize) -> Held {
        let mut held = Held::of(&self.budget);
        held.occupy(bytes);
        held
    }

    /// Counters of a server whose connections share that budget.
    pub(in crate::io) fn of(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            ..Self::default()
        })
    }

    /// HTTP requests that were answered with each status of 400 or more, if there were any.
    pub(crate) fn http_errors(&self) -> impl Iterator<Item = (u16, u64)> {
        let all = (FIRST_ERROR..).zip(&self.errors.0);
        let all = all.map(|(status, count)| (status, count.load(Relaxed)));
        all.filter(|(_, count)| *count > 0)
    }

    /// Reads the counters.
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
            http_errors: self.http_errors().map(|(_, count)| count).sum(),
            open_sessions: sessions.saturating_sub(sessions_ended),
            sessions,
            open_calls: self.budget.requests() as u64,
            calls: self.budget.calls() as u64,
            held_bytes: self.budget.bytes() as u64,
            max_held_bytes: self.budget.max_bytes() as u64,
            bytes_read: self.bytes_read.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
        }
    }
}

/// The first status of HTTP that is an error.
const FIRST_ERROR: u16 = 400;

/// How many requests of HTTP were answered with each status from [`FIRST_ERROR`] to 599.
#[derive(Debug)]
pub(in crate::io) struct HttpErrors([AtomicU64; 200]);

impl HttpErrors {
    /// Counts an answer with that status, if it is an error.
    #[cfg(feature = "http")]
    pub fn count(&self, status: u16) {
        let error = status.checked_sub(FIRST_ERROR);
        if let Some(counter) = error.and_then(|it| self.0.get(usize::from(it))) {
            count(counter);
        }
    }
}

impl Default for HttpErrors {
    fn default() -> Self {
        Self(array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Adds one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Counts the bytes of a stream, and its end.
pub struct Counted<S> {
    stream: S,
    metrics: Arc<Metrics>,
}

impl<S> Counted<S> {
    /// Counts a new connection.
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
        if outcome.is_ready() {
            let read = buf.filled().len() - before;
            self.metrics.bytes_read.fetch_add(read as u64, Relaxed);
        }
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
