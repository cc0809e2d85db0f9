//! Follows a stream of events that answers a request, over all the connections that it takes.

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::HeaderValue;
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::{Kind, Refusal, kind};
use super::engine::Engine;
use super::events::{Events, Found};
use super::link::failure;
use super::options::HttpClientOptions;
use crate::error::{CarrierError, CarrierFault};

/// How long a stream may stay open after the answer; if it ends by itself, its connection can be
/// reused.
pub const LINGER: Duration = Duration::from_secs(1);

/// A stream, and the engine that receives its messages.
pub struct Stream<'a> {
    pub engine: &'a Engine,
    pub options: &'a HttpClientOptions,
    pub events: &'a mut Events,
    /// Prepares a message that answers the request of that id for the engine.
    pub taken: fn(&[u8], u64) -> Cow<'_, [u8]>,
}

impl Stream<'_> {
    /// Reads until the request is answered, or nobody waits for it any more. A stream that breaks off
    /// is requested through `again`, after the last event that arrived.
    ///
    /// # Errors
    /// Why there is no answer: the last failure, or the server's refusal to resume.
    pub async fn follow<F>(
        mut self,
        id: u64,
        first: Response,
        again: Option<impl Fn(HeaderValue) -> F>,
    ) -> Result<(), CarrierError>
    where
        F: Future<Output = Result<Response, CarrierError>>,
    {
        let resume = &self.options.resume;
        let (mut response, mut failures) = (first, 0);
        loop {
            let (came, mut why) = self.read(response, Some(id)).await;
            if !self.engine.awaits(id) {
                return Ok(());
            }
            failures = if came { 0 } else { failures + 1 };
            let mut asked = Duration::ZERO;
            response = loop {
                if let Some(fault) = self.events.fault() {
                    return Err(fault);
                }
                let position = self
                    .events
                    .position()
                    .filter(|_| failures <= resume.attempts);
                let (Some(again), Some(position)) = (&again, position.cloned()) else {
                    return Err(why);
                };
                sleep(self.events.wait(failures, resume).max(asked)).await;
                if !self.engine.awaits(id) {
                    return Ok(());
                }
                match again(position).await {
                    Err(error) => why = error,
                    Ok(response)
                        if response.status().is_success() && kind(&response) == Kind::Events =>
                    {
                        break response;
                    }
                    Ok(response) => {
                        let Refusal { error, .. } = Refusal::read(response).await;
                        let passes = matches!(error.status, Some(429 | 500..));
                        if !passes {
                            return Err(error);
                        }
                        asked = self.options.left_alone(&error);
                        why = error;
                    }
                }
                failures += 1;
            };
            self.events.resume();
        }
    }

    /// Reads events to the end of the connection, until [`LINGER`] after `id` was answered, or until an
    /// event is too long. Returns whether any event arrived, and why the reading ended.
    pub async fn read(&mut self, mut response: Response, id: Option<u64>) -> (bool, CarrierError) {
        let (mut came, mut end) = (false, None);
        loop {
            let next = match id.is_some_and(|id| !self.engine.awaits(id)) {
                false => response.chunk().await,
                true => {
                    let end = *end.get_or_insert_with(|| Instant::now() + LINGER);
                    timeout_at(end, response.chunk()).await.unwrap_or(Ok(None))
                }
            };
            match next {
                Ok(Some(piece)) => self.events.push(piece),
                Ok(None) => {
                    let why = "the stream ended before the answer";
                    return (came, CarrierError::new(CarrierFault::Broken, why));
                }
                Err(error) => return (came, failure(error)),
            }
            let before = self.events.position().cloned();
            while let Some(found) = self.events.next() {
                came = true;
                if let Found::Message(message) = found {
                    let message = (self.taken)(message, id.unwrap_or_default());
                    self.engine.deliver(&[message]).await;
                }
            }
            came |= before.as_ref() != self.events.position();
            if let Some(fault) = self.events.fault() {
                return (came, fault);
            }
        }
    }
}
