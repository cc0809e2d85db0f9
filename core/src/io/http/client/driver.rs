//! Polls the parts of a client in turn: the engine's output, and the tasks that carry it.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use reqwest::{Method as Verb, Url};
use tokio::time::timeout;

use super::super::pieces::messages;
use super::carrier::Carrier;
use super::exchange::Outcome;
use super::outgoing::Outgoing;
use super::pair::{self, Pair};
use super::renewal::{Opening, Unrenewed, renew};
use super::standing::stand;
use crate::error::{CarrierError, CarrierFault, ConnectionError, RequestError};
use crate::io::wait::{Alarm, Notifier};
use crate::limits::Limits;
use crate::mcp::{Era, Method};

/// How long sending the last messages of a connection may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Drives the connection of one client.
pub struct Driver {
    carrier: Arc<Carrier>,
    bell: Arc<Notifier>,
    alarm: Alarm,
    way: Way,
    tasks: FuturesUnordered<Task>,
    /// The requests in flight.
    requests: HashMap<u64, Request>,
    /// How many of them count toward `max_concurrent`.
    busy: usize,
    /// Requests that wait for others to end.
    waiting: VecDeque<Outgoing>,
    /// Notifications and answers that wait to be sent, and the number being sent.
    words: VecDeque<Outgoing>,
    speaking: usize,
    /// Bytes of the requests that wait, and of `words`.
    waiting_bytes: usize,
    word_bytes: usize,
    /// Calls that wait for the list of tools, and how often it was fetched for such calls.
    stale: Vec<Outgoing>,
    listings: u64,
    /// A session is being begun: everything else waits.
    beginning: bool,
    opening: Opening,
}

/// How messages are sent.
enum Way {
    Streamable,
    /// Messages are POSTed to this URI; answers arrive on a separate stream (2024-11-05).
    Pair(Url),
}

struct Request {
    abort: AbortHandle,
    /// Whether the request counts toward `max_concurrent`.
    counts: bool,
}

type Task = Abortable<Pin<Box<dyn Future<Output = Done> + Send>>>;

/// The result of a task.
enum Done {
    Request(u64, Outcome),
    Said(Outcome),
    Begun(Outcome),
    Stood(Outcome),
    Renewed(Result<(), Unrenewed>),
    Relisted,
    Paired(Outgoing, CarrierError, Result<Box<Pair>, CarrierError>),
    PairEnded(ConnectionError),
}

impl Driver {
    pub fn new(carrier: Arc<Carrier>, bell: Arc<Notifier>) -> Self {
        Self {
            carrier,
            bell,
            alarm: Alarm::default(),
            way: Way::Streamable,
            tasks: FuturesUnordered::new(),
            requests: HashMap::new(),
            busy: 0,
            waiting: VecDeque::new(),
            words: VecDeque::new(),
            speaking: 0,
            waiting_bytes: 0,
            word_bytes: 0,
            stale: Vec::new(),
            listings: 0,
            beginning: false,
            opening: Opening::default(),
        }
    }

