//! One HTTP request and its answer, driven on the event loop's thread.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{Request, Response};
use mcpbolt::io::http::{HttpBody, HttpService, PeerAddress};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::runtime::Handle;

use crate::future;
use crate::hub::{Event, Hub, Notified};
use crate::settings::wrong;

/// The most bytes of an answer that cross to Python in one piece.
const PIECE_BYTES: usize = 64 << 10;
/// The size of a request, in bytes, from which the interpreter is released while it is parsed.
const LONG_BYTES: usize = 16 << 10;

/// The head of a request.
pub struct Message<'a> {
    pub method: &'a str,
    pub target: &'a [u8],
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub peer: Option<IpAddr>,
}

type Headers<'py> = Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>;
type Responding = Pin<Box<dyn Future<Output = Response<HttpBody>> + Send>>;

/// A request in progress. Closing it before its end cancels it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Exchange {
    state: Mutex<State>,
    chunks: Arc<Mutex<Chunks>>,
    notifier: Arc<Notifier>,
    runtime: Handle,
}

enum State {
    Responding(Responding),
    Answering(Pin<Box<HttpBody>>),
    Over,
}

impl Exchange {
    pub fn begin(
        py: Python<'_>,
        service: &HttpService,
        hub: &Arc<Hub>,
        runtime: Handle,
        message: Message<'_>,
        (body, more): (&[u8], bool),
    ) -> PyResult<Self> {
        let chunks = Chunks::default();
        let chunks = Arc::new(Mutex::new(chunks));
        let mut request = Request::builder()
            .method(message.method)
            .uri(message.target);
        for (name, value) in &message.headers {
            request = request.header(&name[..], &value[..]);
        }
        if let Some(peer) = message.peer {
            request = request.extension(PeerAddress((peer, 0).into()));
        }
        let request = request.body(Incoming(chunks.clone())).map_err(wrong)?;
        let service = service.clone();
        let responding = Box::pin(async move { service.respond(request).await });
        let exchange = Self {
            state: Mutex::new(State::Responding(responding)),
            chunks,
            notifier: Arc::new(Notifier {
                hub: hub.clone(),
                waits: Mutex::default(),
            }),
            runtime,
        };
        exchange.feed(py, body, more)?;
        Ok(exchange)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll<T: Send>(
        &self,
        py: Python<'_>,
        poll: impl FnOnce(&mut State, &mut Context<'_>) -> Poll<T> + Send,
    ) -> Option<T> {
        let waker = Waker::from(self.notifier.clone());
        let is_long = lock(&self.chunks).waiting > LONG_BYTES;
        let go = || {
            let _runtime = self.runtime.enter();
            poll(&mut self.state(), &mut Context::from_waker(&waker))
        };
        let polled = match is_long {
            true => py.detach(go),
            false => go(),
        };
        match polled {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }
}

#[pymethods]
impl Exchange {
    /// Adds more of the request's body.
    fn feed(&self, py: Python<'_>, body: &[u8], more: bool) -> PyResult<()> {
        let mut chunks = lock(&self.chunks);
        if !body.is_empty() {
            chunks.waiting += body.len();
            chunks.queue.push_back(Bytes::copy_from_slice(body));
        }
        chunks.ended = !more;
        drop(chunks);
        // This runs on the event loop's thread, so the waiting future is settled directly.
        self.notifier.notified(py)
    }

    /// The answer's status and headers; `None` if there are none yet.
    fn answer<'py>(&self, py: Python<'py>) -> PyResult<Option<(u16, Headers<'py>)>> {
        let answer = self.poll(py, |state, cx| match state {
            State::Responding(responding) => responding.as_mut().poll(cx).map(Some),
            State::Answering(_) | State::Over => Poll::Ready(None),
        });
        let Some(answer) = answer.flatten() else {
            return Ok(None);
        };
        let (parts, body) = answer.into_parts();
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        let mut headers: Headers<'py> = parts
            .headers
            .iter()
            .map(|(name, value)| (bytes(name.as_str().as_bytes()), bytes(value.as_bytes())))
            .collect();
        if let (Some(len), true) = (body.size_hint().exact(), parts.status.as_u16() != 204) {
            let mut number = itoa::Buffer::new();
            let len = number.format(len).as_bytes();
            headers.push((bytes(b"content-length"), bytes(len)));
        }
        *self.state() = State::Answering(Box::pin(body));
        Ok(Some((parts.status.as_u16(), headers)))
    }

    /// The available part of the answer's body, and whether more will come; `None` if nothing is
    /// available yet.
    fn read<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyBytes>, bool)> {
        let mut pieces = VecDeque::new();
        let mut len = 0;
        let more = loop {
            let piece = self.poll(py, |state, cx| match state {
                State::Answering(body) => body.as_mut().poll_frame(cx),
                State::Responding(_) | State::Over => Poll::Ready(None),
            });
            match piece {
                Some(Some(Ok(frame))) => {
                    let piece = frame.into_data().unwrap_or_default();
                    len += piece.len();
                    pieces.push_back(piece);
                    if len >= PIECE_BYTES {
                        break true;
                    }
                }
                Some(Some(Err(never))) => match never {},
                Some(None) => break false,
                None if pieces.is_empty() => return None,
                None => break true,
            }
        };
        let joined = match (pieces.pop_front(), pieces.is_empty()) {
            (Some(only), true) => PyBytes::new(py, &only),
            (first, _) => {
                let all: Vec<u8> = first.into_iter().chain(pieces).flatten().collect();
                PyBytes::new(py, &all)
            }
        };
        Some((joined, more))
    }

    /// Has `future` settled when more is available. Returns `False` if nothing more will come.
    fn wait(&self, future: Py<PyAny>) -> bool {
        *lock(&self.notifier.waits) = Some(future);
        !matches!(*self.state(), State::Over)
    }

    /// Closes the exchange: the client has disconnected, or has the whole answer.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let left = std::mem::replace(&mut *self.state(), State::Over);
        let _runtime = self.runtime.enter();
        drop(left);
        self.notifier.notified(py)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let left = std::mem::replace(&mut *self.state(), State::Over);
        let _runtime = self.runtime.enter();
        drop(left);
    }
}

/// The waker of an exchange: tells the event loop that more is available.
struct Notifier {
    hub: Arc<Hub>,
    waits: Mutex<Option<Py<PyAny>>>,
}

impl Notified for Notifier {
    /// Settles the waiting future.
    fn notified(&self, py: Python<'_>) -> PyResult<()> {
        let waits = lock(&self.waits).take();
        match waits {
            Some(waits) => future::settle(py, &waits, Ok(py.None().into_bound(py))),
            None => Ok(()),
        }
    }
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        let hub = self.hub.clone();
        hub.inbox.push(Event::Notified(self));
    }
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").finish_non_exhaustive()
    }
}

/// The part of a request's body that has come and is not read yet.
#[derive(Default)]
struct Chunks {
    queue: VecDeque<Bytes>,
    /// The number of bytes in `queue`.
    waiting: usize,
    ended: bool,
}

struct Incoming(Arc<Mutex<Chunks>>);

impl Body for Incoming {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut chunks = lock(&self.0);
        match chunks.queue.pop_front() {
            Some(chunk) => {
                chunks.waiting -= chunk.len();
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            None if chunks.ended => Poll::Ready(None),
            // No waker is needed: `Exchange::feed` has the exchange polled again.
            None => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let chunks = lock(&self.0);
        match chunks.ended {
            true => SizeHint::with_exact(chunks.waiting as u64),
            false => SizeHint::default(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
