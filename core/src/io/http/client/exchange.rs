//! Receives what answers one request, as JSON or as a stream of events, and passes it to a sink. A stream
//! that breaks off is resumed after the last event that arrived (R-SSE-04).

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderValue};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::connections::HttpResponse;
use super::event_reader::{EventReader, ServerEvent};
use super::response::{BodyKind, ErrorResponse, body_kind, read_body};
use super::transport::HttpTransport;
use crate::error::{CarrierError, CarrierFault};

/// How long a stream may stay open after the answer; if it ends by itself, its connection can be
/// reused.
const LINGER: Duration = Duration::from_secs(1);

/// Receives the messages of one exchange.
pub trait MessageSink {
    /// Waits until the receiver has room for more. Nothing is read before.
    fn ready(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Takes a message in the pieces in which it arrived; it is not validated.
    ///
    /// # Errors
    /// When the message fails the exchange.
    fn deliver(
        &mut self,
        message: &[&[u8]],
    ) -> impl Future<Output = Result<(), CarrierError>> + Send;

    /// Whether the request is answered, or nobody waits for its answer any more.
    fn is_answered(&self) -> bool;

    /// The stream was read up to the event of this id.
    fn reached(&mut self, _position: &HeaderValue) {}
}

/// The answer to one request, or the stream of messages that belong to no request.
pub struct ClientExchange<'a, S> {
    pub transport: &'a HttpTransport,
    pub sink: S,
    pub events: EventReader,
    /// Longest JSON body, in bytes.
    pub max_body_bytes: usize,
    /// The request that continues the stream; `None` if the stream cannot be resumed.
    pub resume: Option<Resume<'a>>,
    /// Whether this is the stream of no request: it is requested again and again, also from its start.
    pub is_standing: bool,
    /// How long to read on after the answer.
    pub linger: Duration,
    /// Whether the server has opened the stream.
    pub was_open: bool,
}

/// The URL and the headers of the GET that continues a stream.
pub struct Resume<'a> {
    pub url: &'a Url,
    pub headers: HeaderMap,
}

impl<'a, S: MessageSink> ClientExchange<'a, S> {
    /// An exchange whose stream cannot be resumed.
    pub fn new(transport: &'a HttpTransport, sink: S, max_body_bytes: usize) -> Self {
        Self {
            transport,
            sink,
            events: EventReader::new(max_body_bytes),
            max_body_bytes,
            resume: None,
            is_standing: false,
            linger: LINGER,
            was_open: false,
        }
    }

    /// Reads a response to its end: until the request is answered, or nobody waits for it any more.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn receive(&mut self, response: HttpResponse) -> Result<(), CarrierError> {
        match body_kind(&response) {
            BodyKind::Json => self.receive_json(response).await,
            BodyKind::Events => self.follow(Some(response)).await,
            BodyKind::Other => {
                let status = response.status();
                let why = format!("a body that is neither JSON nor events, with status {status}");
                Err(CarrierError {
                    status: Some(status.as_u16()),
                    ..no_answer(why)
                })
            }
        }
    }

    async fn receive_json(&mut self, mut response: HttpResponse) -> Result<(), CarrierError> {
        self.sink.ready().await;
        let body = read_body(&mut response, self.max_body_bytes).await?;
        let body: Vec<_> = body.iter().map(|piece| &**piece).collect();
        self.sink.deliver(&body).await?;
        match self.sink.is_answered() {
            true => Ok(()),
            false => Err(no_answer("the body holds no answer to the request")),
        }
    }

    /// Reads a stream until the request is answered. A stream that breaks off is requested again where
    /// that is possible; without `first` it is requested at once.
    ///
    /// # Errors
    /// The last failure, the server's refusal to continue the stream, or an event that fails it.
    pub async fn follow(&mut self, first: Option<HttpResponse>) -> Result<(), CarrierError> {
        let options = &self.transport.options;
        let (mut stream, mut failure, mut failures) = (first, None, 0);
        loop {
            let mut asked = Duration::ZERO;
            if let Some(response) = stream.take() {
                self.was_open = true;
                let (came, error) = self.read(response).await;
                if self.sink.is_answered() {
                    return Ok(());
                }
                if matches!(error.fault, CarrierFault::TooLong | CarrierFault::NoAnswer) {
                    return Err(error);
                }
                failures = if came { 0 } else { failures + 1 };
                failure = Some(error);
                self.events.restart();
            } else if let Some(error) = &failure {
                failures += 1;
                asked = options.left_alone(error);
            }
            if let Some(error) = failure.take() {
                let is_over =
                    self.events.position().is_none() || failures > options.resume.attempts;
                if self.resume.is_none() || is_over && !self.is_standing {
                    return Err(error);
                }
                sleep(self.events.wait(failures, &options.resume).max(asked)).await;
                if self.sink.is_answered() {
                    return Ok(());
                }
            }
            match self.request_stream().await {
                Ok(response)
                    if response.status().is_success()
                        && body_kind(&response) == BodyKind::Events =>
                {
                    stream = Some(response);
                }
                Ok(response) => {
                    let error = ErrorResponse::read(response).await.error;
                    if !matches!(error.status, Some(429 | 500..)) {
                        return Err(error);
                    }
                    failure = Some(error);
                }
                Err(error) => failure = Some(error),
            }
        }
    }

    async fn request_stream(&self) -> Result<HttpResponse, CarrierError> {
        let Some(Resume { url, headers }) = &self.resume else {
            return Err(no_answer("the stream cannot be requested"));
        };
        let position = self.events.position();
        self.transport.get(url, headers.clone(), position).await
    }

    /// Reads events to the end of the connection, until a while after the answer, or until an event
    /// fails the exchange. Returns whether any event arrived, and why the reading ended.
    pub async fn read(&mut self, mut response: HttpResponse) -> (bool, CarrierError) {
        let (mut came, mut end) = (false, None);
        loop {
            self.sink.ready().await;
            let next = match self.sink.is_answered() {
                false => response.chunk().await,
                true => {
                    let end = *end.get_or_insert_with(|| Instant::now() + self.linger);
                    timeout_at(end, response.chunk()).await.unwrap_or(Ok(None))
                }
            };
            match next {
                Ok(Some(piece)) => self.events.push(piece),
                Ok(None) => {
                    let why = "the stream ended before the answer";
                    return (came, CarrierError::new(CarrierFault::Broken, why));
                }
                Err(error) => return (came, error),
            }
            match self.deliver_events().await {
                Ok(any) => came |= any,
                Err(error) => return (true, error),
            }
        }
    }

    /// Delivers the events that have arrived completely. Returns whether there was any.
    pub async fn deliver_events(&mut self) -> Result<bool, CarrierError> {
        let mut came = false;
        loop {
            let event = self.events.next();
            let is_last = event.is_none();
            came |= !is_last;
            if let Some(ServerEvent::Message(message)) = event {
                self.sink.deliver(&[message]).await?;
            }
            if let Some(position) = self.events.new_position() {
                came = true;
                self.sink.reached(position);
            }
            if is_last {
                break;
            }
        }
        self.events.fault().map_or(Ok(came), Err)
    }
}

/// The pieces of a message as one.
pub fn joined<'a>(pieces: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match pieces {
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(pieces.concat()),
    }
}

pub fn no_answer(why: impl Into<Box<str>>) -> CarrierError {
    CarrierError::new(CarrierFault::NoAnswer, why)
}
