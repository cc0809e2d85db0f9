//! One HTTP request from its body to its answer: a connection of the engine of its own, which is
//! driven by whoever polls the answer. Dropped before its end it is cancelled (R-CAN-06).

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::time::Sleep;

use super::headers;
use crate::buffer::Input;
use crate::connection::{
    Answer, Batch, CallKey, Config, Connection, Disposition, Framing, Host, Incoming, Stray,
    StreamId, Wake,
};
use crate::error::ConnectionError;
use crate::handler::Spawner;
use crate::mcp::ErrorKind;
use crate::message::MessageRef;
use crate::server::{HandlerExecutor, Server, ServerHost};

/// Wakes the task that polls an exchange.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    fn waker(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `cx` is woken; whether it should have been already.
    fn watch(&self, cx: &Context<'_>) -> bool {
        let mut waker = self.waker();
        match &mut *waker {
            Some(kept) => kept.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        drop(waker);
        self.rung.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(&self) {
        self.rung.store(true, Ordering::Release);
        let waker = self.waker().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The server's side of one exchange, which looks at the headers first.
struct Checked {
    headers: HeaderMap,
    inner: ServerHost<HandlerExecutor>,
    /// The request was one, and was handed to the server.
    reached: bool,
    /// What came was no message that a server takes.
    stray: bool,
}

impl Host for Checked {
    fn fits(&mut self, message: &MessageRef<'_>) -> Result<(), (ErrorKind, String)> {
        headers::check(&self.headers, message, self.inner.registry())
    }

    fn request(&mut self, request: Incoming<'_>, answer: Answer<'_>) -> Disposition {
        self.reached = true;
        self.inner.request(request, answer)
    }

    fn dispatch(&mut self, batch: Batch) {
        self.inner.dispatch(batch);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.inner.cancelled(key, reason);
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        self.inner.notification(message);
    }

    fn draining(&mut self) {
        self.inner.draining();
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.inner.closed(reason);
    }

    fn stray(&mut self, what: Stray, frame: &[u8]) {
        self.stray = true;
        self.inner.stray(what, frame);
    }
}

/// One request under way.
pub struct Exchange {
    connection: Connection,
    stream: StreamId,
    host: Checked,
    bell: Arc<Bell>,
    alarm: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Exchange {
    /// One whose body is still to come.
    pub fn new(
        server: &Server,
        config: &Arc<Config>,
        spawner: &Arc<dyn Spawner>,
        headers: HeaderMap,
    ) -> Self {
        let mut connection = Connection::new(config.clone(), Instant::now());
        let bell = Arc::new(Bell::default());
        connection.set_wake(bell.clone());
        let handle = connection.handle();
        let executor = HandlerExecutor::new(server.clone(), handle.clone(), spawner.clone());
        Self {
            stream: connection.open_stream(Framing::Whole),
            connection,
            host: Checked {
                headers,
                inner: ServerHost::of(server, handle, executor),
                reached: false,
                stray: false,
            },
            bell,
            alarm: None,
        }
    }

    /// Where the body is put.
    pub fn body(&mut self) -> &mut Input {
        self.connection.input(self.stream)
    }

    /// The body has come to its end: the request begins.
    pub fn begin(&mut self) {
        self.connection
            .receive_end(self.stream, Instant::now(), &mut self.host);
    }

    /// Nothing more will be written.
    pub fn is_done(&self) -> bool {
        self.connection.in_flight() == 0 || self.connection.is_closed()
    }

    /// Whether the server itself answered, rather than the protocol before it.
    pub fn reached_server(&self) -> bool {
        self.host.reached
    }

    /// Whether what came was no message that a server takes.
    pub fn is_stray(&self) -> bool {
        self.host.stray
    }

    /// What is to be written, one message a line.
    pub fn take(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        self.connection.output(self.stream).take()
    }

    /// Ends it in good order within `grace`.
    pub fn drain(&mut self, grace: Duration) {
        let why = ConnectionError::ShuttingDown;
        self.connection
            .drain(Instant::now(), grace, why, &mut self.host);
    }

    /// Goes on until something is to be written or everything is.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            self.connection.handle_submissions(now, &mut self.host);
            let due = self.connection.poll_timeout();
            if due.is_some_and(|due| due <= now) {
                self.connection.handle_timeout(now, &mut self.host);
            }
            if self.is_done() || !self.connection.output(self.stream).is_empty() {
                return Poll::Ready(());
            }
            let alarmed = self.poll_alarm(cx);
            if !self.bell.watch(cx) && !alarmed {
                return Poll::Pending;
            }
        }
    }

    /// Whether the time of the next timer has come.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(due) = self.connection.poll_timeout() else {
            self.alarm = None;
            return false;
        };
        let (set, sleep) = self
            .alarm
            .get_or_insert_with(|| (due, Box::pin(tokio::time::sleep_until(due.into()))));
        if *set != due {
            *set = due;
            sleep.as_mut().reset(due.into());
        }
        sleep.as_mut().poll(cx).is_ready()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection
            .close(ConnectionError::ClosedByPeer, &mut self.host);
    }
}
