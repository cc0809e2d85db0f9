//! Begins a new session in place of one that has ended (R-SES-05).

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::Response;
use tokio::time::timeout;

use super::answer::{Kind, Refusal, body, kind};
use super::carrier::Carrier;
use super::events::{Events, Found};
use super::link::failure;
use super::outgoing::Outgoing;
use crate::error::{CarrierError, CarrierFault};
use crate::json::{number, reader};
use crate::limits::MAX_SUBSCRIPTIONS;
use crate::mcp::Method;

/// The messages that began the session, and the settings made since: log level and subscriptions.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    initialize: Option<Outgoing>,
    initialized: Option<Outgoing>,
    level: Option<Outgoing>,
    subscriptions: HashMap<String, Outgoing>,
}

impl Opening {
    /// Records a message that a new session must repeat.
    pub fn note(&mut self, message: &Outgoing) {
        let of = |place: &mut Option<Outgoing>| *place = Some(message.clone());
        match message.method {
            Some(Method::Initialize) => of(&mut self.initialize),
            Some(Method::Initialized) => of(&mut self.initialized),
            Some(Method::SetLevel) => of(&mut self.level),
            Some(Method::Subscribe) => {
                if let Some(uri) = message.param(&["uri"])
                    && self.subscriptions.len() < MAX_SUBSCRIPTIONS
                {
                    self.subscriptions.insert(uri, message.clone());
                }
            }
            Some(Method::Unsubscribe) => {
                if let Some(uri) = message.param(&["uri"]) {
                    self.subscriptions.remove(&uri);
                }
            }
            _ => {}
        }
    }
}

/// Why there is no new session.
pub enum Unrenewed {
    /// It may be tried again.
    Failed(CarrierError),
    /// The server now speaks another revision, so nothing that was negotiated holds.
    Changed,
}

/// Begins a new session as the first one was begun, within the handshake timeout, since everything
/// waits for it. The negotiated revision must stay the same.
///
/// # Errors
/// Why there is no new session.
pub async fn renew(carrier: Arc<Carrier>, opening: Opening) -> Result<(), Unrenewed> {
    let patience = carrier.engine.handle().config().limits.handshake_timeout;
    let renewed = timeout(patience, begin_anew(carrier, opening)).await;
    renewed.unwrap_or_else(|_| {
        let why = "the server took too long to begin another session";
        Err(Unrenewed::Failed(CarrierError::new(
            CarrierFault::TimedOut,
            why,
        )))
    })
}

async fn begin_anew(carrier: Arc<Carrier>, opening: Opening) -> Result<(), Unrenewed> {
    let failed = |why: &str| Unrenewed::Failed(CarrierError::new(CarrierFault::SessionLost, why));
    let Opening {
        initialize: Some(initialize),
        initialized: Some(initialized),
        level,
        subscriptions,
    } = opening
    else {
        return Err(failed("the session has ended"));
    };
    let session = carrier.session();
    let url = carrier.link.url();
    let asked = carrier.post(url, &session, &initialize).await;
    let mut response = asked.map_err(Unrenewed::Failed)?;
    if !response.status().is_success() {
        return Err(Unrenewed::Failed(Refusal::read(response).await.error));
    }
    let head = response.headers().clone();
    let id = initialize.id.unwrap_or_default();
    let answer = answer(&mut response, id, carrier.max_len()).await;
    let answer = answer.map_err(Unrenewed::Failed)?;
    let version = reader::find_path(&answer, &["result", "protocolVersion"]);
    let version = version.and_then(reader::as_str);
    let agreed = carrier.engine.handle().revision();
    if version.as_deref() != agreed.map(|revision| revision.name()) {
        return Err(Unrenewed::Changed);
    }
    let session = carrier.next_session(&head);
    let again = level.into_iter().chain(subscriptions.into_values());
    for message in [initialized].into_iter().chain(again) {
        let told = carrier.post(url, &session, &message).await;
        let told = told.map_err(Unrenewed::Failed)?;
        // A setting that fails, such as a subscription that is no longer possible, is no reason to give
        // up.
        if message.id.is_none() && !told.status().is_success() {
            return Err(Unrenewed::Failed(Refusal::read(told).await.error));
        }
    }
    // A session is used only once it has begun completely.
    carrier.begin_session(session);
    Ok(())
}

/// The answer to a request, from JSON or events, as validated JSON.
async fn answer(response: &mut Response, id: u64, max_len: usize) -> Result<String, CarrierError> {
    let none = || CarrierError::new(CarrierFault::NoAnswer, "initialize was not answered");
    match kind(response) {
        Kind::Json => {
            let body = body(response, max_len).await?.concat();
            checked(&body, id).ok_or_else(none)
        }
        Kind::Events => {
            let mut events = Events::new(max_len);
            while let Some(piece) = response.chunk().await.map_err(failure)? {
                events.push(piece);
                let mut answer = None;
                while let Some(found) = events.next() {
                    if let Found::Message(message) = found {
                        answer = answer.or_else(|| checked(message, id));
                    }
                }
                if let Some(answer) = answer {
                    return Ok(answer);
                }
                if let Some(fault) = events.fault() {
                    return Err(fault);
                }
            }
            Err(none())
        }
        Kind::Other => Err(none()),
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
