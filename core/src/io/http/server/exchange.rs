//! One HTTP request from its body to its answer, on an engine connection of its own. The task that polls the
//! answer drives the connection. Dropping an unfinished exchange cancels the request (R-CAN-06).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::gate::Admitted;
use super::header_check;
use super::headers::RequestHeaders;
use super::sse::{SseEncoder, SseSource};
use crate::buffer::Input;
use crate::connection::{
    Answer, Awaited, Batch, CallKey, Config, Connection, Disposition, Framing, Handle, Host,
    IncomingRequest, Principal, RequestSource, Stray, StreamId,
};
use crate::correlate::{CancelToken, Cancelled};
use crate::error::ConnectionError;
use crate::handler::Head;
use crate::io::http::message_bytes::{MessageBytes, messages};
use crate::io::wait::{Alarm, Notifier};
use crate::mcp::{ErrorKind, Method};
use crate::message::MessageRef;
use crate::server::{Hosting, ServerHost};

/// The outcome of a request, as far as its status depends on it.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// A valid request was handed to the server.
    reached: bool,
    /// The body was not a message that a server accepts.
    stray: bool,
}

/// The server's host, which checks the HTTP headers of a request before it handles the message.
struct Checked<'a, 'h> {
    /// Only while the message is taken in.
    headers: Option<&'a RequestHeaders<'h>>,
    inner: &'a mut ServerHost,
    fate: &'a mut Fate,
}

impl Host for Checked<'_, '_> {
    fn fits(&mut self, message: &MessageRef<'_>) -> Result<(), (ErrorKind, String)> {
        match self.headers {
            Some(headers) => header_check::check(headers, message, self.inner.registry()),
            // A member of a batch: the headers are those of the whole batch.
            None => Err((ErrorKind::HeaderMismatch, "it has no headers".to_owned())),
        }
    }

    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        self.fate.reached = true;
        self.inner.request(request, answer)
    }

    fn awaited(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
        awaited: Awaited,
    ) -> Disposition {
        self.inner.awaited(request, answer, awaited)
    }

    fn opens(&self, method: Method) -> bool {
        self.inner.opens(method)
    }

    fn dispatch(&mut self, batch: Batch) {
        self.inner.dispatch(batch);
    }

    fn detached(&mut self, batch: Batch) {
        self.inner.detached(batch);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        self.inner.cancelled(key, reason);
    }

    fn overheard(&mut self, message: MessageRef<'_>) {
        self.inner.overheard(message);
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

    fn stray(&mut self, _: Stray, _: &[u8]) {
        self.fate.stray = true;
    }
}

/// One request in progress.
pub struct HttpExchange {
    connection: Connection,
    stream: StreamId,
    host: ServerHost,
    fate: Fate,
    bell: Arc<Notifier>,
    alarm: Alarm,
    /// The principal that sends the request.
    principal: Option<Principal>,
    /// How many handles of the connection the server's host holds: more than that, and a handler still
    /// has one.
    handles: usize,
    /// [`Hosting::generation`] before the host was made.
    generation: u64,
}

impl HttpExchange {
    /// Creates an exchange that has not begun.
    pub fn new(
        hosting: &dyn Hosting,
        config: &Arc<Config>,
        timers: &Handle,
        principal: Option<&Principal>,
    ) -> Self {
        let mut connection = Connection::new(config.clone(), Instant::now());
        let bell = Notifier::new();
        connection.set_wake(bell.clone());
        if let Some(principal) = principal {
            connection.set_principal(principal.clone());
        }
        let handle = connection.handle();
        handle.set_timers(timers);
        let generation = hosting.generation();
        let host = hosting.host(handle, Some(timers));
        Self {
            generation,
            stream: connection.open_stream(Framing::Whole),
            handles: connection.handles(),
            connection,
            host,
            fate: Fate::default(),
            bell,
            alarm: Alarm::default(),
            principal: principal.cloned(),
        }
    }

    /// The generation of its server.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Sets the source of the request.
    pub fn sent_from(&mut self, source: RequestSource) {
        self.connection.set_source(&source);
        self.host.sent_from(source);
    }

