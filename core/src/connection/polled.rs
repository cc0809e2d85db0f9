//! A connection that queues events for the program to poll, instead of calling a host.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{
    Answer, Batch, Call, CallKey, Config, Connection, Disposition, Framing, Handle, Host,
    IncomingRequest, Operation, Progress, RequestOptions, Response, Stray, StreamId,
};
use crate::buffer::Output;
use crate::error::{ConnectionError, RequestError};
use crate::mcp::Revision;
use crate::message::{Message, MessageRef};

/// An event of a connection. `number` is what [`Polled::request`] returned.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// The connection is open, in this revision.
    Opened(Revision),
    /// A request of the peer; answer it through [`Replies`](super::Replies).
    Request(Box<Call>),
    /// A request of the peer was cancelled, possibly with a reason. Any answer to it is discarded.
    Cancelled(CallKey, Option<String>),
    /// A notification that the protocol layer does not process itself.
    Notification(Message),
    /// Progress of a request of this side.
    Progress {
        /// The request's number.
        number: u64,
        /// Amount done so far.
        progress: f64,
        /// Amount to be done in total, if known.
        total: Option<f64>,
        /// A message for people.
        message: Option<String>,
    },
    /// A request of this side is over: its number, and the answer or why there is none.
    Answered(u64, Result<Message, RequestError>),
    /// A frame that was of no use.
    Stray(Stray, Vec<u8>),
    /// The connection has ended. Only `Answered` events of requests that were pending may follow.
    Closed(ConnectionError),
}

/// A [`Connection`] with one stream that queues events until the program asks for them.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
///
/// use mcpbolt::connection::{Config, ConnectionEvent, Framing, Polled};
/// use mcpbolt::mcp::Side;
///
/// let now = Instant::now();
/// let config = Arc::new(Config::new(Side::Server, "echo", "1.0.0"));
/// let mut server = Polled::new(config, Framing::Line, now);
///
/// let opening = concat!(
///     r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
///     r#""capabilities":{},"clientInfo":{"name":"client","version":"1.0.0"}}}"#,
///     "\n",
///     r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
///     "\n",
///     r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}"#,
///     "\n",
/// );
/// server.feed(opening.as_bytes(), now);
/// while let Some(event) = server.next_event() {
///     if let ConnectionEvent::Request(call) = event {
///         let mut replies = server.handle().replies();
///         replies.result(&call.reply, |out| out.object(r#"{"content":[]}"#));
///     }
/// }
/// let answers: Vec<_> = server.output(now).take().collect();
/// assert!(answers.concat().ends_with(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}\n"));
/// ```
#[derive(Debug)]
pub struct Polled {
    connection: Connection,
    stream: StreamId,
    handle: Handle,
    seen: Seen,
    asked: HashMap<u64, Response>,
    told: Arc<Mutex<Told>>,
}

/// News of this side's pending requests, stored by their callbacks and wakers.
#[derive(Debug, Default)]
struct Told {
    progress: Vec<(u64, ConnectionEvent)>,
    /// The numbers of requests that may be over. No news follows for those.
    over: Vec<u64>,
}

impl Polled {
    /// Creates a connection that has exchanged nothing yet.
    pub fn new(config: Arc<Config>, framing: Framing, now: Instant) -> Self {
        let mut connection = Connection::new(config, now);
        Self {
            stream: connection.open_stream(framing),
            handle: connection.handle(),
            connection,
            seen: Seen::default(),
            asked: HashMap::new(),
            told: Arc::default(),
        }
    }

    /// The connection itself, to read its state.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The handle, to answer, notify and close.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether more bytes may be fed; `false` while too much output is not written, after the end of
    /// the input and after the connection has ended.
    pub fn wants_read(&self) -> bool {
        self.connection.wants_read(self.stream)
    }

