//! Servers of 2024-11-05: one stream for all messages of the server, and a URI to POST to (R-LEG).

use std::sync::Arc;

use tokio::time::timeout;
use url::Url;

use super::carrier::Carrier;
use super::connections::HttpResponse;
use super::event_reader::{EventReader, ServerEvent};
use super::outgoing::OutgoingMessage;
use super::requests::{FollowUp, patience};
use super::response::{BodyKind, ErrorResponse, body_kind};
use crate::error::{CarrierError, CarrierFault, ConnectionError};

/// The stream of such a server, and the URI that it has named.
pub struct LegacyStream {
    pub post: Url,
    response: HttpResponse,
    events: EventReader,
}

impl LegacyStream {
    /// Opens the stream, and waits until it names the URI to POST to.
    ///
    /// # Errors
    /// When there is no such stream, or the URI has another origin.
    pub async fn open(carrier: &Carrier) -> Result<Self, CarrierError> {
        let headers = carrier.headers(&carrier.session());
        let url = carrier.transport.url();
        let mut response = carrier.transport.get(url, headers, None).await?;
        if !response.status().is_success() || body_kind(&response) != BodyKind::Events {
            return Err(ErrorResponse::read(response).await.error);
        }
        let mut events = EventReader::new(carrier.max_message_bytes());
        while let Some(piece) = response.chunk().await? {
            events.push(piece);
            while let Some(found) = events.next() {
                let ServerEvent::Endpoint(uri) = found else {
                    continue;
                };
                let uri = std::str::from_utf8(uri).ok().map(str::trim);
                let post = uri.and_then(|uri| response.url(url).join(uri).ok());
                // R-LEG-03
                let post = post
                    .filter(|post| carrier.transport.is_own(post))
                    .ok_or_else(|| {
                        let why = "the server wants messages posted to another origin";
                        CarrierError::new(CarrierFault::Redirected, why)
                    })?;
                return Ok(Self {
                    post,
                    response,
                    events,
                });
            }
        }
        let why = "the stream ended before it said where to post";
        Err(CarrierError::new(CarrierFault::Broken, why))
    }

    /// Reads the stream to its end, which ends the connection, and returns the reason (R-LEG-06).
    pub async fn read(self, carrier: &Carrier) -> ConnectionError {
        let mut exchange = carrier.exchange(None, None);
        exchange.events = self.events;
        let error = match exchange.deliver_events().await {
            Ok(_) => exchange.read(self.response).await.1,
            Err(error) => error,
        };
        // It is not known which request the overlong answer belongs to.
        match error.fault {
            CarrierFault::TooLong => ConnectionError::Carrier(Box::new(error)),
            _ => ConnectionError::ClosedByPeer,
        }
    }
}

/// Posts a message, whose answer arrives on the stream (R-LEG-04).
pub async fn post(carrier: Arc<Carrier>, url: Url, message: OutgoingMessage) -> FollowUp {
    let session = carrier.session();
    let post = carrier.post(&url, &session, &message);
    let posted = match message.id {
        // The caller's timeout limits this.
        Some(_) => post.await,
        None => match timeout(patience(&carrier, &message), post).await {
            Ok(posted) => posted,
            Err(_) => return FollowUp::Done,
        },
    };
    let failed = match posted {
        Ok(response) if response.status().is_success() => return FollowUp::Done,
        Ok(response) => ErrorResponse::read(response).await.error,
        Err(error) => error,
    };
    if let Some(id) = message.id {
        carrier.engine.lose(id, failed);
    }
    FollowUp::Done
}
