//! The state that all messages of one relay share, and how each is sent and answered.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::Method as Verb;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::watch;

use super::driver::Sending;
use super::{RelayEvent, RelayOptions, Tell};
use crate::error::{CarrierError, CarrierFault};
use crate::io::http::client::connections::HttpResponse;
use crate::io::http::client::event_reader::EventReader;
use crate::io::http::client::exchange::{ClientExchange, MessageSink, Resume, joined, no_answer};
use crate::io::http::client::message_headers::{VERSION, add_message_headers, session_id};
use crate::io::http::client::outgoing::OutgoingMessage;
use crate::io::http::client::response::ErrorResponse;
use crate::io::http::client::transport::{HttpTransport, SESSION};
use crate::json::reader;
use crate::limits::Limits;
use crate::mcp::{Era, Method, Revision};
use crate::message::{Envelope, Kind, Message, batch, decode};

const MAX_DEPTH: usize = Limits::STDIO.max_depth;

/// State that all messages of one relay share.
pub struct RelayState {
    transport: HttpTransport,
    pub options: RelayOptions,
    tell: Tell,
    session: Mutex<RelaySession>,
    /// Bytes of messages that the host has not read yet.
    unread: watch::Sender<usize>,
    /// Bytes of messages that the server has not accepted yet.
    pub unsent: Arc<AtomicUsize>,
}

/// The fields that every message's headers carry.
#[derive(Default)]
struct RelaySession {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// `initialize` has not been answered yet.
    is_opening: bool,
    /// The host's own headers, as given with `notifications/initialized`.
    headers: HeaderMap,
}

