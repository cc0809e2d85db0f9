//! Sends one message of the engine, and interprets what the server makes of it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;

use super::carrier::{Carrier, ClientSession};
use super::outgoing::OutgoingMessage;
use super::response::ErrorResponse;
use crate::error::{CarrierError, CarrierFault, RequestError};
use crate::mcp::Method;
use crate::mcp::code::{HEADER_MISMATCH, METHOD_NOT_FOUND};

/// What the driver must do after a message.
pub enum FollowUp {
    /// Nothing.
    Done,
    /// Replace the session of that generation, which has ended, and send the message again, if there is
    /// one: it was not accepted.
    RenewSession(u64, Option<OutgoingMessage>),
    /// List the tools, then send the call again: the tool needs other headers than its last known
    /// schema says (R-HDR-09).
    ListTools(OutgoingMessage),
    /// Try 2024-11-05, since the server does not understand this `initialize`.
    TryLegacy(OutgoingMessage, CarrierError),
}

/// Why a request has no answer.
enum Unanswered {
    /// The request fails with this error.
    Lost(RequestError),
    /// The driver goes on with this.
    Later(FollowUp),
}

impl From<CarrierError> for Unanswered {
    fn from(error: CarrierError) -> Self {
        Self::Lost(error.into())
    }
}

/// Sends one request; its caller receives the answer or the error.
pub async fn request(carrier: Arc<Carrier>, message: OutgoingMessage) -> FollowUp {
    let Some(id) = message.id else {
        return FollowUp::Done;
    };
    match ask(&carrier, id, message).await {
        Ok(()) => FollowUp::Done,
        Err(Unanswered::Later(follow_up)) => follow_up,
        Err(Unanswered::Lost(error)) => {
            carrier.engine.lose(id, error);
            FollowUp::Done
        }
    }
}

async fn ask(carrier: &Carrier, id: u64, message: OutgoingMessage) -> Result<(), Unanswered> {
    let mut session = carrier.session();
    let url = carrier.transport.url();
    let response = carrier.post(url, &session, &message).await?;
    if !response.status().is_success() {
        return Err(refused(id, &session, message, response).await);
    }
    if message.method == Some(Method::Initialize) {
        carrier.begin_session(carrier.next_session(response.headers()));
        session = carrier.session();
    }
    let resumes = (!carrier.is_stateless(&message)).then_some(&*session);
    let received = carrier.exchange(Some(id), resumes).receive(response).await;
    received.map_err(|mut error| {
        if error.fault == CarrierFault::Refused && error.status == Some(404) {
            error.fault = CarrierFault::SessionLost;
        }
        error.into()
    })
}

/// Interprets an error status for a request.
async fn refused(
    id: u64,
    session: &ClientSession,
    message: OutgoingMessage,
    response: Response,
) -> Unanswered {
    let response = ErrorResponse::read(response).await;
    let wants_credentials = response.wants_credentials();
    let ErrorResponse { error, peer, .. } = response;
    let code = peer.as_ref().map(|peer| peer.code);
    let is_answer = response.id == Some(id);
    let unknown_method = is_answer && code == Some(METHOD_NOT_FOUND);
    let status = error.status.unwrap_or_default();
    if status == 404 && session.id.is_some() && !unknown_method && !message.renewed {
        return Unanswered::Later(FollowUp::RenewSession(session.generation, Some(message)));
    }
    match (peer, message.method) {
        _ if wants_credentials => error.into(),
        (Some(_), Some(Method::CallTool)) if code == Some(HEADER_MISMATCH) && !message.relisted => {
            Unanswered::Later(FollowUp::ListTools(message))
        }
        (Some(peer), _) if is_answer || status == 400 => Unanswered::Lost(RequestError::Peer(peer)),
        (_, Some(Method::Initialize)) if error.is_incomprehension() => {
            Unanswered::Later(FollowUp::TryLegacy(message, error))
        }
        _ => error.into(),
    }
}

/// How long the server may take to accept a notification or an answer. Nothing else limits that time,
/// and the message occupies one of the concurrent requests.
pub fn patience(carrier: &Carrier, message: &OutgoingMessage) -> Duration {
    let limits = &carrier.engine.handle().config().limits;
    match message.method {
        // Part of the handshake, which everything waits for.
        Some(Method::Initialized) => limits.handshake_timeout,
        _ => limits.request_timeout,
    }
}

/// Sends a notification or an answer.
pub async fn notify(carrier: Arc<Carrier>, message: OutgoingMessage) -> FollowUp {
    let session = carrier.session();
    let post = carrier.post(carrier.transport.url(), &session, &message);
    match timeout(patience(&carrier, &message), post).await {
        // The message belonged to that session and is of no use in another.
        Ok(Ok(response)) if response.status().as_u16() == 404 && session.id.is_some() => {
            FollowUp::RenewSession(session.generation, None)
        }
        // Requests that depend on the message have their own timeout.
        _ => FollowUp::Done,
    }
}

/// Reads the stream of messages that belong to no request, as long as the session lasts (R-HTP-11);
/// returns at once if the server has none.
pub async fn stand(carrier: Arc<Carrier>) -> FollowUp {
    let session = carrier.session();
    let mut exchange = carrier.exchange(None, Some(&session));
    exchange.is_standing = true;
    // No request waits for an event that is too long.
    exchange.events = exchange.events.skipping();
    match exchange.follow(None).await {
        Err(error) if error.status == Some(404) && exchange.was_open && session.id.is_some() => {
            FollowUp::RenewSession(session.generation, None)
        }
        // 405: the server has no such stream. 404 at the first attempt: it does not route GET at all,
        // which says nothing about the session.
        _ => FollowUp::Done,
    }
}
