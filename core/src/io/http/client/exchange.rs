//! One message, from its POST to the end of its answer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::HeaderValue;
use tokio::time::timeout;

use super::answer::{Kind, Refusal, body, kind};
use super::carrier::{Carrier, Session};
use super::events::Events;
use super::follow::Stream;
use super::outgoing::Outgoing;
use crate::error::{CarrierError, CarrierFault, RequestError};
use crate::mcp::Method;
use crate::mcp::code::{HEADER_MISMATCH, METHOD_NOT_FOUND};

/// The outcome of a message, if the driver must act on it.
pub enum Outcome {
    /// Nothing is left to do.
    Over,
    /// The session with that generation has ended. The message, if there is one, was not accepted.
    Gone(u64, Option<Outgoing>),
    /// The tool needs other headers than its last known schema says (R-HDR-09).
    Relist(Outgoing),
    /// The server does not understand `initialize`: it may speak 2024-11-05.
    Older(Outgoing, CarrierError),
}

/// Why an exchange has no answer.
enum Failure {
    /// The request fails with this error.
    Lost(RequestError),
    /// The driver goes on with this outcome.
    Passed(Outcome),
}

impl From<CarrierError> for Failure {
    fn from(error: CarrierError) -> Self {
        Self::Lost(error.into())
    }
}

impl Carrier {
    /// Sends one request; its caller receives the answer or the error.
    pub async fn request(self: Arc<Self>, message: Outgoing) -> Outcome {
        let Some(id) = message.id else {
            return Outcome::Over;
        };
        match self.ask(id, message).await {
            Ok(()) => Outcome::Over,
            Err(Failure::Passed(outcome)) => outcome,
            Err(Failure::Lost(error)) => {
                self.engine.lose(id, error);
                Outcome::Over
            }
        }
    }

    async fn ask(&self, id: u64, message: Outgoing) -> Result<(), Failure> {
        let session = self.session();
        let mut response = self.post(self.link.url(), &session, &message).await?;
        if !response.status().is_success() {
            return Err(self.refused(id, &session, message, response).await);
        }
        if message.method == Some(Method::Initialize) {
            self.begin_session(self.next_session(response.headers()));
        }
        match kind(&response) {
            Kind::Json => {
                let body = body(&mut response, self.max_len()).await?;
                self.engine.deliver(&body).await;
                match self.engine.awaits(id) {
                    true => Err(no_answer("the body holds no answer to the request").into()),
                    false => Ok(()),
                }
            }
            Kind::Events => {
                // The session of `initialize` has only just begun.
                let session = match message.method {
                    Some(Method::Initialize) => self.session(),
                    _ => session,
                };
                let resumes = (!self.is_stateless(&message)).then_some(&*session);
                self.follow(id, response, resumes).await
            }
            Kind::Other => {
                let status = response.status();
                let why = format!("a body that is neither JSON nor events, with status {status}");
                Err(CarrierError {
                    status: Some(status.as_u16()),
                    ..no_answer(why)
                }
                .into())
            }
        }
    }

    /// Interprets an error status for a request.
    async fn refused(
        &self,
        id: u64,
        session: &Session,
        message: Outgoing,
        response: Response,
    ) -> Failure {
        let Refusal {
            error,
            peer,
            id: named,
        } = Refusal::read(response).await;
        let status = error.status.unwrap_or_default();
        let code = peer.as_ref().map(|peer| peer.code);
        let is_answer = named == Some(id);
        let unknown_method = is_answer && code == Some(METHOD_NOT_FOUND);
        if status == 404 && session.id.is_some() && !unknown_method && !message.renewed {
            return Failure::Passed(Outcome::Gone(session.generation, Some(message)));
        }
        match (peer, message.method) {
            // A response that asks for credentials is not an answer.
            _ if status == 401 || error.authenticate.is_some() => error.into(),
            (Some(_), Some(Method::CallTool))
                if code == Some(HEADER_MISMATCH) && !message.relisted =>
            {
                Failure::Passed(Outcome::Relist(message))
            }
            (Some(peer), _) if is_answer || status == 400 => {
                Failure::Lost(RequestError::Peer(peer))
            }
            (_, Some(Method::Initialize)) if error.is_incomprehension() => {
                Failure::Passed(Outcome::Older(message, error))
            }
            _ => error.into(),
        }
    }

    /// Reads a stream of events until the request is answered. If the stream breaks off, it is resumed
    /// where the revision allows that.
    async fn follow(
        &self,
        id: u64,
        first: Response,
        resumes: Option<&Session>,
    ) -> Result<(), Failure> {
        let again = resumes.map(|session| {
            move |position: HeaderValue| async move { self.get(session, Some(&position)).await }
        });
        let mut events = Events::new(self.max_len());
        match self.stream(&mut events).follow(id, first, again).await {
            Ok(()) => Ok(()),
            Err(mut error) => {
                if error.fault == CarrierFault::Refused && error.status == Some(404) {
                    error.fault = CarrierFault::SessionLost;
                }
                Err(error.into())
            }
        }
    }

    /// Reads events to the end of the connection, until a while after `id` was answered, or until an
    /// event is too long. Returns whether any event arrived, and why the reading ended.
    pub async fn read(
        &self,
        events: &mut Events,
        response: Response,
        id: Option<u64>,
    ) -> (bool, CarrierError) {
        self.stream(events).read(response, id).await
    }

    fn stream<'a>(&'a self, events: &'a mut Events) -> Stream<'a> {
        Stream {
            engine: &self.engine,
            options: &self.options,
            events,
            taken: |message, _| message.into(),
        }
    }

    /// How long the server may take to accept a notification or an answer. Nothing else limits that
    /// time, and the message occupies one of the concurrent requests.
    pub fn patience(&self, message: &Outgoing) -> Duration {
        let limits = &self.engine.handle().config().limits;
        match message.method {
            // Part of the handshake, which everything waits for.
            Some(Method::Initialized) => limits.handshake_timeout,
            _ => limits.request_timeout,
        }
    }

    /// Sends a notification or an answer.
    pub async fn say(self: Arc<Self>, message: Outgoing) -> Outcome {
        let session = self.session();
        let post = self.post(self.link.url(), &session, &message);
        let Ok(Ok(response)) = timeout(self.patience(&message), post).await else {
            // Requests that depend on the message have their own timeout.
            return Outcome::Over;
        };
        match response.status().as_u16() {
            // The message belonged to that session and is of no use in another.
            404 if session.id.is_some() => Outcome::Gone(session.generation, None),
            _ => Outcome::Over,
        }
    }
}

fn no_answer(why: impl Into<Box<str>>) -> CarrierError {
    CarrierError::new(CarrierFault::NoAnswer, why)
}