    /// The principal that sends the request.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Whether this exchange belongs to that principal, with the same scopes.
    pub fn is_of(&self, principal: Option<&Principal>) -> bool {
        match (&self.principal, principal) {
            (Some(own), Some(other)) => own.has_same_grant(other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Resets the exchange for another request of the same principal. Returns `false` when it cannot be
    /// reused, because somebody still holds a handle or other state of the previous request.
    pub fn renew(&mut self) -> bool {
        // Checked first: the owner of a handle could act on the connection at any time.
        let renewed = self.connection.handles() == self.handles
            && self.connection.reset(Framing::Whole)
            && self.host.renew();
        if renewed {
            self.bell.reset();
            self.fate = Fate::default();
        }
        renewed
    }

    /// Announces that the request is an action, and whether its answer is `streamed` in parts.
    pub fn expect_action(&mut self, streamed: bool) {
        self.connection.expect_actions(self.stream, streamed);
    }

    /// The input schema of an action.
    pub fn action_schema(&mut self, action: &str) -> Option<String> {
        let registry = self.host.registry();
        let tool = registry.tool_at(registry.tool(action)?)?;
        Some(tool.input_schema.to_string())
    }

    /// Whether a GET may run that action.
    pub fn runs_on_get(&mut self, tool: Option<&str>, action: &str) -> bool {
        self.host.runs_on_get(tool, action)
    }

    /// The connection, and its host.
    fn both(&mut self) -> (&mut Connection, Checked<'_, 'static>) {
        let host = Checked {
            headers: None,
            inner: &mut self.host,
            fate: &mut self.fate,
        };
        (&mut self.connection, host)
    }

    /// Begins with the headers and the whole body. `head` is set if the host asked for heads.
    pub fn begin(&mut self, request: &Admitted<'_>, body: Input, head: Option<Arc<Head>>) {
        let headers = request.headers();
        self.connection
            .set_stream_channel(self.stream, || request.channel(None));
        if head.is_some() {
            self.host.carried(self.stream, head);
        }
        let mut host = Checked {
            headers: Some(headers),
            inner: &mut self.host,
            fate: &mut self.fate,
        };
        *self.connection.input(self.stream) = body;
        self.connection
            .receive_end(self.stream, Instant::now(), &mut host);
    }

    /// Whether nothing more will be written.
    pub fn is_done(&self) -> bool {
        self.connection.in_flight() == 0 || self.connection.is_closed()
    }

    /// Whether the server itself answered, rather than the protocol layer before it.
    pub fn reached_server(&self) -> bool {
        self.fate.reached
    }

    /// Whether the body was not a message that a server accepts.
    pub fn is_stray(&self) -> bool {
        self.fate.stray
    }

    /// Takes the output: one message per line.
    pub fn take(&mut self) -> impl Iterator<Item = Bytes> + use<'_> {
        let pieces = self.connection.output(self.stream).take();
        let budget = self.connection.budget();
        // Counted in the budget until it is sent, which may take time.
        pieces.map(move |piece| {
            let len = piece.len();
            budget.counted(piece, len)
        })
    }

    /// Ends the exchange gracefully within `grace`.
    pub fn drain(&mut self, grace: Duration) {
        let why = ConnectionError::ShuttingDown;
        let (connection, mut host) = self.both();
        connection.drain(Instant::now(), grace, why, &mut host);
    }

    /// Drives the exchange. `Ready` when there is output or the exchange is done.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.bell.watch(cx) {
                let (connection, mut host) = self.both();
                connection.handle_submissions(Instant::now(), &mut host);
            }
            if self.is_done() || !self.connection.output(self.stream).is_empty() {
                return Poll::Ready(());
            }
            if !self.alarm.poll(self.connection.poll_timeout(), cx) {
                return Poll::Pending;
            }
            let (connection, mut host) = self.both();
            connection.handle_timeout(Instant::now(), &mut host);
        }
    }
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        let (connection, mut host) = self.both();
        connection.close(ConnectionError::ClosedByPeer, &mut host);
    }
}

/// An exchange whose answer consists of several messages.
pub struct Answering {
    exchange: Box<HttpExchange>,
    stopping: Option<(Cancelled, Duration)>,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    On,
    ToEnd,
}

impl Answering {
    /// When `stop` is cancelled, the exchange ends gracefully within `grace`.
    pub fn new(exchange: Box<HttpExchange>, stop: &CancelToken, grace: Duration) -> Self {
        let stopping = Some((stop.cancelled(), grace));
        Self { exchange, stopping }
    }

    /// Passes the messages written since the last call to `take`.
    pub fn poll_messages(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnMut(MessageBytes),
    ) -> Poll<Moved> {
        if let Some((stop, grace)) = &mut self.stopping
            && Pin::new(stop).poll(cx).is_ready()
        {
            let grace = *grace;
            self.stopping = None;
            self.exchange.drain(grace);
        }
        let moved = self.exchange.poll(cx);
        messages(self.exchange.take()).into_iter().for_each(take);
        match self.exchange.is_done() {
            true => Poll::Ready(Moved::ToEnd),
            false => moved.map(|()| Moved::On),
        }
    }
}

impl SseSource for Answering {
    fn poll_events(&mut self, encoder: &mut SseEncoder, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let moved = self.poll_messages(cx, |message| encoder.event(None, &message));
            match moved {
                Poll::Ready(Moved::ToEnd) => return Poll::Ready(()),
                Poll::Ready(Moved::On) if !encoder.is_full() => {}
                _ => return Poll::Pending,
            }
        }
    }
}
