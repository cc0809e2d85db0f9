//! State that all tasks of one client share, and the HTTP requests that they send.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::Method as Verb;
use hyper::header::{HeaderMap, HeaderValue};
use url::Url;

use super::connections::HttpResponse;
use super::engine::{Engine, ToConnection};
use super::exchange::{ClientExchange, Resume};
use super::message_headers as headers;
use super::outgoing::OutgoingMessage;
use super::transport::{HttpTransport, SESSION};
use crate::client::Client;
use crate::error::CarrierError;
use crate::mcp::{Era, Method};

/// State that all tasks of one client share.
pub struct Carrier {
    pub transport: Arc<HttpTransport>,
    pub engine: Engine,
    /// Used to look up tools; does not keep the connection open.
    pub client: Client,
    session: Mutex<Arc<ClientSession>>,
}

/// The current session.
#[derive(Debug, Default)]
pub struct ClientSession {
    /// The number of this session among the sessions of the client.
    pub generation: u64,
    /// The session id; `None` if the server gave none, and always from 2026-07-28 on.
    pub id: Option<HeaderValue>,
}

impl Carrier {
    pub fn new(transport: Arc<HttpTransport>, engine: Engine, client: Client) -> Self {
        Self {
            transport,
            engine,
            client,
            session: Mutex::default(),
        }
    }

    pub fn session(&self) -> Arc<ClientSession> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }

    /// The session that an answer to `initialize` begins; the server may give it an id (R-SES-01).
    pub fn next_session(&self, head: &HeaderMap) -> ClientSession {
        let id = headers::session_id(head);
        let generation = self.session().generation + 1;
        ClientSession { generation, id }
    }

    /// Makes a session the current one.
    pub fn begin_session(&self, begins: ClientSession) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        *session = Arc::new(begins);
    }

    /// Ends the current session on the server (R-SES-06).
    pub async fn end_session(&self) {
        let session = self.session();
        if session.id.is_some() {
            let (url, headers) = (self.transport.url(), self.headers(&session));
            let _ = self.transport.send(Verb::DELETE, url, &headers, None).await;
        }
    }

    pub fn max_message_bytes(&self) -> usize {
        self.engine.handle().config().limits.max_message_bytes
    }

    /// The headers of every request of a session.
    pub fn headers(&self, session: &ClientSession) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        let revision = self.engine.handle().revision();
        if let Some(revision) = revision.filter(|revision| revision.rules().version_header) {
            let version = HeaderValue::from_static(revision.name());
            headers.insert(headers::VERSION, version);
        }
        headers
    }

    /// Posts a message (R-HTP-02, R-HTP-03).
    ///
    /// # Errors
    /// Returns what failed before there was a response.
    pub async fn post(
        &self,
        url: &Url,
        session: &ClientSession,
        message: &OutgoingMessage,
    ) -> Result<HttpResponse, CarrierError> {
        let mut headers = match message.method {
            Some(Method::Initialize) => HeaderMap::new(),
            _ => self.headers(session),
        };
        if self.is_stateless(message) {
            let repeated = message.repeated();
            let version = repeated.version.as_deref();
            if let Some(version) = version.and_then(|it| HeaderValue::from_str(it).ok()) {
                headers.insert(headers::VERSION, version);
            }
            let target = repeated.target.as_deref();
            headers::add_message_headers(&mut headers, message.method_name(), target);
            if message.method == Some(Method::CallTool)
                && let Some(params) = self.client.header_arguments(target.unwrap_or_default())
            {
                headers::add_argument_headers(&mut headers, &params, repeated.arguments);
            }
        }
        self.transport.post(url, headers, message).await
    }

    /// Whether a message belongs to the era without sessions.
    pub fn is_stateless(&self, message: &OutgoingMessage) -> bool {
        let revision = self.engine.handle().revision();
        message.method == Some(Method::Discover)
            || revision.is_some_and(|revision| revision.era() == Era::Stateless)
    }

    /// Receives the answer to the request of this id, or messages that belong to no request. The stream
    /// is resumed within `session`, if there is one.
    pub fn exchange(
        &self,
        id: Option<u64>,
        session: Option<&ClientSession>,
    ) -> ClientExchange<'_, ToConnection<'_>> {
        let sink = ToConnection {
            engine: &self.engine,
            id,
            complete: None,
        };
        ClientExchange {
            resume: session.map(|session| Resume {
                url: self.transport.url(),
                headers: self.headers(session),
            }),
            ..ClientExchange::new(&self.transport, sink, self.max_message_bytes())
        }
    }
}
