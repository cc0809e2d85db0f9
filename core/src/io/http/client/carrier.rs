//! State that all tasks of one client share, and the HTTP requests that they send.

use std::sync::{Arc, Mutex, PoisonError};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method as Verb, Response, Url};

use super::engine::Engine;
use super::link::{Link, SESSION};
use super::mirror;
use super::options::HttpClientOptions;
use super::outgoing::Outgoing;
use crate::client::Client;
use crate::error::CarrierError;
use crate::mcp::{Era, Method};

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
pub const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// State that all tasks of one client share.
pub struct Carrier {
    pub link: Link,
    pub engine: Engine,
    pub options: HttpClientOptions,
    /// Used to look up tools; does not keep the connection open.
    pub client: Client,
    session: Mutex<Arc<Session>>,
}

/// The current session.
#[derive(Debug, Default)]
pub struct Session {
    /// The number of this session among the sessions of the client.
    pub generation: u64,
    /// The session id; `None` if the server gave none, and always from 2026-07-28 on.
    pub id: Option<HeaderValue>,
}

impl Carrier {
    pub fn new(link: Link, engine: Engine, options: HttpClientOptions, client: Client) -> Self {
        Self {
            link,
            engine,
            options,
            client,
            session: Mutex::default(),
        }
    }

    pub fn session(&self) -> Arc<Session> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }

    /// The session that an answer to `initialize` begins; the server may give it an id (R-SES-01).
    pub fn next_session(&self, head: &HeaderMap) -> Session {
        let id = named(head);
        let generation = self.session().generation + 1;
        Session { generation, id }
    }

    /// Makes a session the current one.
    pub fn begin_session(&self, begins: Session) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        *session = Arc::new(begins);
    }

    pub fn max_len(&self) -> usize {
        self.engine.handle().config().limits.max_message_bytes
    }

    /// The headers of every request of a session.
    pub fn headers(&self, session: &Session) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        let revision = self.engine.handle().revision();
        if let Some(revision) = revision.filter(|revision| revision.rules().version_header) {
            let version = HeaderValue::from_static(revision.name());
            headers.insert(mirror::VERSION, version);
        }
        headers
    }

    /// Posts a message (R-HTP-02, R-HTP-03).
    ///
    /// # Errors
    /// What failed before there was a response.
    pub async fn post(
        &self,
        url: &Url,
        session: &Session,
        message: &Outgoing,
    ) -> Result<Response, CarrierError> {
        let stateless = self.is_stateless(message);
        let mut headers = match message.method {
            Some(Method::Initialize) => HeaderMap::new(),
            _ => self.headers(session),
        };
        headers.insert(ACCEPT, EITHER);
        headers.insert(CONTENT_TYPE, JSON);
        if stateless {
            if let Some(version) = message.version().and_then(|it| it.try_into().ok()) {
                headers.insert(mirror::VERSION, version);
            }
            mirror::say(&mut headers, message);
            if message.method == Some(Method::CallTool)
                && let Some(params) =
                    mirror::name(message).and_then(|tool| self.client.mirrored_arguments(&tool))
            {
                mirror::say_arguments(&mut headers, &params, message.arguments());
            }
        }
        self.link.post(url, headers, message).await
    }

    /// Whether a message belongs to the era without sessions.
    pub fn is_stateless(&self, message: &Outgoing) -> bool {
        let revision = self.engine.handle().revision();
        message.method == Some(Method::Discover)
            || revision.is_some_and(|revision| revision.era() == Era::Stateless)
    }

    /// Requests a stream, from `position` on if there is one (R-SSE-04, R-HTP-11).
    ///
    /// # Errors
    /// What failed before there was a response.
    pub async fn get(
        &self,
        session: &Session,
        position: Option<&HeaderValue>,
    ) -> Result<Response, CarrierError> {
        let mut headers = self.headers(session);
        headers.insert(ACCEPT, EVENTS);
        if let Some(position) = position {
            headers.insert(LAST_EVENT, position.clone());
        }
        let url = self.link.url();
        self.link.send(Verb::GET, url, headers, None).await
    }
}

/// The session id in the headers of a response, if it is valid (R-SES-02).
pub fn named(head: &HeaderMap) -> Option<HeaderValue> {
    let visible = |id: &&HeaderValue| id.as_bytes().iter().all(u8::is_ascii_graphic);
    let id = head.get(SESSION).filter(|id| !id.is_empty());
    id.filter(visible).cloned()
}
