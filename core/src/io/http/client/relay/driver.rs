//! Runs the tasks of a relay: requests concurrently, notifications one after the other.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::exchange::{Headers, Shared, Unsent};
use super::{RelayEvent, SendOptions};
use crate::error::CarrierError;
use crate::io::http::client::outgoing::Outgoing;
use crate::mcp::Method;

/// How long sending the last messages may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A command of the host.
#[derive(Debug)]
pub enum Command {
    Send(Box<Sent>),
    EndSession(u64),
    Close,
}

/// A message as the host gave it.
pub type Sent = (u64, Outgoing, SendOptions, Unsent);

/// A message that is queued or being sent.
pub struct Sending {
    pub of: u64,
    pub message: Outgoing,
    pub headers: Headers,
    pub resume: Option<String>,
    /// Whether the message was sent in the era without sessions.
    pub is_stateless: bool,
    pub unsent: Unsent,
}

pub struct Driver {
    shared: Arc<Shared>,
    tasks: FuturesUnordered<Task>,
    /// The requests in flight, by their ids as JSON text.
    requests: HashMap<Box<str>, Request>,
    /// How many of them count toward `max_concurrent`.
    busy: usize,
    waiting: VecDeque<Sending>,
    words: VecDeque<Sending>,
    is_speaking: bool,
    /// How many `notifications/initialized` have not been accepted yet: requests wait for them.
    beginnings: usize,
    standing: Option<AbortHandle>,
}

struct Request {
    of: u64,
    abort: AbortHandle,
    counts: bool,
    is_stateless: bool,
}

type Task = Abortable<Pin<Box<dyn Future<Output = Done> + Send>>>;

enum Done {
    Request(Box<Sending>, Result<(), CarrierError>),
    Said(Box<Sending>, Result<(), CarrierError>),
    Session(u64, Result<(), CarrierError>),
    Stood,
}

