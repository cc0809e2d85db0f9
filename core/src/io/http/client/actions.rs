//! Actions over HTTP: each a POST of its own, answered with JSON or with a stream of its parts.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::super::pieces::messages;
use super::answer::{Kind, Refusal, body, kind};
use super::engine::Engine;
use super::events::{Events, Found};
use super::link::{Link, failure, refused};
use crate::action::{Version, is_streamed};
use crate::error::{CarrierError, CarrierFault};
use crate::io::wait::{Alarm, Bell};
use crate::json::{number, reader};

const VERSION: HeaderName = HeaderName::from_static("mcp-version");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Carries the actions of one client.
pub struct Actions {
    engine: Arc<Engine>,
    link: Arc<Link>,
    bell: Arc<Bell>,
    alarm: Alarm,
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Actions {
    pub fn new(engine: Engine, link: Link, bell: Arc<Bell>) -> Self {
        Self {
            engine: Arc::new(engine),
            link: Arc::new(link),
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
            self.engine.turn(Instant::now());
            if self.engine.is_closed() {
                return Poll::Ready(());
            }
            for message in messages(self.engine.take_output()) {
                let request = Bytes::from(message.concat());
                let (engine, link) = (self.engine.clone(), self.link.clone());
                self.under_way.push(Box::pin(carry(engine, link, request)));
            }
            if let Poll::Ready(Some(())) = self.under_way.poll_next_unpin(cx) {
                continue;
            }
            let alarmed = self.alarm.poll(self.engine.poll_timeout(), cx);
            if !self.bell.watch(cx) && !alarmed && !self.engine.has_output() {
                return Poll::Pending;
            }
        }
    }
}

/// One action, from its request to its answer.
async fn carry(engine: Arc<Engine>, link: Arc<Link>, request: Bytes) {
    let text = std::str::from_utf8(&request).unwrap_or_default();
    let id = reader::find_path(text, &["metadata", "request_id"]);
    let id = id
        .and_then(reader::as_str)
        .and_then(|id| number::as_u64(&id));
    let Some(id) = id else { return };
    let streamed = is_streamed(text);
    if let Err(error) = exchange(&engine, &link, id, (request, streamed)).await {
        engine.lose(id, error);
    }
}

async fn exchange(
    engine: &Engine,
    link: &Link,
    id: u64,
    (request, streamed): (Bytes, bool),
) -> Result<(), CarrierError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, if streamed { EVENTS } else { JSON });
    let newest = Version::SUPPORTED.last().map(ToString::to_string);
    if let Some(version) = newest.and_then(|version| HeaderValue::try_from(version).ok()) {
        headers.insert(VERSION, version);
    }
    let sent = link.send(Method::POST, link.url(), headers, Some(request));
    let mut response = sent.await?;
    let max_len = engine.handle().config().limits.max_message_bytes;
    match kind(&response) {
        Kind::Events => {
            let mut events = Events::new(max_len);
            while engine.awaits(id) {
                let Some(piece) = response.chunk().await.map_err(failure)? else {
                    break;
                };
                events.push(piece);
                while let Some(Found::Message(message)) = events.next() {
                    engine.deliver(&[named(message, id)]).await;
                }
                if let Some(fault) = events.fault() {
                    return Err(fault);
                }
            }
        }
        Kind::Json => {
            let answer = body(&mut response, max_len).await?.concat();
            // The body says what became of it, whatever the status (R-ACT-22).
            let is_answer = reader::find(std::str::from_utf8(&answer).unwrap_or("{}"), "status");
            if is_answer.is_none() {
                return Err(refused(&response, &String::from_utf8_lossy(&answer)));
            }
            engine.deliver(&[named(&answer, id)]).await;
        }
        Kind::Other => return Err(Refusal::read(response).await.error),
    }
    match engine.awaits(id) {
        true => Err(CarrierError::new(
            CarrierFault::Broken,
            "the stream ended before its answer",
        )),
        false => Ok(()),
    }
}

/// An answer under the id of its request, for which its exchange vouches: not every server echoes
/// ids where it need not (R-ACT-04).
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