    /// Drives the connection to its end, then sends what is left and ends the session.
    pub async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        // Requests in flight are dropped: over 2026-07-28, that is how they are cancelled (R-CAN-05).
        self.tasks.clear();
        let _ = timeout(FAREWELL, self.leave()).await;
    }

    /// Sends the remaining messages, and ends the session (R-SES-06).
    async fn leave(&mut self) {
        // A server of 2024-11-05 notices by the end of its stream.
        if matches!(self.way, Way::Pair(_)) {
            return;
        }
        // In a session that has not begun there is nothing to send, but it must be ended.
        if !self.beginning {
            self.take();
            let words: FuturesUnordered<_> = self
                .words
                .drain(..)
                .map(|word| self.carrier.clone().say(word))
                .collect();
            words.for_each(async |_| ()).await;
        }
        let session = self.carrier.session();
        if session.id.is_some() {
            let (link, headers) = (&self.carrier.link, self.carrier.headers(&session));
            let _ = link.send(Verb::DELETE, link.url(), headers, None).await;
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.carrier.engine.turn(Instant::now());
            if self.carrier.engine.is_closed() {
                return Poll::Ready(());
            }
            self.take();
            self.start();
            match self.tasks.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(done))) => {
                    self.done(done);
                    continue;
                }
                Poll::Ready(Some(Err(_aborted))) => continue,
                Poll::Ready(None) | Poll::Pending => {}
            }
            // Messages that arrived meanwhile may have produced output, or changed the timers.
            if self.may_take() && self.carrier.engine.has_output() {
                continue;
            }
            let due = self.carrier.engine.poll_timeout();
            let alarmed = self.alarm.poll(due, cx);
            if !self.bell.watch(cx) && !alarmed {
                return Poll::Pending;
            }
        }
    }

    fn limits(&self) -> &Limits {
        &self.carrier.engine.handle().config().limits
    }

    /// Whether more of the engine's output may be queued here; otherwise it stays in the engine and is
    /// subject to its limits. Waiting requests do not count: they may wait for notifications or answers
    /// in `words`.
    fn may_take(&self) -> bool {
        self.word_bytes <= self.limits().output_mark_bytes
    }

    fn take(&mut self) {
        if !self.may_take() || !self.carrier.engine.has_output() {
            return;
        }
        for mut message in messages(self.carrier.engine.take_output()) {
            message.retain(|piece| !piece.is_empty());
            let body = match message.pop() {
                Some(only) if message.is_empty() => only,
                Some(last) => {
                    message.push(last);
                    message.concat().into()
                }
                None => continue,
            };
            self.sort(Outgoing::new(body));
        }
    }

    fn sort(&mut self, message: Outgoing) {
        if let Some(id) = message.cancels() {
            return self.cancelled(id, message);
        }
        self.opening.note(&message);
        if message.method == Some(Method::Initialize) {
            // Only a probe that has timed out can precede it.
            for (_, request) in self.requests.drain() {
                request.abort.abort();
            }
            self.busy = 0;
        }
        match message.method {
            _ if message.id.is_none() => self.say(message),
            // It stays open for long, and there are few of them.
            Some(Method::Listen) => self.request(message, false),
            _ => self.wait(message),
        }
    }

    fn wait(&mut self, message: Outgoing) {
        if self.waiting_bytes > self.limits().output_cap_bytes {
            return self.lose(&message, RequestError::Overloaded);
        }
        self.waiting_bytes += message.body.len();
        self.waiting.push_back(message);
    }

    fn say(&mut self, message: Outgoing) {
        self.word_bytes += message.body.len();
        self.words.push_back(message);
    }

    fn next_waiting(&mut self) -> Option<Outgoing> {
        let message = self.waiting.pop_front()?;
        self.waiting_bytes -= message.body.len();
        Some(message)
    }

    /// Handles the cancellation of a request.
    fn cancelled(&mut self, id: u64, message: Outgoing) {
        let is_it = |each: &Outgoing| each.id == Some(id);
        if let Some(at) = self.waiting.iter().position(is_it) {
            if let Some(gone) = self.waiting.remove(at) {
                self.waiting_bytes -= gone.body.len();
            }
            return;
        }
        if let Some(at) = self.stale.iter().position(is_it) {
            self.stale.swap_remove(at);
            return;
        }
        if let Some(request) = self.end(id) {
            request.abort.abort();
        }
        // R-CAN-05, R-CAN-07
        let revision = self.carrier.engine.handle().revision();
        if revision.is_some_and(|revision| revision.era() == Era::Handshake) {
            self.say(message);
        }
    }

    fn end(&mut self, id: u64) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        self.busy -= usize::from(request.counts);
        Some(request)
    }

    /// Starts the tasks that may run.
    fn start(&mut self) {
        // Notifications and answers never wait for requests, but they have the same limit of their own.
        let most = self.carrier.options.max_concurrent.max(1);
        while !self.beginning
            && self.speaking < most
            && let Some(word) = self.words.pop_front()
        {
            self.word_bytes -= word.body.len();
            self.speaking += 1;
            let begins = word.method == Some(Method::Initialized);
            let said: Pin<Box<dyn Future<Output = Done> + Send>> = match &self.way {
                Way::Streamable => {
                    let carrier = self.carrier.clone();
                    self.beginning = begins;
                    Box::pin(async move {
                        let outcome = carrier.say(word).await;
                        match begins {
                            true => Done::Begun(outcome),
                            false => Done::Said(outcome),
                        }
                    })
                }
                Way::Pair(url) => {
                    let said = pair::post(self.carrier.clone(), url.clone(), word);
                    Box::pin(async { Done::Said(said.await) })
                }
            };
            self.task(said);
        }
        while !self.beginning
            && self.busy < most
            && let Some(message) = self.next_waiting()
        {
            self.request(message, true);
        }
    }

    fn request(&mut self, mut message: Outgoing, counts: bool) {
        let Some(id) = message.id else { return };
        message.listings = self.listings;
        let carrier = self.carrier.clone();
        let abort = match &self.way {
            Way::Streamable => self.task(Box::pin(async move {
                Done::Request(id, carrier.request(message).await)
            })),
            Way::Pair(url) => {
                let posted = pair::post(carrier, url.clone(), message);
                self.task(Box::pin(async move { Done::Request(id, posted.await) }))
            }
        };
        self.busy += usize::from(counts);
        self.requests.insert(id, Request { abort, counts });
    }

    fn task(&mut self, task: Pin<Box<dyn Future<Output = Done> + Send>>) -> AbortHandle {
        let (abort, registration) = AbortHandle::new_pair();
        self.tasks.push(Abortable::new(task, registration));
        abort
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request(id, outcome) => {
                self.end(id);
                self.outcome(outcome);
            }
            Done::Said(outcome) => {
                self.speaking -= 1;
                self.outcome(outcome);
            }
            Done::Stood(outcome) => self.outcome(outcome),
            Done::Begun(outcome) => {
                self.speaking -= 1;
                self.beginning = false;
                self.stand();
                self.outcome(outcome);
            }
            Done::Renewed(Ok(())) => {
                self.beginning = false;
                self.stand();
            }
            Done::Renewed(Err(Unrenewed::Failed(error))) => {
                self.beginning = false;
                while let Some(message) = self.next_waiting() {
                    self.lose(&message, error.clone());
                }
            }
            Done::Renewed(Err(Unrenewed::Changed)) => {
                let why = "the session ended, and the server speaks another revision now";
                let reason = ConnectionError::Handshake(why.into());
                self.carrier.engine.close(reason);
            }
            Done::Relisted => {
                self.listings += 1;
                for message in std::mem::take(&mut self.stale) {
                    self.wait(message);
                }
            }
            Done::Paired(message, _, Ok(pair)) => {
                self.way = Way::Pair(pair.post.clone());
                let carrier = self.carrier.clone();
                self.task(Box::pin(async move {
                    Done::PairEnded(pair.read(&carrier).await)
                }));
                self.wait(message);
            }
            Done::Paired(message, first, Err(error)) => {
                // Unless it redirected, the first error says more than the failure to open a stream.
                let telling = error.fault == CarrierFault::Redirected;
                self.lose(&message, if telling { error } else { first });
            }
            Done::PairEnded(reason) => self.carrier.engine.close(reason),
        }
    }

    fn lose(&self, message: &Outgoing, error: impl Into<RequestError>) {
        if let Some(id) = message.id {
            self.carrier.engine.lose(id, error);
        }
    }

    fn outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Over => {}
            Outcome::Gone(generation, message) => {
                if let Some(mut message) = message {
                    message.renewed = true;
                    self.wait(message);
                }
                // Whichever task finds out first renews the session for all (R-SES-05).
                if generation == self.carrier.session().generation && !self.beginning {
                    self.beginning = true;
                    let renewed = renew(self.carrier.clone(), self.opening.clone());
                    self.task(Box::pin(async { Done::Renewed(renewed.await) }));
                }
            }
            Outcome::Relist(mut message) => {
                message.relisted = true;
                if message.listings < self.listings {
                    return self.wait(message);
                }
                self.stale.push(message);
                if self.stale.len() == 1 {
                    let client = self.carrier.client.clone();
                    self.task(Box::pin(async move {
                        // If this fails, the call fails because of its headers.
                        let _ = client.list_tools_anew().await;
                        Done::Relisted
                    }));
                }
            }
            Outcome::Older(message, error) => {
                let carrier = self.carrier.clone();
                self.task(Box::pin(async move {
                    let pair = Pair::open(&carrier).await.map(Box::new);
                    Done::Paired(message, error, pair)
                }));
            }
        }
    }

    /// Opens the stream of messages that belong to no request.
    fn stand(&mut self) {
        if self.carrier.options.standing_stream {
            let stream = stand(self.carrier.clone());
            self.task(Box::pin(async { Done::Stood(stream.await) }));
        }
    }
}
