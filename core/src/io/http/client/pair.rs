//! Servers of 2024-11-05: one stream for all messages of the server, and a URI to POST to (R-LEG).

use std::sync::Arc;

use reqwest::{Response, Url};
use tokio::time::timeout;

use super::answer::{Kind, Refusal, kind};
use super::carrier::Carrier;
use super::events::{Events, Found};
use super::exchange::Outcome;
use super::link::failure;
use super::outgoing::Outgoing;
use crate::error::{CarrierError, CarrierFault, ConnectionError};

/// The stream of such a server, and the URI that it has named.
pub struct Pair {
    pub post: Url,
    response: Response,
    events: Events,
}

impl Pair {
    /// Opens the stream, and waits until it names the URI to POST to.
    ///
    /// # Errors
    /// When there is no such stream, or the URI has another origin.
    pub async fn open(carrier: &Carrier) -> Result<Self, CarrierError> {
        let mut response = carrier.get(&carrier.session(), None).await?;
        if !response.status().is_success() || kind(&response) != Kind::Events {
            return Err(Refusal::read(response).await.error);
        }
        let mut events = Events::new(carrier.max_len());
        while let Some(piece) = response.chunk().await.map_err(failure)? {
            events.push(piece);
            while let Some(found) = events.next() {
                let Found::Endpoint(uri) = found else {
                    continue;
                };
                let uri = std::str::from_utf8(uri).ok().map(str::trim);
                let post = uri.and_then(|uri| response.url().join(uri).ok());
                // R-LEG-03
                let post = post
                    .filter(|post| carrier.link.is_own(post))
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
    pub async fn read(mut self, carrier: &Carrier) -> ConnectionError {
        while let Some(found) = self.events.next() {
            if let Found::Message(message) = found {
                carrier.engine.deliver(&[message]).await;
            }
        }
        if self.events.fault().is_none() {
            carrier.read(&mut self.events, self.response, None).await;
        }
        // It is not known which request the overlong answer belongs to.
        match self.events.fault() {
            Some(fault) => ConnectionError::Carrier(Box::new(fault)),
            None => ConnectionError::ClosedByPeer,
        }
    }
}

/// Posts a message, whose answer arrives on the stream (R-LEG-04).
pub async fn post(carrier: Arc<Carrier>, url: Url, message: Outgoing) -> Outcome {
    let session = carrier.session();
    let post = carrier.post(&url, &session, &message);
    let posted = match message.id {
        // The caller's timeout limits this.
        Some(_) => post.await,
        None => match timeout(carrier.patience(&message), post).await {
            Ok(posted) => posted,
            Err(_) => return Outcome::Over,
        },
    };
    let failed = match posted {
        Ok(response) if response.status().is_success() => return Outcome::Over,
        Ok(response) => Refusal::read(response).await.error,
        Err(error) => error,
    };
    if let Some(id) = message.id {
        carrier.engine.lose(id, failed);
    }
    Outcome::Over
}
