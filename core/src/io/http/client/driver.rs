//! Polls the parts of a client in turn: the engine's output, and the tasks that send it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use url::Url;

use super::super::message_bytes::messages;
use super::actions;
use super::carrier::Carrier;
use super::driver_tasks::{DriverTask, DriverTasks};
use super::legacy_sse::{self, LegacyStream};
use super::outgoing::OutgoingMessage;
use super::renewal::{RenewalError, SessionSetup, renew};
use super::requests::{FollowUp, notify, request, stand};
use crate::error::{CarrierError, CarrierFault, ConnectionError, RequestError};
use crate::io::wait::{Alarm, Notifier};
use crate::limits::Limits;
use crate::mcp::{Era, Method};

/// How long sending the last messages of a connection may take.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Drives the connection of one client.
pub struct ClientDriver {
    carrier: Arc<Carrier>,
    notifier: Arc<Notifier>,
    alarm: Alarm,
    protocol: Protocol,
    tasks: DriverTasks<u64, (), Done>,
    /// Requests that wait for others to end.
    waiting: Queue,
    /// Notifications and answers that wait to be sent, and the number being sent.
    notifications: Queue,
    notifying: usize,
    /// Calls that wait for the list of tools, and how often it was fetched for such calls.
    awaiting_tools: Vec<OutgoingMessage>,
    listings: u64,
    /// A session is being begun: everything else waits.
    is_beginning: bool,
    /// A session that has ended could not be replaced, and that is tried again.
    is_recovering: bool,
    /// A session has begun, and its stream of messages that belong to no request was not opened yet.
    may_stand: bool,
    setup: SessionSetup,
}

/// How messages are sent.
enum Protocol {
    Streamable,
    /// Messages are POSTed to this URL; answers arrive on a separate stream (2024-11-05).
    LegacySse(Url),
    Actions,
}

/// The result of a task.
enum Done {
    Request(u64, FollowUp),
    Notified(FollowUp),
    /// `notifications/initialized` was sent.
    Begun(FollowUp),
    Stood(FollowUp),
    Renewed(Result<(), RenewalError>),
    Recovered,
    ToolsListed,
    LegacyTried(
        OutgoingMessage,
        CarrierError,
        Result<Box<LegacyStream>, CarrierError>,
    ),
    LegacyEnded(ConnectionError),
}

/// Messages in order, with the number of their bytes.
#[derive(Default)]
struct Queue {
    messages: VecDeque<OutgoingMessage>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, message: OutgoingMessage) {
        self.bytes += message.body.len();
        if self.messages.len() == self.messages.capacity() {
            // Most clients have one at a time: `VecDeque` would allocate four.
            self.messages.reserve_exact(self.messages.len().max(1));
        }
        self.messages.push_back(message);
    }

    fn pop(&mut self) -> Option<OutgoingMessage> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.body.len();
        Some(message)
    }

    /// Removes the request of this id. Returns whether it was there.
    fn remove(&mut self, id: u64) -> bool {
        let at = self.messages.iter().position(|it| it.id == Some(id));
        let removed = at.and_then(|at| self.messages.remove(at));
        self.bytes -= removed.as_ref().map_or(0, |message| message.body.len());
        removed.is_some()
    }
}

impl ClientDriver {
    pub fn new(carrier: Arc<Carrier>, notifier: Arc<Notifier>, actions: bool) -> Self {
        Self {
            carrier,
            notifier,
            alarm: Alarm::default(),
            protocol: match actions {
                true => Protocol::Actions,
                false => Protocol::Streamable,
            },
            tasks: DriverTasks::new(),
            waiting: Queue::default(),
            notifications: Queue::default(),
            notifying: 0,
            awaiting_tools: Vec::new(),
            listings: 0,
            is_beginning: false,
            is_recovering: false,
            may_stand: false,
            setup: SessionSetup::default(),
        }
    }

