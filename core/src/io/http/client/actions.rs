//! Actions over HTTP: each is a POST, answered with JSON or with a stream of its parts. A stream that
//! breaks off is resumed with a GET, after the last event that arrived (R-ACT-26).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, Url};

use super::super::pieces::messages;
use super::answer::{Kind, Refusal, body, kind};
use super::carrier::{EVENTS, JSON, LAST_EVENT};
use super::engine::Engine;
use super::events::Events;
use super::follow::Stream;
use super::link::{Link, refused};
use super::options::HttpClientOptions;
use crate::action::{STREAM, Version, is_streamed};
use crate::error::{CarrierError, CarrierFault};
use crate::io::wait::{Alarm, Notifier};
use crate::json::{number, reader};

const VERSION: HeaderName = HeaderName::from_static("mcp-version");

/// Carries the actions of one client.
pub struct Actions {
    ways: Arc<Ways>,
    bell: Arc<Notifier>,
    alarm: Alarm,
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// State that all actions share.
struct Ways {
    engine: Engine,
    link: Link,
    /// The URL at which a stream is resumed.
    stream: Url,
    options: HttpClientOptions,
}

impl Actions {
    pub fn new(
        engine: Engine,
        link: Link,
        options: HttpClientOptions,
        bell: Arc<Notifier>,
    ) -> Self {
        let mut stream = link.url().clone();
        let path = format!("{}{STREAM}", stream.path().trim_end_matches('/'));
        stream.set_path(&path);
        Self {
            ways: Arc::new(Ways {
                engine,
                link,
                stream,
                options,
            }),
            bell,
            alarm: Alarm::default(),
            under_way: FuturesUnordered::new(),
        }
    }

    /// Drives the connection to its end.
    pub async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.ways.engine.turn(Instant::now());
            if self.ways.engine.is_closed() {
                return Poll::Ready(());
            }
            for message in messages(self.ways.engine.take_output()) {
                let request = Bytes::from(message.concat());
                let carried = carry(self.ways.clone(), request);
                self.under_way.push(Box::pin(carried));
            }
            if let Poll::Ready(Some(())) = self.under_way.poll_next_unpin(cx) {
                continue;
            }
            let alarmed = self.alarm.poll(self.ways.engine.poll_timeout(), cx);
            if !self.bell.watch(cx) && !alarmed && !self.ways.engine.has_output() {
                return Poll::Pending;
            }
        }
    }
}

/// Carries one action, from its request to its answer.
async fn carry(ways: Arc<Ways>, request: Bytes) {
    let text = std::str::from_utf8(&request).unwrap_or_default();
    let id = reader::find_path(text, &["metadata", "request_id"]);
    let id = id
        .and_then(reader::as_str)
        .and_then(|id| number::as_u64(&id));
    let Some(id) = id else { return };
    let streamed = is_streamed(text);
    if let Err(error) = ways.exchange(id, request, streamed).await {
        ways.engine.lose(id, error);
    }
}

impl Ways {
    async fn exchange(&self, id: u64, request: Bytes, streamed: bool) -> Result<(), CarrierError> {
        let (engine, link) = (&self.engine, &self.link);
        let mut headers = headers(if streamed { EVENTS } else { JSON });
        headers.insert(CONTENT_TYPE, JSON);
        let sent = link.send(Method::POST, link.url(), headers, Some(request));
        let mut response = sent.await?;
        let max_len = engine.handle().config().limits.max_message_bytes;
        match kind(&response) {
            Kind::Events => return self.follow(id, response, max_len).await,
            Kind::Json => {
                let answer = body(&mut response, max_len).await?.concat();
                // The body tells the outcome, whatever the status (R-ACT-22).
                let is_answer =
                    reader::find(std::str::from_utf8(&answer).unwrap_or("{}"), "status");
                if is_answer.is_none() {
                    return Err(refused(&response, &String::from_utf8_lossy(&answer)));
                }
                engine.deliver(&[named(&answer, id)]).await;
            }
            Kind::Other => return Err(Refusal::read(response).await.error),
        }
        match engine.awaits(id) {
            true => Err(CarrierError::new(
                CarrierFault::NoAnswer,
                "the body holds no answer to the request",
            )),
            false => Ok(()),
        }
    }

    /// Reads the stream that answers an action to its end.
    async fn follow(&self, id: u64, first: Response, max_len: usize) -> Result<(), CarrierError> {
        let again = |position: HeaderValue| async move {
            let mut headers = headers(EVENTS);
            headers.insert(LAST_EVENT, position);
            self.link
                .send(Method::GET, &self.stream, headers, None)
                .await
        };
        let mut events = Events::new(max_len);
        let stream = Stream {
            engine: &self.engine,
            options: &self.options,
            events: &mut events,
            taken: |message, id| named(message, id).into(),
        };
        let error = match stream.follow(id, first, Some(again)).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        Err(match error.fault {
            CarrierFault::TooLong => error,
            _ => {
                let told = match events.position() {
                    None => "it has no ids to go on from".into(),
                    Some(_) => error.why,
                };
                let why = format!(
                    "the stream of the action broke off and cannot be resumed, so whether it was carried out is not known: {told}"
                );
                CarrierError {
                    fault: CarrierFault::SessionLost,
                    why: why.into(),
                    ..error
                }
            }
        })
    }
}

/// The headers of every request.
fn headers(accept: HeaderValue) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept);
    let newest = Version::SUPPORTED.last().map(ToString::to_string);
    if let Some(version) = newest.and_then(|version| HeaderValue::try_from(version).ok()) {
        headers.insert(VERSION, version);
    }
    headers
}

/// An answer with the id of its request. The exchange shows which request it answers: not every server
/// echoes ids where that is optional (R-ACT-04).
fn named(answer: &[u8], id: u64) -> Vec<u8> {
    let text = std::str::from_utf8(answer).unwrap_or_default().trim();
    if reader::find_path(text, &["metadata", "request_id"]).is_some() {
        return text.as_bytes().to_vec();
    }
    let Some(inside) = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return answer.to_vec();
    };
    let metadata = reader::find(text, "metadata").and_then(|it| it.strip_prefix('{'));
    let mut out = format!("{{\"metadata\":{{\"request_id\":\"{id}\"").into_bytes();
    match metadata.filter(|rest| rest.trim_start() != "}") {
        Some(rest) => {
            out.push(b',');
            out.extend_from_slice(rest.as_bytes());
        }
        None => out.push(b'}'),
    }
    for (key, value) in reader::members(&format!("{{{inside}}}")) {
        if key.raw() != "metadata" {
            out.extend_from_slice(format!(",\"{}\":{value}", key.raw()).as_bytes());
        }
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn an_answer_gets_the_id_that_it_does_not_echo() {
        for (answer, expected) in [
            (
                r#"{"status":"success","data":{}}"#,
                r#"{"metadata":{"request_id":"7"},"status":"success","data":{}}"#,
            ),
            (
                r#" {"status":"success", "metadata":{"server_id":"s"}} "#,
                r#"{"metadata":{"request_id":"7","server_id":"s"},"status":"success"}"#,
            ),
            (
                r#"{"metadata":{},"status":"success"}"#,
                r#"{"metadata":{"request_id":"7"},"status":"success"}"#,
            ),
            (
                r#"{"metadata":{"request_id":"7"}}"#,
                r#"{"metadata":{"request_id":"7"}}"#,
            ),
            ("[]", "[]"),
        ] {
            let named = named(answer.as_bytes(), 7);
            assert_eq!(String::from_utf8(named).unwrap(), expected, "{answer}");
        }
    }
}
