//! Begins a new session in place of one that has ended (R-SES-05).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::carrier::Carrier;
use super::exchange::{ClientExchange, MessageSink, joined};
use super::outgoing::OutgoingMessage;
use super::response::ErrorResponse;
use crate::error::{CarrierError, CarrierFault};
use crate::json::{number, reader};
use crate::limits::MAX_SUBSCRIPTIONS;
use crate::mcp::Method;

/// The messages that began the session, and the settings made since: log level and subscriptions.
#[derive(Clone, Debug, Default)]
pub struct SessionSetup {
    initialize: Option<OutgoingMessage>,
    initialized: Option<OutgoingMessage>,
    level: Option<OutgoingMessage>,
    subscriptions: HashMap<String, OutgoingMessage>,
}

impl SessionSetup {
    /// Records a message that a new session must repeat.
    pub fn note(&mut self, message: &OutgoingMessage) {
        let of = |place: &mut Option<OutgoingMessage>| *place = Some(message.kept());
        match message.method {
            Some(Method::Initialize) => of(&mut self.initialize),
            Some(Method::Initialized) => of(&mut self.initialized),
            Some(Method::SetLevel) => of(&mut self.level),
            Some(Method::Subscribe) => {
                if let Some(uri) = message.uri()
                    && self.subscriptions.len() < MAX_SUBSCRIPTIONS
                {
                    self.subscriptions.insert(uri, message.kept());
                }
            }
            Some(Method::Unsubscribe) => {
                if let Some(uri) = message.uri() {
                    self.subscriptions.remove(&uri);
                }
            }
            _ => {}
        }
    }
}

/// Why there is no new session.
pub enum RenewalError {
    /// It may be tried again.
    Failed(CarrierError),
    /// The server now speaks another revision, so the negotiated state no longer holds.
    Changed,
}

impl From<CarrierError> for RenewalError {
    fn from(error: CarrierError) -> Self {
        Self::Failed(error)
    }
}

/// Begins a new session as the first one was begun, within the handshake timeout, since everything
/// waits for it. The negotiated revision must stay the same.
///
/// # Errors
/// Why there is no new session.
pub async fn renew(carrier: Arc<Carrier>, setup: SessionSetup) -> Result<(), RenewalError> {
    let patience = carrier.engine.handle().config().limits.handshake_timeout;
    let renewed = timeout(patience, begin_anew(carrier, setup)).await;
    renewed.unwrap_or_else(|_| {
        let why = "the server took too long to begin another session";
        Err(CarrierError::new(CarrierFault::TimedOut, why).into())
    })
}

async fn begin_anew(carrier: Arc<Carrier>, setup: SessionSetup) -> Result<(), RenewalError> {
    let SessionSetup {
        initialize: Some(initialize),
        initialized: Some(initialized),
        level,
        subscriptions,
    } = setup
    else {
        return Err(CarrierError::session_lost().into());
    };
    let url = carrier.transport.url();
    let response = carrier.post(url, &carrier.session(), &initialize).await?;
    if !response.status().is_success() {
        return Err(ErrorResponse::read(response).await.error.into());
    }
    let next = carrier.next_session(response.headers());
    let sink = InitializeResult {
        id: initialize.id.unwrap_or_default(),
        answer: None,
    };
    let mut exchange = ClientExchange::new(&carrier.transport, sink, carrier.max_message_bytes());
    exchange.linger = Duration::ZERO;
    exchange.receive(response).await?;
    let answer = exchange.sink.answer.unwrap_or_default();
    let version = reader::find_path(&answer, &["result", "protocolVersion"]);
    let version = version.and_then(reader::as_str);
    let agreed = carrier.engine.handle().revision();
    if version.as_deref() != agreed.map(|revision| revision.name()) {
        return Err(RenewalError::Changed);
    }
    let again = level.into_iter().chain(subscriptions.into_values());
    for message in [initialized].into_iter().chain(again) {
        let response = carrier.post(url, &next, &message).await?;
        // A setting that fails, such as a subscription that is no longer possible, is no reason to give
        // up.
        if message.id.is_none() && !response.status().is_success() {
            return Err(ErrorResponse::read(response).await.error.into());
        }
    }
    // A session is used only once it has begun completely.
    carrier.begin_session(next);
    Ok(())
}

/// Keeps the answer to `initialize`, as validated JSON.
struct InitializeResult {
    id: u64,
    answer: Option<String>,
}

impl MessageSink for InitializeResult {
    async fn deliver(&mut self, message: &[&[u8]]) -> Result<(), CarrierError> {
        if self.answer.is_none() {
            self.answer = checked(&joined(message), self.id);
        }
        Ok(())
    }

    fn is_answered(&self) -> bool {
        self.answer.is_some()
    }
}

/// The message, if it is valid JSON and answers that request.
fn checked(message: &[u8], id: u64) -> Option<String> {
    let text = std::str::from_utf8(message).ok()?;
    serde_json::from_str::<&serde_json::value::RawValue>(text).ok()?;
    let text = text.trim();
    let names = |text| reader::find(text, "id").and_then(number::as_u64) == Some(id);
    (text.starts_with('{') && names(text)).then(|| text.to_owned())
}
