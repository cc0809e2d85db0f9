//! One message, from its POST to the end of its answer; and the stream of messages of no request.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method as Verb, Response};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::driver::Sending;
use super::{RelayEvent, RelayOptions, Tell};
use crate::error::{CarrierError, CarrierFault};
use crate::io::http::client::answer::{Kind as Body, REFUSAL_BYTES, Refusal, body, kind};
use crate::io::http::client::carrier::{EITHER, EVENTS, JSON, LAST_EVENT, named};
use crate::io::http::client::events::{Events, Found};
use crate::io::http::client::follow::LINGER;
use crate::io::http::client::link::{Link, SESSION, failure, refused};
use crate::io::http::client::mirror;
use crate::io::http::client::outgoing::Outgoing;
use crate::json::reader;
use crate::limits::Limits;
use crate::mcp::{Era, Method, Revision};
use crate::message::{Envelope, Kind, Message, batch, decode};

const MAX_DEPTH: usize = Limits::STDIO.max_depth;

/// State that all messages of one relay share.
pub struct Shared {
    link: Link,
    pub options: RelayOptions,
    tell: Tell,
    session: Mutex<Session>,
    pub room: Room,
    /// Bytes of messages that the server has not accepted yet.
    pub unsent: Arc<AtomicUsize>,
}

/// The fields that every message's headers carry.
#[derive(Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// `initialize` has not been answered yet.
    is_opening: bool,
    /// The host's own headers, as given with `notifications/initialized`.
    headers: Headers,
}

/// Headers given by the host.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

impl Headers {
    pub fn of(given: Vec<(String, String)>) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), value.try_into()) {
                headers.insert(name, value);
            }
        }
        Self(headers)
    }
}