impl Driver {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            tasks: FuturesUnordered::new(),
            requests: HashMap::new(),
            busy: 0,
            waiting: VecDeque::new(),
            words: VecDeque::new(),
            is_speaking: false,
            beginnings: 0,
            standing: None,
        }
    }

    /// Runs until the relay is closed.
    pub async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            self.start();
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Send(sent)) => self.sort(*sent),
                    Some(Command::EndSession(of)) => {
                        let shared = self.shared.clone();
                        self.task(async move { Done::Session(of, shared.end_session().await) });
                    }
                    Some(Command::Close) | None => break,
                },
                Some(done) = self.tasks.next() => {
                    // A task that was aborted has been reported already.
                    if let Ok(done) = done {
                        self.done(done);
                    }
                }
            }
        }
        self.tasks.clear();
        let _ = timeout(FAREWELL, self.leave()).await;
        self.shared.tell(RelayEvent::Ended);
    }

    /// Sends the remaining notifications, and ends the session.
    async fn leave(&mut self) {
        for word in self.words.drain(..).collect::<Vec<_>>() {
            let _ = self.shared.say(&word).await;
        }
        if self.shared.options.ends_session {
            let _ = self.shared.end_session().await;
        }
    }

    fn sort(&mut self, (of, message, along, unsent): Sent) {
        let headers = Headers::of(along.headers);
        let is_stateless = self.shared.note(&message, &headers);
        let sending = Sending {
            of,
            message,
            headers,
            resume: along.resume,
            is_stateless,
            unsent,
        };
        if let Some(id) = sending.message.cancels_token() {
            let cancelled = self.cancelled(id);
            // In that era, closing the stream is the only way to cancel a request (R-CAN-05).
            if cancelled.unwrap_or(is_stateless) {
                return self.over(&sending, Ok(()));
            }
        }
        match sending.message.method {
            Some(Method::Initialized) => {
                self.beginnings += 1;
                self.words.push_back(sending);
            }
            Some(Method::Listen) if self.beginnings == 0 => self.request(sending),
            _ if sending.message.token().is_some() => self.waiting.push_back(sending),
            // An answer of the client: the server may need it before it answers other requests.
            _ if sending.message.method_name().is_none() => self.say(sending),
            _ => self.words.push_back(sending),
        }
    }

    /// Cancels a request. Returns whether it belongs to the era without sessions; `None` if it is not
    /// in flight.
    fn cancelled(&mut self, id: &str) -> Option<bool> {
        let is_it = |each: &Sending| each.message.token() == Some(id);
        if let Some(at) = self.waiting.iter().position(is_it) {
            let gone = self.waiting.remove(at)?;
            self.over(&gone, Ok(()));
            // The server has not received it.
            return Some(true);
        }
        let request = self.requests.remove(id)?;
        self.busy -= usize::from(request.counts);
        request.abort.abort();
        let of = request.of;
        self.shared.tell(RelayEvent::Done {
            of,
            outcome: Ok(()),
        });
        Some(request.is_stateless)
    }

    /// Starts the tasks that may run.
    fn start(&mut self) {
        if !self.is_speaking
            && let Some(word) = self.words.pop_front()
        {
            self.is_speaking = true;
            self.say(word);
        }
        let most = self.shared.options.http.max_concurrent.max(1);
        while self.beginnings == 0
            && self.busy < most
            && let Some(sending) = self.waiting.pop_front()
        {
            self.request(sending);
        }
    }

    fn say(&mut self, sending: Sending) {
        let shared = self.shared.clone();
        self.task(async move {
            let outcome = shared.say(&sending).await;
            Done::Said(Box::new(sending), outcome)
        });
    }

    fn request(&mut self, sending: Sending) {
        let Some(id) = sending.message.token().map(Box::from) else {
            return;
        };
        // It stays open for long, and there are few of them.
        let counts = sending.message.method != Some(Method::Listen);
        let (of, is_stateless) = (sending.of, sending.is_stateless);
        let shared = self.shared.clone();
        let abort = self.task(async move {
            let outcome = shared.request(&sending).await;
            Done::Request(Box::new(sending), outcome)
        });
        self.busy += usize::from(counts);
        let request = Request {
            of,
            abort,
            counts,
            is_stateless,
        };
        if let Some(before) = self.requests.insert(id, request) {
            // Two requests have the same id: an answer to the first would answer the second.
            self.busy -= usize::from(before.counts);
            before.abort.abort();
            let of = before.of;
            self.shared.tell(RelayEvent::Done {
                of,
                outcome: Ok(()),
            });
        }
    }

    fn task(&mut self, task: impl Future<Output = Done> + Send + 'static) -> AbortHandle {
        let (abort, registration) = AbortHandle::new_pair();
        self.tasks
            .push(Abortable::new(Box::pin(task), registration));
        abort
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request(sending, outcome) => {
                let id = sending.message.token().unwrap_or_default();
                if let Some(request) = self.requests.remove(id) {
                    self.busy -= usize::from(request.counts);
                }
                self.over(&sending, outcome);
            }
            Done::Said(sending, outcome) => {
                let is_word = sending.message.method_name().is_some();
                self.is_speaking &= !is_word;
                if sending.message.method == Some(Method::Initialized) {
                    self.beginnings -= 1;
                    if outcome.is_ok() {
                        self.stand(sending.headers.clone());
                    }
                }
                self.over(&sending, outcome);
            }
            Done::Session(of, outcome) => self.shared.tell(RelayEvent::Done { of, outcome }),
            Done::Stood => {}
        }
    }

    fn over(&self, sending: &Sending, outcome: Result<(), CarrierError>) {
        sending.unsent.taken();
        let of = sending.of;
        self.shared.tell(RelayEvent::Done { of, outcome });
    }

    /// Opens the stream of messages that belong to no request.
    fn stand(&mut self, headers: Headers) {
        if let Some(before) = self.standing.take() {
            before.abort();
        }
        if self.shared.options.http.standing_stream {
            let shared = self.shared.clone();
            self.standing = Some(self.task(async move {
                shared.stand(&headers).await;
                Done::Stood
            }));
        }
    }
}
