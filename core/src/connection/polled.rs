//! A connection that is asked what happened, for programs that would rather ask than be called.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{
    Answer, Batch, Call, CallKey, Config, Connection, Disposition, Framing, Handle, Host, Incoming,
    Progress, RequestOptions, Response, Stray, StreamId,
};
use crate::buffer::Output;
use crate::error::{ConnectionError, RequestError};
use crate::mcp::Revision;
use crate::message::{Message, MessageRef};

/// Something that happened. Numbers are those that [`Polled::request`] gave.
#[derive(Debug)]
pub enum Event {
    /// The connection is open, in that revision.
    Opened(Revision),
    /// A request of the peer, to be answered through [`Replies`](super::Replies).
    Request(Box<Call>),
    /// A request of the peer was cancelled, for that reason: nobody waits for its answer.
    Cancelled(CallKey, Option<String>),
    /// A notification that the engine does not deal with itself.
    Notification(Message),
    /// How far a request of this side is.
    Progress {
        /// Which one.
        number: u64,
        /// How much is done.
        progress: f64,
        /// Of how much, when that is known.
        total: Option<f64>,
        /// A sentence for people.
        message: Option<String>,
    },
    /// A request of this side is over.
    Answered(u64, Result<Message, RequestError>),
    /// A frame that concerned nobody.
    Stray(Stray, Vec<u8>),
    /// The connection has ended. The last event.
    Closed(ConnectionError),
}

/// A [`Connection`] of one stream that keeps what happens until it is asked.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
///
/// use mcpbolt::connection::{Config, Event, Framing, Polled};
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
///     if let Event::Request(call) = event {
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

/// What is told of this side's requests while they are under way, by whoever tells it.
#[derive(Debug, Default)]
struct Told {
    progress: Vec<(u64, Event)>,
    /// The numbers of those that may be over. Nothing is told of them afterwards.
    over: Vec<u64>,
}

impl Polled {
    /// A connection that has not begun.
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

    /// The connection itself, for what is asked of it and changes nothing.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What answers, notifies and closes.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether more may be fed: `false` while too much is to be written.
    pub fn wants_read(&self) -> bool {
        self.connection.wants_read(self.stream)
    }

    /// Takes bytes that came.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) {
        self.connection.input(self.stream).extend(bytes);
        self.connection.receive(self.stream, now, &mut self.seen);
    }

    /// Nothing more comes.
    pub fn feed_end(&mut self, now: Instant) {
        let (stream, seen) = (self.stream, &mut self.seen);
        self.connection.receive_end(stream, now, seen);
    }

    /// Lets time pass; [`Connection::poll_timeout`] says when to.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now, &mut self.seen);
    }

    /// What is to be written, with what was submitted until now.
    pub fn output(&mut self, now: Instant) -> &mut Output {
        self.connection.handle_submissions(now, &mut self.seen);
        self.connection.output(self.stream)
    }

    /// The next thing that happened, in order.
    pub fn next_event(&mut self) -> Option<Event> {
        let Told { progress, over } = std::mem::take(&mut *lock(&self.told));
        let asked = &self.asked;
        let is_awaited = |(number, _): &(u64, _)| asked.contains_key(number);
        let progress = progress.into_iter().filter(is_awaited);
        self.seen.0.extend(progress.map(|(_, event)| event));
        over.into_iter().for_each(|number| self.poll(number));
        self.seen.0.pop_front()
    }

    /// Sends a request, whose progress becomes events if `reports` says so; gives its number, of
    /// 53 bits.
    ///
    /// # Errors
    /// What keeps it from being sent.
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
                let event = Event::Progress {
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

    /// Gives up on a request of this side; nothing more is heard of it.
    pub fn cancel(&mut self, number: u64, reason: Option<&str>) {
        if let Some(response) = self.asked.remove(&number) {
            response.cancel(reason);
        }
    }

    /// Finds out what became of a request of this side.
    fn poll(&mut self, number: u64) {
        let waker = Waker::from(Arc::new(Over(number, self.told.clone())));
        let Some(response) = self.asked.get_mut(&number) else {
            return;
        };
        if let Poll::Ready(outcome) = Pin::new(response).poll(&mut Context::from_waker(&waker)) {
            self.asked.remove(&number);
            self.seen.0.push_back(Event::Answered(number, outcome));
        }
    }
}

struct Over(u64, Arc<Mutex<Told>>);

impl std::task::Wake for Over {
    fn wake(self: Arc<Self>) {
        lock(&self.1).over.push(self.0);
    }
}

/// What the connection called its host for.
#[derive(Debug, Default)]
struct Seen(VecDeque<Event>);

impl Host for Seen {
    fn request(&mut self, _: Incoming<'_>, _: Answer<'_>) -> Disposition {
        Disposition::Deferred(0)
    }

    fn dispatch(&mut self, batch: Batch) {
        let calls = batch.calls().map(|call| Event::Request(Box::new(call)));
        self.0.extend(calls);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        self.0.push_back(Event::Cancelled(key, reason));
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        self.0.push_back(Event::Notification(message.detach()));
    }

    fn opened(&mut self, revision: Revision) {
        self.0.push_back(Event::Opened(revision));
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.0.push_back(Event::Closed(reason.clone()));
    }

    fn stray(&mut self, what: Stray, frame: &[u8]) {
        self.0.push_back(Event::Stray(what, frame.to_owned()));
    }
}

/// Both lists are whole whenever somebody else may take them.
fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}