impl Shared {
    pub fn new(link: Link, options: RelayOptions, tell: Tell) -> io::Result<Self> {
        let id = options.session.as_deref().map(HeaderValue::try_from);
        let id = id.transpose().map_err(|_| {
            let why = "a session has no such name";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        let session = Session {
            id,
            ..Session::default()
        };
        Ok(Self {
            link,
            room: Room::new(options.unread_bytes),
            options,
            tell,
            session: Mutex::new(session),
            unsent: Arc::default(),
        })
    }

    pub fn tell(&self, arrived: RelayEvent) {
        (self.tell)(arrived);
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a message determines for later ones, as it is sent. Returns whether its revision
    /// belongs to the era without sessions.
    pub fn note(&self, message: &Outgoing, headers: &Headers) -> bool {
        let mut session = self.session();
        if message.method == Some(Method::Initialize) {
            // An earlier attempt says nothing about this one.
            session.version = None;
            session.is_opening = true;
        } else if let Some(version) = headers.0.get(mirror::VERSION) {
            session.version = Some(version.clone());
        } else if let Some(version) = message.version() {
            session.version = version.try_into().ok();
        }
        if message.method == Some(Method::Initialized) {
            session.headers = headers.clone();
        }
        let version = session.version.as_ref().and_then(|it| it.to_str().ok());
        let revision = version.and_then(Revision::parse);
        revision.is_some_and(|revision| revision.era() == Era::Stateless)
    }

    fn headers(&self, accept: HeaderValue) -> HeaderMap {
        let session = self.session();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept);
        let said = [(SESSION, &session.id), (mirror::VERSION, &session.version)];
        for (name, value) in said {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        headers
    }

    async fn post(&self, sending: &Sending) -> Result<Response, CarrierError> {
        let message = &sending.message;
        let mut headers = self.headers(EITHER);
        headers.insert(CONTENT_TYPE, JSON);
        if message.method == Some(Method::Initialize) {
            headers.remove(SESSION);
            headers.remove(mirror::VERSION);
        }
        if sending.is_stateless {
            mirror::say(&mut headers, message);
        }
        headers.extend(sending.headers.0.clone());
        let posted = self.link.post(self.link.url(), headers, message).await;
        sending.unsent.taken();
        posted
    }

    async fn get(
        &self,
        position: Option<&HeaderValue>,
        own: &Headers,
    ) -> Result<Response, CarrierError> {
        let mut headers = self.headers(EVENTS);
        headers.extend(own.0.clone());
        if let Some(position) = position {
            headers.insert(LAST_EVENT, position.clone());
        }
        self.link
            .send(Verb::GET, self.link.url(), headers, None)
            .await
    }

    /// Sends a notification, or an answer of the client.
    pub async fn say(&self, sending: &Sending) -> Result<(), CarrierError> {
        let response = self.post(sending).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.lost(Refusal::read(response).await.error)),
        }
    }

    /// Ends the session, if there is one.
    pub async fn end_session(&self) -> Result<(), CarrierError> {
        if self.session().id.is_none() {
            return Ok(());
        }
        let mut headers = self.headers(EITHER);
        headers.extend(self.session().headers.0.clone());
        let url = self.link.url();
        let response = self.link.send(Verb::DELETE, url, headers, None).await?;
        match response.status().as_u16() {
            // 404: there is no such session any more. 405: the server does not let clients end
            // sessions.
            200..300 | 404 | 405 => {
                self.session().id = None;
                Ok(())
            }
            _ => Err(Refusal::read(response).await.error),
        }
    }

    /// Sends a request and receives everything that answers it.
    pub async fn request(&self, sending: &Sending) -> Result<(), CarrierError> {
        let of = sending.of;
        if let Some(position) = &sending.resume {
            let position = HeaderValue::try_from(position).map_err(|_| {
                let why = "the position cannot stand in a header";
                CarrierError::new(CarrierFault::NoAnswer, why)
            })?;
            let events = Events::new(self.options.max_event_bytes).from(position);
            return self
                .follow(Some(of), None, events, true, &sending.headers)
                .await;
        }
        let mut response = self.post(sending).await?;
        if !response.status().is_success() {
            return self.refused(of, response).await;
        }
        if sending.message.method == Some(Method::Initialize) {
            let id = named(response.headers());
            let name = id.as_ref().and_then(|id| id.to_str().ok());
            self.tell(RelayEvent::Session(name.map(Into::into)));
            self.session().id = id;
        }
        match kind(&response) {
            Body::Json => {
                self.room.wait().await;
                let body = body(&mut response, self.options.max_message_bytes).await?;
                match self.deliver(Some(of), &body.concat())? {
                    true => Ok(()),
                    false => Err(no_answer("the body holds no answer to the request")),
                }
            }
            Body::Events => {
                let events = Events::new(self.options.max_event_bytes);
                let resumes = !sending.is_stateless;
                self.follow(Some(of), Some(response), events, resumes, &sending.headers)
                    .await
            }
            Body::Other => {
                let status = response.status();
                let why = format!("a body that is neither JSON nor events, with status {status}");
                Err(CarrierError {
                    status: Some(status.as_u16()),
                    ..no_answer(why)
                })
            }
        }
    }

    /// Interprets an error status for a request: an error in the body answers it.
    async fn refused(&self, of: u64, mut response: Response) -> Result<(), CarrierError> {
        let is_json = kind(&response) == Body::Json;
        let body = body(&mut response, REFUSAL_BYTES).await.unwrap_or_default();
        let body = body.concat();
        let error = refused(&response, &String::from_utf8_lossy(&body));
        // A response that asks for credentials is not an answer.
        let asks = error.status == Some(401) || error.authenticate.is_some();
        if is_json
            && !asks
            && let Ok(message) = Message::parse(&body, MAX_DEPTH)
            && message.as_ref().kind() == Kind::Error
        {
            self.hand_over(Some(of), message);
            return Ok(());
        }
        Err(self.lost(error))
    }

    /// The error for a refusal; it may mean that the session has ended.
    fn lost(&self, mut error: CarrierError) -> CarrierError {
        if error.status == Some(404) && self.session().id.is_some() {
            error.fault = CarrierFault::SessionLost;
        }
        error
    }

    /// Opens the stream of messages that belong to no request, and reads it as long as there is one.
    pub async fn stand(&self, headers: &Headers) {
        // No request waits for an event that is too long.
        let events = Events::new(self.options.max_event_bytes).skipping();
        // A server need not have such a stream.
        let _ = self.follow(None, None, events, true, headers).await;
    }

    /// Reads a stream until its request is answered. If it breaks off, it is resumed where the server
    /// has given a position; the stream that belongs to no request is always requested again.
    async fn follow(
        &self,
        of: Option<u64>,
        mut response: Option<Response>,
        mut events: Events,
        resumes: bool,
        headers: &Headers,
    ) -> Result<(), CarrierError> {
        let backoff = &self.options.http.resume;
        let (mut failures, mut asked) = (0, Duration::ZERO);
        let mut is_first = response.is_none();
        loop {
            let mut why = no_answer("the stream was not asked for");
            if let Some(response) = response.take() {
                let (came, outcome) = self.read(&mut events, response, of).await;
                match outcome {
                    Ok(()) => return Ok(()),
                    Err(error) if error.fault != CarrierFault::Broken => return Err(error),
                    Err(error) => why = error,
                }
                failures = if came { 0 } else { failures + 1 };
            }
            loop {
                let is_lost = events.position().is_none() || failures > backoff.attempts;
                if of.is_some() && !is_first && (is_lost || !resumes) {
                    return Err(why);
                }
                if !std::mem::take(&mut is_first) {
                    sleep(events.wait(failures, backoff).max(asked)).await;
                }
                match self.get(events.position(), headers).await {
                    Err(error) => why = error,
                    Ok(found) if found.status().is_success() && kind(&found) == Body::Events => {
                        events.resume();
                        response = Some(found);
                        break;
                    }
                    Ok(found) => {
                        let error = Refusal::read(found).await.error;
                        match error.status {
                            Some(429 | 500..) => {
                                asked = self.options.http.left_alone(&error);
                                why = error;
                            }
                            _ => return Err(self.lost(error)),
                        }
                    }
                }
                failures += 1;
            }
        }
    }

    /// Reads events to the end of the connection, or until a while after the answer. Returns whether
    /// any event arrived, and why the reading ended.
    async fn read(
        &self,
        events: &mut Events,
        mut response: Response,
        of: Option<u64>,
    ) -> (bool, Result<(), CarrierError>) {
        let (mut came, mut end) = (false, None);
        let over = |end: Option<Instant>, why| match end {
            Some(_) => Ok(()),
            None => Err(why),
        };
        loop {
            self.room.wait().await;
            let next = match end {
                None => response.chunk().await,
                Some(end) => timeout_at(end, response.chunk()).await.unwrap_or(Ok(None)),
            };
            match next {
                Ok(Some(piece)) => events.push(piece),
                Ok(None) => {
                    let why = "the stream ended before the answer";
                    return (
                        came,
                        over(end, CarrierError::new(CarrierFault::Broken, why)),
                    );
                }
                Err(error) => return (came, over(end, failure(error))),
            }
            loop {
                let before = events.position().cloned();
                let found = events.next();
                let is_over = found.is_none();
                if let Some(Found::Message(message)) = found {
                    came = true;
                    match self.deliver(of, message) {
                        Ok(true) => end = Some(Instant::now() + LINGER),
                        Ok(false) => {}
                        Err(error) => return (came, over(end, error)),
                    }
                }
                if before.as_ref() != events.position()
                    && let Some(position) = events.position()
                {
                    came = true;
                    let position = String::from_utf8_lossy(position.as_bytes()).into_owned();
                    self.tell(RelayEvent::Position { of, position });
                }
                if is_over {
                    break;
                }
            }
            if let Some(fault) = events.fault() {
                return (came, over(end, fault));
            }
        }
    }

    /// Passes a message to the host. Returns whether it answers the request that it belongs to. Invalid
    /// JSON fails that request; if it belongs to none, it is reported as [`RelayEvent::Bad`].
    fn deliver(&self, of: Option<u64>, message: &[u8]) -> Result<bool, CarrierError> {
        match Message::parse(message, MAX_DEPTH) {
            Ok(message) => Ok(self.hand_over(of, message)),
            Err(error) if of.is_none() => {
                self.tell(RelayEvent::Bad(error));
                Ok(false)
            }
            Err(error) => Err(no_answer(format!("what came is no message: {error}"))),
        }
    }

    fn hand_over(&self, of: Option<u64>, message: Message) -> bool {
        let answers = of.is_some() && answers(&message);
        if answers {
            self.learn_version(&message);
        }
        self.room.take(message.bytes().len());
        let message = Box::new(message);
        self.tell(RelayEvent::Message { of, message });
        answers
    }

    /// Stores the negotiated revision, if this message answers `initialize`.
    fn learn_version(&self, message: &Message) {
        let mut session = self.session();
        if !std::mem::take(&mut session.is_opening) {
            return;
        }
        let result = message.as_ref().result().unwrap_or_default();
        let version = reader::find(result, "protocolVersion").and_then(reader::as_str);
        let agreed = version.and_then(|version| Revision::parse(&version));
        session.version = agreed
            .filter(|revision| revision.rules().version_header)
            .map(|revision| HeaderValue::from_static(revision.name()));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Whether a message is an answer, or a batch that contains one.
fn answers(message: &Message) -> bool {
    let is_answer = |kind| matches!(kind, Kind::Response | Kind::Error);
    let kind = message.as_ref().kind();
    if kind != Kind::Batch {
        return is_answer(kind);
    }
    message.frame().into_iter().flat_map(batch).any(|frame| {
        let mut envelope = Envelope::new();
        decode(frame, MAX_DEPTH, &mut envelope).is_ok() && is_answer(envelope.kind())
    })
}

fn no_answer(why: impl Into<Box<str>>) -> CarrierError {
    CarrierError::new(CarrierFault::NoAnswer, why)
}

/// Counts the bytes of one message until the server has accepted them.
#[derive(Debug)]
pub struct Unsent {
    bytes: AtomicUsize,
    of_all: Arc<AtomicUsize>,
}

impl Unsent {
    pub fn new(message: &Outgoing, of_all: &Arc<AtomicUsize>) -> Self {
        let bytes = message.body.len();
        of_all.fetch_add(bytes, Ordering::AcqRel);
        Self {
            bytes: AtomicUsize::new(bytes),
            of_all: of_all.clone(),
        }
    }

    pub fn taken(&self) {
        let bytes = self.bytes.swap(0, Ordering::AcqRel);
        self.of_all.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.taken();
    }
}

/// Counts the bytes that the host has not read yet.
#[derive(Debug)]
pub struct Room {
    taken: AtomicUsize,
    most: usize,
    given: Notify,
}

impl Room {
    fn new(most: usize) -> Self {
        Self {
            taken: AtomicUsize::new(0),
            most,
            given: Notify::new(),
        }
    }

    fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes, Ordering::AcqRel);
    }

    pub fn give(&self, bytes: usize) {
        let less = |taken: usize| Some(taken.saturating_sub(bytes));
        let _ = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        self.given.notify_waiters();
    }

    /// Waits until there is room.
    async fn wait(&self) {
        loop {
            let given = self.given.notified();
            if self.taken.load(Ordering::Acquire) <= self.most {
                return;
            }
            given.await;
        }
    }
}
