//! Actions over HTTP: each is a POST, answered with JSON or with a stream of its parts. A stream that
//! breaks off is resumed with a GET, after the last event that arrived (R-ACT-26).

use std::sync::Arc;

use hyper::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::carrier::Carrier;
use super::connections::HttpResponse;
use super::exchange::{Resume, no_answer};
use super::failure::refused;
use super::outgoing::OutgoingMessage;
use super::requests::FollowUp;
use super::response::{BodyKind, ErrorResponse, body_kind, read_body};
use super::transport::{EVENTS, JSON};
use crate::action::{STREAM, Version, is_streamed};
use crate::error::{CarrierError, CarrierFault};
use crate::json::reader;

const VERSION: HeaderName = HeaderName::from_static("mcp-version");

/// Sends one action; its caller receives the answer or the error.
pub async fn request(carrier: Arc<Carrier>, message: OutgoingMessage) -> FollowUp {
    if let Some(id) = message.id
        && let Err(error) = exchange(&carrier, id, message).await
    {
        carrier.engine.lose(id, error);
    }
    FollowUp::Done
}

async fn exchange(
    carrier: &Carrier,
    id: u64,
    message: OutgoingMessage,
) -> Result<(), CarrierError> {
    let transport = &carrier.transport;
    let mut headers = HeaderMap::new();
    let newest = Version::SUPPORTED.last().map(ToString::to_string);
    if let Some(version) = newest.and_then(|version| HeaderValue::try_from(version).ok()) {
        headers.insert(VERSION, version);
    }
    let mut resuming = headers.clone();
    resuming.insert(ACCEPT, EVENTS);
    headers.insert(
        ACCEPT,
        if is_streamed(message.text()) {
            EVENTS
        } else {
            JSON
        },
    );
    let response = transport.post(transport.url(), headers, &message).await?;
    match body_kind(&response) {
        BodyKind::Json => receive_json(carrier, id, response).await,
        BodyKind::Other => Err(ErrorResponse::read(response).await.error),
        BodyKind::Events => {
            let url = stream_url(transport.url());
            let mut exchange = carrier.exchange(Some(id), None);
            exchange.sink.complete = Some(named);
            exchange.resume = Some(Resume {
                url: &url,
                headers: resuming,
            });
            let received = exchange.follow(Some(response)).await;
            let has_position = exchange.events.position().is_some();
            received.map_err(|error| broken_off(error, has_position))
        }
    }
}

async fn receive_json(
    carrier: &Carrier,
    id: u64,
    mut response: HttpResponse,
) -> Result<(), CarrierError> {
    let answer = read_body(&mut response, carrier.max_message_bytes()).await?;
    let answer = answer.concat();
    // The body tells the outcome, whatever the status (R-ACT-22).
    let text = std::str::from_utf8(&answer).unwrap_or("{}");
    if reader::find(text, "status").is_none() {
        return Err(refused(&response, &String::from_utf8_lossy(&answer)));
    }
    carrier
        .engine
        .deliver(Some(id), &[&named(&answer, id)])
        .await;
    match carrier.engine.awaits(id) {
        true => Err(no_answer("the body holds no answer to the request")),
        false => Ok(()),
    }
}

/// The URL at which a stream is resumed.
fn stream_url(actions: &Url) -> Url {
    let mut url = actions.clone();
    url.set_path(&format!("{}{STREAM}", actions.path().trim_end_matches('/')));
    url
}

/// The error of an action whose stream has broken off.
fn broken_off(error: CarrierError, has_position: bool) -> CarrierError {
    if error.fault == CarrierFault::TooLong {
        return error;
    }
    let told = match has_position {
        false => "it has no ids to go on from",
        true => &error.why,
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
