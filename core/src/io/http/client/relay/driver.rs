//! Runs the tasks of a relay: requests concurrently, notifications one after the other.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use futures_util::future::AbortHandle;
use hyper::header::HeaderMap;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use super::state::{RelayState, Unsent, header_map};
use super::{RelayEvent, SendOptions};
use crate::error::CarrierError;
use crate::io::http::client::driver::SHUTDOWN_TIMEOUT;
use crate::io::http::client::driver_tasks::DriverTasks;
use crate::io::http::client::outgoing::OutgoingMessage;
use crate::mcp::Method;

/// A command of the host.
#[derive(Debug)]
pub enum Command {
    Send(Box<Sent>),
    EndSession(u64),
    Close,
}

/// A message as the host gave it.
pub type Sent = (u64, OutgoingMessage, SendOptions, Unsent);

/// A message that is queued or being sent.
pub struct Sending {
    pub of: u64,
    pub message: OutgoingMessage,
    pub headers: HeaderMap,
    pub resume: Option<String>,
    /// Whether the message was sent in the era without sessions.
    pub is_stateless: bool,
    pub unsent: Unsent,
}

pub struct RelayDriver {
    state: Arc<RelayState>,
    /// Requests are found by their ids as JSON text.
    tasks: DriverTasks<Box<str>, InFlightRequest, Done>,
    waiting: VecDeque<Sending>,
    notifications: VecDeque<Sending>,
    is_notifying: bool,
    /// How many `notifications/initialized` have not been accepted yet: requests wait for them.
    beginnings: usize,
    standing: Option<AbortHandle>,
}

struct InFlightRequest {
    of: u64,
    is_stateless: bool,
}

enum Done {
    Request(Box<Sending>, Result<(), CarrierError>),
    Notified(Box<Sending>, Result<(), CarrierError>),
    SessionEnded(u64, Result<(), CarrierError>),
    Stood,
}

impl RelayDriver {
    pub fn new(state: Arc<RelayState>) -> Self {
        Self {
            state,
            tasks: DriverTasks::new(),
            waiting: VecDeque::new(),
            notifications: VecDeque::new(),
            is_notifying: false,
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
                    Some(Command::Send(sent)) => self.queue(*sent),
                    Some(Command::EndSession(of)) => {
                        let state = self.state.clone();
                        self.tasks.spawn(Box::pin(async move {
                            Done::SessionEnded(of, state.end_session().await)
                        }));
                    }
                    Some(Command::Close) | None => break,
                },
                // A task that was aborted has been reported already.
                done = poll_fn(|cx| self.tasks.poll_next(cx)) => self.done(done),
            }
        }
        self.tasks.clear();
        let _ = timeout(SHUTDOWN_TIMEOUT, self.shut_down()).await;
        self.state.tell(RelayEvent::Ended);
    }

    /// Sends the remaining notifications, and ends the session.
    async fn shut_down(&mut self) {
        for notification in self.notifications.drain(..) {
            let _ = self.state.notify(&notification).await;
        }
        if self.state.options.ends_session {
            let _ = self.state.end_session().await;
        }
    }

    fn queue(&mut self, (of, message, along, unsent): Sent) {
        let headers = header_map(along.headers);
        let is_stateless = self.state.note(&message, &headers);
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
                self.notifications.push_back(sending);
            }
            Some(Method::Listen) if self.beginnings == 0 => self.request(sending),
            _ if sending.message.token().is_some() => self.waiting.push_back(sending),
            // An answer of the client: the server may need it before it answers other requests.
            _ if sending.message.method_name().is_none() => self.notify(sending),
            _ => self.notifications.push_back(sending),
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
        let request = self.tasks.remove(id)?;
        self.ended(request.of, Ok(()));
        Some(request.is_stateless)
    }

    /// Starts the tasks that may run.
    fn start(&mut self) {
        if !self.is_notifying
            && let Some(notification) = self.notifications.pop_front()
        {
            self.is_notifying = true;
            self.notify(notification);
        }
        let most = self.state.options.http.most_concurrent();
        while self.beginnings == 0
            && self.tasks.counted() < most
            && let Some(sending) = self.waiting.pop_front()
        {
            self.request(sending);
        }
    }

    fn notify(&mut self, sending: Sending) {
        let state = self.state.clone();
        self.tasks.spawn(Box::pin(async move {
            let outcome = state.notify(&sending).await;
            Done::Notified(Box::new(sending), outcome)
        }));
    }

    fn request(&mut self, sending: Sending) {
        let Some(id) = sending.message.token().map(Box::from) else {
            return;
        };
        // It stays open for long, and there are few of them.
        let counts = sending.message.method != Some(Method::Listen);
        let request = InFlightRequest {
            of: sending.of,
            is_stateless: sending.is_stateless,
        };
        let state = self.state.clone();
        let task = Box::pin(async move {
            let outcome = state.request(&sending).await;
            Done::Request(Box::new(sending), outcome)
        });
        let before = self.tasks.request((id, request), counts, task);
        // If two requests have the same id, an answer to the first would answer the second.
        if let Some(before) = before {
            self.ended(before.of, Ok(()));
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request(sending, outcome) => {
                let id = sending.message.token().unwrap_or_default();
                self.tasks.remove(id);
                self.over(&sending, outcome);
            }
            Done::Notified(sending, outcome) => {
                let is_answer = sending.message.method_name().is_none();
                self.is_notifying &= is_answer;
                if sending.message.method == Some(Method::Initialized) {
                    self.beginnings -= 1;
                    if outcome.is_ok() {
                        self.stand(sending.headers.clone());
                    }
                }
                self.over(&sending, outcome);
            }
            Done::SessionEnded(of, outcome) => self.ended(of, outcome),
            Done::Stood => {}
        }
    }

    fn over(&self, sending: &Sending, outcome: Result<(), CarrierError>) {
        sending.unsent.taken();
        self.ended(sending.of, outcome);
    }

    fn ended(&self, of: u64, outcome: Result<(), CarrierError>) {
        self.state.tell(RelayEvent::Done { of, outcome });
    }

    /// Opens the stream of messages that belong to no request.
    fn stand(&mut self, headers: HeaderMap) {
        if let Some(before) = self.standing.take() {
            before.abort();
        }
        if self.state.options.http.standing_stream {
            let state = self.state.clone();
            self.standing = Some(self.tasks.spawn(Box::pin(async move {
                state.stand(&headers).await;
                Done::Stood
            })));
        }
    }
}