    /// Processes bytes that the peer has sent.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) {
        self.connection.input(self.stream).extend(bytes);
        self.connection.receive(self.stream, now, &mut self.seen);
    }

    /// Processes the end of the input.
    pub fn feed_end(&mut self, now: Instant) {
        let (stream, seen) = (self.stream, &mut self.seen);
        self.connection.receive_end(stream, now, seen);
    }

    /// Fires the timers that are due; call it when [`Connection::poll_timeout`] says so.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now, &mut self.seen);
    }

    /// The bytes to write, including everything submitted so far.
    pub fn output(&mut self, now: Instant) -> &mut Output {
        self.connection.handle_submissions(now, &mut self.seen);
        self.connection.output(self.stream)
    }

    /// The next event. Events are in order, but progress and answers come after everything else that
    /// was processed since the last call.
    pub fn next_event(&mut self) -> Option<ConnectionEvent> {
        let Told { progress, over } = std::mem::take(&mut *lock(&self.told));
        let asked = &self.asked;
        let is_awaited = |(number, _): &(u64, _)| asked.contains_key(number);
        let progress = progress.into_iter().filter(is_awaited);
        self.seen.0.extend(progress.map(|(_, event)| event));
        over.into_iter().for_each(|number| self.poll(number));
        self.seen.0.pop_front()
    }

    /// Sends a request and returns its number, which fits 53 bits. If `reports` is set, its progress
    /// becomes events.
    ///
    /// # Errors
    /// As [`Handle::request`].
    pub fn request(
        &mut self,
        method: &str,
        params: Option<&str>,
        mut options: RequestOptions,
        reports: bool,
    ) -> Result<u64, RequestError> {
        let number = Arc::new(OnceLock::new());
        if reports {
            let (number, told) = (number.clone(), self.told.clone());
            options.progress = Some(Arc::new(move |news: Progress<'_>| {
                let number = number.get().copied().unwrap_or_default();
                let event = ConnectionEvent::Progress {
                    number,
                    progress: news.progress,
                    total: news.total,
                    message: news.message.map(str::to_owned),
                };
                lock(&told).progress.push((number, event));
            }));
        }
        let response = self.handle.request(method, params, options)?;
        let key = *number.get_or_init(|| response.key().get());
        self.asked.insert(key, response);
        self.poll(key);
        Ok(key)
    }

    /// Cancels a request of this side if it is pending. It gets no `Answered` event then; progress that
    /// is queued already may still be returned.
    pub fn cancel(&mut self, number: u64, reason: Option<&str>) {
        if let Some(response) = self.asked.remove(&number) {
            response.cancel(reason);
        }
    }

    /// Checks whether a request of this side is over.
    fn poll(&mut self, number: u64) {
        let waker = Waker::from(Arc::new(Over(number, self.told.clone())));
        let Some(response) = self.asked.get_mut(&number) else {
            return;
        };
        if let Poll::Ready(outcome) = Pin::new(response).poll(&mut Context::from_waker(&waker)) {
            self.asked.remove(&number);
            self.seen
                .0
                .push_back(ConnectionEvent::Answered(number, outcome));
        }
    }
}

struct Over(u64, Arc<Mutex<Told>>);

impl std::task::Wake for Over {
    fn wake(self: Arc<Self>) {
        lock(&self.1).over.push(self.0);
    }
}

/// The host that turns the connection's calls into events.
#[derive(Debug, Default)]
struct Seen(VecDeque<ConnectionEvent>);

impl Host for Seen {
    fn request(&mut self, _: IncomingRequest<'_>, _: Answer<'_>) -> Disposition {
        Disposition::Deferred(Operation::Own(0))
    }

    fn dispatch(&mut self, batch: Batch) {
        let calls = batch
            .calls()
            .map(|call| ConnectionEvent::Request(Box::new(call)));
        self.0.extend(calls);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        self.0.push_back(ConnectionEvent::Cancelled(key, reason));
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        self.0
            .push_back(ConnectionEvent::Notification(message.detach()));
    }

    fn opened(&mut self, revision: Revision) {
        self.0.push_back(ConnectionEvent::Opened(revision));
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.0.push_back(ConnectionEvent::Closed(reason.clone()));
    }

    fn stray(&mut self, what: Stray, frame: &[u8]) {
        self.0
            .push_back(ConnectionEvent::Stray(what, frame.to_owned()));
    }
}

/// Locks despite poisoning: both lists are consistent whenever the lock is free.
fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}