/// The valid ones of the headers that the host gives.
pub fn header_map(given: Vec<(String, String)>) -> HeaderMap {
    let header = |(name, value): (String, String)| {
        Some((HeaderName::try_from(name).ok()?, value.try_into().ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in given.into_iter().filter_map(header) {
        headers.insert(name, value);
    }
    headers
}

impl RelayState {
    pub fn new(url: &str, options: RelayOptions, tell: Tell) -> io::Result<Self> {
        let transport = HttpTransport::new(url, options.http.clone())?.staying_on_origin();
        let id = options.session.as_deref().map(HeaderValue::try_from);
        let id = id.transpose().map_err(|_| {
            let why = "the session id has characters that no header may have";
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        let session = RelaySession {
            id,
            ..RelaySession::default()
        };
        Ok(Self {
            transport,
            options,
            tell,
            session: Mutex::new(session),
            unread: watch::Sender::new(0),
            unsent: Arc::default(),
        })
    }

    pub fn tell(&self, arrived: RelayEvent) {
        (self.tell)(arrived);
    }

    /// The host has read messages of that many bytes.
    pub fn was_read(&self, bytes: usize) {
        self.unread
            .send_modify(|unread| *unread = unread.saturating_sub(bytes));
    }

    fn session(&self) -> MutexGuard<'_, RelaySession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a message determines for later ones, as it is sent. Returns whether its revision
    /// belongs to the era without sessions.
    pub fn note(&self, message: &OutgoingMessage, headers: &HeaderMap) -> bool {
        let mut session = self.session();
        if message.method == Some(Method::Initialize) {
            // An earlier attempt says nothing about this one.
            session.version = None;
            session.is_opening = true;
        } else if let Some(version) = headers.get(VERSION) {
            session.version = Some(version.clone());
        } else if let Some(version) = message.repeated().version {
            session.version = HeaderValue::from_str(&version).ok();
        }
        if message.method == Some(Method::Initialized) {
            session.headers = headers.clone();
        }
        let version = session.version.as_ref().and_then(|it| it.to_str().ok());
        let revision = version.and_then(Revision::parse);
        revision.is_some_and(|revision| revision.era() == Era::Stateless)
    }

    fn headers(&self, own: &HeaderMap) -> HeaderMap {
        let session = self.session();
        let mut headers = HeaderMap::new();
        for (name, value) in [(SESSION, &session.id), (VERSION, &session.version)] {
            if let Some(value) = value {
                headers.insert(name, value.clone());
            }
        }
        headers.extend(own.clone());
        headers
    }

    async fn post(&self, sending: &Sending) -> Result<HttpResponse, CarrierError> {
        let message = &sending.message;
        let mut headers = HeaderMap::new();
        if sending.is_stateless {
            let target = message.repeated().target;
            add_message_headers(&mut headers, message.method_name(), target.as_deref());
        }
        headers.extend(match message.method {
            Some(Method::Initialize) => sending.headers.clone(),
            _ => self.headers(&sending.headers),
        });
        let posted = self
            .transport
            .post(self.transport.url(), headers, message)
            .await;
        sending.unsent.taken();
        posted
    }

    /// Sends a notification, or an answer of the client.
    pub async fn notify(&self, sending: &Sending) -> Result<(), CarrierError> {
        let response = self.post(sending).await?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(self.lost(ErrorResponse::read(response).await.error)),
        }
    }

    /// Ends the session, if there is one.
    pub async fn end_session(&self) -> Result<(), CarrierError> {
        let headers = match &*self.session() {
            RelaySession { id: None, .. } => return Ok(()),
            session => session.headers.clone(),
        };
        let headers = self.headers(&headers);
        let url = self.transport.url();
        let response = self
            .transport
            .send(Verb::DELETE, url, &headers, None)
            .await?;
        match response.status().as_u16() {
            // 404: there is no such session any more. 405: the server does not let clients end
            // sessions.
            200..300 | 404 | 405 => {
                self.session().id = None;
                Ok(())
            }
            _ => Err(ErrorResponse::read(response).await.error),
        }
    }

    /// Receives what answers the message of that number. The stream is resumed with the headers
    /// `resume`, if there are any.
    fn exchange(
        &self,
        of: Option<u64>,
        resume: Option<&HeaderMap>,
    ) -> ClientExchange<'_, ToHost<'_>> {
        let sink = ToHost {
            relay: self,
            of,
            is_answered: false,
        };
        ClientExchange {
            events: EventReader::new(self.options.max_event_bytes),
            resume: resume.map(|own| Resume {
                url: self.transport.url(),
                headers: self.headers(own),
            }),
            ..ClientExchange::new(&self.transport, sink, self.options.max_message_bytes)
        }
    }

    /// Sends a request and receives everything that answers it.
    pub async fn request(&self, sending: &Sending) -> Result<(), CarrierError> {
        let of = Some(sending.of);
        if let Some(position) = &sending.resume {
            let position = HeaderValue::try_from(position)
                .map_err(|_| no_answer("the position has characters that no header may have"))?;
            let mut exchange = self.exchange(of, Some(&sending.headers));
            exchange.events = exchange.events.from(position);
            return exchange.follow(None).await.map_err(|it| self.lost(it));
        }
        let response = self.post(sending).await?;
        if !response.status().is_success() {
            return self.refused(of, response).await;
        }
        if sending.message.method == Some(Method::Initialize) {
            let id = session_id(response.headers());
            let name = id.as_ref().and_then(|id| id.to_str().ok());
            self.tell(RelayEvent::Session(name.map(Into::into)));
            self.session().id = id;
        }
        let resume = (!sending.is_stateless).then_some(&sending.headers);
        let received = self.exchange(of, resume).receive(response).await;
        received.map_err(|error| self.lost(error))
    }

    /// Interprets an error status for a request: an error in the body answers it.
    async fn refused(&self, of: Option<u64>, response: HttpResponse) -> Result<(), CarrierError> {
        let response = ErrorResponse::read(response).await;
        if !response.wants_credentials()
            && let Ok(message) = Message::parse(&response.json, MAX_DEPTH)
            && message.as_ref().kind() == Kind::Error
        {
            self.hand_over(of, message);
            return Ok(());
        }
        Err(self.lost(response.error))
    }

    /// The error for a refusal; it may mean that the session has ended.
    fn lost(&self, mut error: CarrierError) -> CarrierError {
        if error.status == Some(404) && self.session().id.is_some() {
            error.fault = CarrierFault::SessionLost;
        }
        error
    }

    /// Opens the stream of messages that belong to no request, and reads it as long as there is one.
    pub async fn stand(&self, headers: &HeaderMap) {
        let mut exchange = self.exchange(None, Some(headers));
        exchange.is_standing = true;
        // No request waits for an event that is too long.
        exchange.events = exchange.events.skipping();
        // A server need not have such a stream.
        let _ = exchange.follow(None).await;
    }

    /// Passes a message to the host. Returns whether it is an answer.
    fn hand_over(&self, of: Option<u64>, message: Message) -> bool {
        let answers = of.is_some() && answers(&message);
        if answers {
            self.learn_version(&message);
        }
        self.unread
            .send_modify(|unread| *unread += message.bytes().len());
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

impl fmt::Debug for RelayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayState")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Passes messages and positions to the host.
struct ToHost<'a> {
    relay: &'a RelayState,
    /// The number of the message that they answer.
    of: Option<u64>,
    is_answered: bool,
}

impl MessageSink for ToHost<'_> {
    async fn ready(&self) {
        let most = self.relay.options.unread_bytes;
        let mut unread = self.relay.unread.subscribe();
        // The sender exists as long as the relay.
        let _ = unread.wait_for(|unread| *unread <= most).await;
    }

    /// Invalid JSON fails the request; if it belongs to none, it is reported as [`RelayEvent::Bad`].
    async fn deliver(&mut self, message: &[&[u8]]) -> Result<(), CarrierError> {
        match Message::parse(&joined(message), MAX_DEPTH) {
            Ok(message) => self.is_answered |= self.relay.hand_over(self.of, message),
            Err(error) if self.of.is_none() => self.relay.tell(RelayEvent::Bad(error)),
            Err(error) => return Err(no_answer(format!("the answer is not a message: {error}"))),
        }
        Ok(())
    }

    fn is_answered(&self) -> bool {
        self.is_answered
    }

    fn reached(&mut self, position: &HeaderValue) {
        let of = self.of;
        let position = String::from_utf8_lossy(position.as_bytes()).into_owned();
        self.relay.tell(RelayEvent::Position { of, position });
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

/// Counts the bytes of one message until the server has accepted them.
#[derive(Debug)]
pub struct Unsent {
    bytes: AtomicUsize,
    of_all: Arc<AtomicUsize>,
}

impl Unsent {
    pub fn new(message: &OutgoingMessage, of_all: &Arc<AtomicUsize>) -> Self {
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