    /// Drives the connection to its end, then sends what is left and ends the session.
    pub async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
        // Requests in flight are dropped: over 2026-07-28, that is how they are cancelled (R-CAN-05).
        self.tasks.clear();
        // A server of 2024-11-05 notices by the end of its stream.
        if matches!(self.protocol, Protocol::Streamable) {
            // Boxed, since every connection would hold its room.
            let shut_down = Box::pin(self.shut_down());
            let _ = timeout(SHUTDOWN_TIMEOUT, shut_down).await;
        }
    }

    /// Sends the remaining notifications and answers, and ends the session.
    async fn shut_down(&mut self) {
        // In a session that has not begun there is nothing to send, but it must be ended.
        if !self.is_beginning {
            self.take_output();
            let left = self.notifications.messages.drain(..);
            join_all(left.map(|message| notify(self.carrier.clone(), message))).await;
        }
        self.carrier.end_session().await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.carrier.engine.turn(Instant::now());
            if self.carrier.engine.is_closed() {
                return Poll::Ready(());
            }
            self.take_output();
            // Before the requests: a server that asks the client while it works on the first of them may drop what it
            // has no stream for.
            self.stand();
            self.start();
            if let Poll::Ready(done) = self.tasks.poll_next(cx) {
                self.done(done);
                continue;
            }
            // Messages that arrived meanwhile may have produced output, or changed the timers.
            if self.may_take() && self.carrier.engine.has_output() {
                continue;
            }
            let due = self.carrier.engine.poll_timeout();
            let is_due = self.alarm.poll(due, cx);
            if !self.notifier.watch(cx) && !is_due {
                return Poll::Pending;
            }
        }
    }

    fn limits(&self) -> &Limits {
        &self.carrier.engine.handle().config().limits
    }

    /// Whether more of the engine's output may be queued here; otherwise it stays in the engine and is
    /// subject to its limits. Waiting requests do not count: they may wait for notifications or answers
    /// that are queued.
    fn may_take(&self) -> bool {
        self.notifications.bytes <= self.limits().output_mark_bytes
    }

    fn take_output(&mut self) {
        if !self.may_take() || !self.carrier.engine.has_output() {
            return;
        }
        for mut message in messages(self.carrier.engine.take_output()) {
            message.retain(|piece| !piece.is_empty());
            let body = match &mut *message {
                [] => continue,
                [only] => std::mem::take(only),
                pieces => pieces.concat().into(),
            };
            self.queue(match self.protocol {
                Protocol::Actions => OutgoingMessage::action(body),
                _ => OutgoingMessage::new(body),
            });
        }
    }

    fn queue(&mut self, message: OutgoingMessage) {
        if let Some(id) = message.cancels() {
            return self.cancelled(id, message);
        }
        self.setup.note(&message);
        if message.method == Some(Method::Initialize) {
            // Only a probe that has timed out can precede it.
            self.tasks.abort_requests();
        }
        match message.method {
            _ if message.id.is_none() => self.notifications.push(message),
            // It stays open for long, and there are few of them.
            Some(Method::Listen) => self.request(message, false),
            _ => self.wait(message),
        }
    }

    fn wait(&mut self, message: OutgoingMessage) {
        if self.waiting.bytes > self.limits().output_cap_bytes {
            return self.lose(&message, RequestError::Overloaded);
        }
        self.waiting.push(message);
    }

    /// Handles the cancellation of a request.
    fn cancelled(&mut self, id: u64, message: OutgoingMessage) {
        if self.waiting.remove(id) {
            return;
        }
        let mut stale = self.awaiting_tools.iter();
        if let Some(at) = stale.position(|it| it.id == Some(id)) {
            self.awaiting_tools.swap_remove(at);
            return;
        }
        self.tasks.remove(&id);
        // R-CAN-05, R-CAN-07
        let revision = self.carrier.engine.handle().revision();
        if revision.is_some_and(|revision| revision.era() == Era::Handshake) {
            self.notifications.push(message);
        }
    }

    /// Starts the tasks that may run.
    fn start(&mut self) {
        // Notifications and answers never wait for requests, but they have the same limit of their own.
        let most = self.carrier.transport.options.most_concurrent();
        while !self.is_beginning
            && self.notifying < most
            && let Some(message) = self.notifications.pop()
        {
            self.notifying += 1;
            let carrier = self.carrier.clone();
            if let Protocol::LegacySse(url) = &self.protocol {
                let posted = legacy_sse::post(carrier, url.clone(), message);
                self.tasks
                    .spawn(Box::pin(async { Done::Notified(posted.await) }));
                continue;
            }
            self.is_beginning = message.method == Some(Method::Initialized);
            let done = match self.is_beginning {
                true => Done::Begun,
                false => Done::Notified,
            };
            self.tasks.spawn(Box::pin(
                async move { done(notify(carrier, message).await) },
            ));
        }
        while !self.is_beginning
            && self.tasks.counted() < most
            && let Some(message) = self.waiting.pop()
        {
            self.request(message, true);
        }
    }

    fn request(&mut self, mut message: OutgoingMessage, counts: bool) {
        // A request that was given up while it waited is not sent, nor is one for a session that has ended.
        let may_send = |id: &u64| self.carrier.engine.may_send(*id);
        let Some(id) = message.id.filter(may_send) else {
            return;
        };
        message.listings = self.listings;
        let carrier = self.carrier.clone();
        let task: DriverTask<Done> = match &self.protocol {
            Protocol::Streamable => {
                Box::pin(async move { Done::Request(id, request(carrier, message).await) })
            }
            Protocol::LegacySse(url) => {
                let post = legacy_sse::post(carrier, url.clone(), message);
                Box::pin(async move { Done::Request(id, post.await) })
            }
            Protocol::Actions => {
                Box::pin(async move { Done::Request(id, actions::request(carrier, message).await) })
            }
        };
        self.tasks.request((id, ()), counts, task);
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Request(id, follow_up) => {
                self.tasks.remove(&id);
                self.follow_up(follow_up);
            }
            Done::Notified(follow_up) => {
                self.notifying -= 1;
                self.follow_up(follow_up);
            }
            Done::Stood(follow_up) => self.follow_up(follow_up),
            Done::Begun(follow_up) => {
                self.notifying -= 1;
                self.is_beginning = false;
                self.may_stand = true;
                self.follow_up(follow_up);
            }
            Done::Renewed(Ok(())) => {
                self.is_beginning = false;
                self.may_stand = true;
            }
            Done::Renewed(Err(RenewalError::Failed(error))) => {
                self.is_beginning = false;
                while let Some(message) = self.waiting.pop() {
                    self.lose(&message, error.clone());
                }
                self.recover();
            }
            Done::Recovered => self.is_recovering = false,
            Done::Renewed(Err(RenewalError::Changed)) => {
                let why = "the session ended, and the server speaks another revision now";
                let reason = ConnectionError::Handshake(why.into());
                self.carrier.engine.close(reason);
            }
            Done::ToolsListed => {
                self.listings += 1;
                for message in std::mem::take(&mut self.awaiting_tools) {
                    self.wait(message);
                }
            }
            Done::LegacyTried(message, _, Ok(stream)) => {
                self.protocol = Protocol::LegacySse(stream.post.clone());
                let carrier = self.carrier.clone();
                self.tasks.spawn(Box::pin(async move {
                    Done::LegacyEnded(stream.read(&carrier).await)
                }));
                self.wait(message);
            }
            Done::LegacyTried(message, first, Err(error)) => {
                // Unless it redirected, the first error says more than the failure to open a stream.
                let telling = error.fault == CarrierFault::Redirected;
                self.lose(&message, if telling { error } else { first });
            }
            Done::LegacyEnded(reason) => self.carrier.engine.close(reason),
        }
    }

    fn lose(&self, message: &OutgoingMessage, error: impl Into<RequestError>) {
        if let Some(id) = message.id {
            self.carrier.engine.lose(id, error);
        }
    }

    fn follow_up(&mut self, follow_up: FollowUp) {
        let carrier = self.carrier.clone();
        match follow_up {
            FollowUp::Done => {}
            FollowUp::RenewSession(generation, message) => {
                if let Some(mut message) = message {
                    message.renewed = true;
                    self.wait(message);
                }
                // Whichever task finds out first renews the session for all (R-SES-05).
                if generation == carrier.session().generation && !self.is_beginning {
                    self.is_beginning = true;
                    carrier.engine.session_ended();
                    let renewed = renew(carrier, self.setup.clone());
                    self.tasks
                        .spawn(Box::pin(async { Done::Renewed(renewed.await) }));
                }
            }
            FollowUp::ListTools(mut message) => {
                message.relisted = true;
                if message.listings < self.listings {
                    return self.wait(message);
                }
                self.awaiting_tools.push(message);
                if self.awaiting_tools.len() == 1 {
                    self.tasks.spawn(Box::pin(async move {
                        // If this fails, the call fails because of its headers.
                        let _ = carrier.client.list_tools_anew().await;
                        Done::ToolsListed
                    }));
                }
            }
            FollowUp::Recover => self.recover(),
            FollowUp::TryLegacy(message, error) => {
                self.tasks.spawn(Box::pin(async move {
                    let stream = LegacyStream::open(&carrier).await.map(Box::new);
                    Done::LegacyTried(message, error, stream)
                }));
            }
        }
    }

    /// Looks after a session that could not be begun anew, for the stream of messages that belong to no request: a client that
    /// only listens would never find out that the server is back.
    fn recover(&mut self) {
        if !self.reads_stream() || std::mem::replace(&mut self.is_recovering, true) {
            return;
        }
        let carrier = self.carrier.clone();
        self.tasks.spawn(Box::pin(async move {
            let resume = carrier.transport.options.resume;
            for failures in 1.. {
                sleep(resume.spread(failures)).await;
                if carrier.client.ping().await.is_ok() {
                    break;
                }
            }
            Done::Recovered
        }));
    }

    /// Whether somebody reads the stream of messages that belong to no request.
    fn reads_stream(&self) -> bool {
        self.carrier.transport.options.standing_stream && self.carrier.engine.handle().listens()
    }

    /// Opens the stream of messages that belong to no request, when somebody reads them.
    fn stand(&mut self) {
        if self.reads_stream() && std::mem::take(&mut self.may_stand) {
            let stream = stand(self.carrier.clone());
            self.tasks
                .spawn(Box::pin(async { Done::Stood(stream.await) }));
        }
    }
}
