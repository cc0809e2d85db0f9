//! Sends one message of the engine, and interprets what the server makes of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::carrier::{Carrier, ClientSession};
use super::connections::HttpResponse;
use super::outgoing::OutgoingMessage;
use super::response::ErrorResponse;
use crate::error::{CarrierError, CarrierFault, RequestError};
use crate::mcp::Method;
use crate::mcp::code::{HEADER_MISMATCH, METHOD_NOT_FOUND};

/// The next action of the driver after a message.
pub enum FollowUp {
    /// Nothing.
    Done,
    /// Replace the session of that generation, which has ended, and send the message again, if there is
    /// one: it was not accepted.
    RenewSession(u64, Option<OutgoingMessage>),
    /// Find out when the server can be reached again, and whether the session has ended.
    Recover,
    /// List the tools, then send the call again: the tool needs other headers than its last known
    /// schema says (R-HDR-09).
    ListTools(OutgoingMessage),
    /// Try 2024-11-05, since the server does not understand this `initialize`.
    TryLegacy(OutgoingMessage, CarrierError),
}

/// Sends one request; its caller receives the answer or the error.
pub async fn request(carrier: Arc<Carrier>, message: OutgoingMessage) -> FollowUp {
    let Some(id) = message.id else {
        return FollowUp::Done;
    };
    ask(&carrier, id, message).await.unwrap_or_else(|error| {
        carrier.engine.lose(id, error);
        FollowUp::Done
    })
}

async fn ask(
    carrier: &Carrier,
    id: u64,
    message: OutgoingMessage,
) -> Result<FollowUp, RequestError> {
    let mut session = carrier.session();
    let url = carrier.transport.url();
    let response = carrier.post(url, &session, &message).await?;
    if !response.status().is_success() {
        return refused(id, &session, message, response).await;
    }
    if message.method == Some(Method::Initialize) {
        carrier.begin_session(carrier.next_session(response.headers()));
        session = carrier.session();
    }
    let resumes = (!carrier.is_stateless(&message)).then_some(&*session);
    match carrier.exchange(Some(id), resumes).receive(response).await {
        Ok(()) => Ok(FollowUp::Done),
        Err(mut error) => {
            if error.fault == CarrierFault::Refused && error.status == Some(404) {
                error.fault = CarrierFault::SessionLost;
            }
            Err(error.into())
        }
    }
}

/// Interprets an error status for a request.
async fn refused(
    id: u64,
    session: &ClientSession,
    message: OutgoingMessage,
    response: HttpResponse,
) -> Result<FollowUp, RequestError> {
    let response = ErrorResponse::read(response).await;
    let wants_credentials = response.wants_credentials();
    let ErrorResponse { error, peer, .. } = response;
    let code = peer.as_ref().map(|peer| peer.code);
    let is_answer = response.id == Some(id);
    let unknown_method = is_answer && code == Some(METHOD_NOT_FOUND);
    let status = error.status.unwrap_or_default();
    if status == 404 && session.id.is_some() && !unknown_method && !message.renewed {
        return Ok(FollowUp::RenewSession(session.generation, Some(message)));
    }
    match (peer, message.method) {
        _ if wants_credentials => Err(error.into()),
        (Some(_), Some(Method::CallTool)) if code == Some(HEADER_MISMATCH) && !message.relisted => {
            Ok(FollowUp::ListTools(message))
        }
        (Some(peer), _) if is_answer || status == 400 => Err(RequestError::Peer(peer)),
        (_, Some(Method::Initialize)) if error.is_incomprehension() => {
            Ok(FollowUp::TryLegacy(message, error))
        }
        _ => Err(error.into()),
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
        Err(error) if error.status == Some(404) && session.id.is_some() => {
            if exchange.was_open {
                return FollowUp::RenewSession(session.generation, None);
            }
            // At the first attempt: either the session has ended already, which a ping finds out, or the server does
            // not route GET at all.
            match carrier.client.ping().await {
                Ok(()) => FollowUp::Done,
                Err(_) => FollowUp::Recover,
            }
        }
        // 405: the server has no such stream.
        _ => FollowUp::Done,
    }
}
