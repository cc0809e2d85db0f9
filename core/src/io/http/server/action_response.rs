//! Responses to actions: their statuses and headers.

use hyper::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderName, HeaderValue};
use hyper::header::{IF_NONE_MATCH, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::body::HttpBody;
use super::headers::ACTION_VERSION;
use super::response::{self, HttpAnswer, challenge};
use super::sse::SseEncoder;
use crate::action::ErrorType;
use crate::digest;
use crate::io::http::message_bytes::MessageBytes;
use crate::json::reader;

/// The status of an answer (R-ACT-22). An answer of the server itself is 200, except for errors
/// of authentication, authorization and rate limits, for unknown actions, and for a server that reports
/// itself unhealthy.
fn status(answer: &str, reached: bool) -> StatusCode {
    let kind = reader::find_path(answer, &["error", "type"]).and_then(reader::as_str);
    let Some(kind) = kind else {
        return StatusCode::OK;
    };
    match ErrorType::parse(&kind) {
        Some(ErrorType::AuthenticationFailed) => StatusCode::UNAUTHORIZED,
        Some(ErrorType::AuthorizationFailed) => StatusCode::FORBIDDEN,
        Some(ErrorType::ActionNotFound) => StatusCode::NOT_FOUND,
        Some(ErrorType::RateLimitExceeded) => StatusCode::TOO_MANY_REQUESTS,
        // The server reports itself as unhealthy.
        Some(ErrorType::Dependency) if !reached || is_unwell(answer) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ if !reached => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn is_unwell(answer: &str) -> bool {
    reader::find_path(answer, &["error", "details", "healthy"]) == Some("false")
}

/// The response of one whole answer.
pub fn whole(asked: &HeaderMap, message: MessageBytes, reached: bool) -> Response<HttpBody> {
    let text = &joined(&message);
    let mut response = response::json(status(text, reached), message);
    limits(text, response.headers_mut());
    let scope = reader::find_path(text, &["error", "details", "scope"]).and_then(reader::as_str);
    match response.status() {
        StatusCode::UNAUTHORIZED => challenge(&mut response, None),
        StatusCode::FORBIDDEN if scope.is_some() => challenge(&mut response, scope.as_deref()),
        _ => {}
    }
    if let Some(tag) = schema_tag(text) {
        let known = asked.get_all(IF_NONE_MATCH).iter();
        let mut known = known.filter_map(|value| value.to_str().ok());
        let is_known = known.any(|value| {
            value
                .split(',')
                .any(|own| own.trim().trim_start_matches("W/") == tag)
        });
        if is_known {
            response = response::empty(StatusCode::NOT_MODIFIED);
        }
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        let keep = HeaderValue::from_static("private, no-cache");
        response.headers_mut().insert(CACHE_CONTROL, keep);
    }
    response
}

/// The response of one answer that is sent as the only event.
pub fn only_event(message: &MessageBytes, reached: bool) -> Response<HttpBody> {
    let text = joined(message);
    let mut events = SseEncoder::default();
    events.message(None, message);
    let mut response = response::whole_events(events);
    *response.status_mut() = status(&text, reached);
    limits(&text, response.headers_mut());
    response
}

fn joined(message: &MessageBytes) -> String {
    let text = message.iter().flatten().copied().collect();
    String::from_utf8(text).unwrap_or_default()
}

/// Adds the agreed version, which goes with every answer; a refusal is written in the dialect.
pub fn versioned(answer: HttpAnswer, version: &str) -> Response<HttpBody> {
    let mut response = answer.unwrap_or_else(|refusal| response::refused(refusal, true));
    if let Ok(version) = HeaderValue::from_str(version) {
        response.headers_mut().insert(ACTION_VERSION, version);
    }
    response
}

/// The entity tag of the schema in an answer: a strong validator (RFC 9110, 8.8.3).
fn schema_tag(answer: &str) -> Option<String> {
    let data = reader::find(answer, "data")?;
    let actions = reader::find(data, "actions").filter(|it| it.starts_with('{'))?;
    let own = reader::members(actions).next()?.1;
    reader::find(own, "params_schema")?;
    Some(format!("\"{}\"", digest::short(data.as_bytes())))
}

/// Repeats the details of an exceeded rate limit in headers (R-ACT-33).
fn limits(answer: &str, headers: &mut HeaderMap) {
    for (name, header) in [
        ("retry_after_seconds", RETRY_AFTER),
        ("limit", HeaderName::from_static("x-ratelimit-limit")),
        (
            "remaining",
            HeaderName::from_static("x-ratelimit-remaining"),
        ),
        ("reset", HeaderName::from_static("x-ratelimit-reset")),
    ] {
        let value = reader::find_path(answer, &["error", "details", name]);
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(header, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ACT-22: the status of each error type, from the server itself and from the layers before
    /// it.
    #[test]
    fn statuses_of_answers() {
        let answer =
            |kind: &str| format!("{{\"status\":\"error\",\"error\":{{\"type\":\"{kind}\"}}}}");
        for (kind, reached, before) in [
            ("VALIDATION_ERROR", 200, 400),
            ("PARAMETER_MISSING", 200, 400),
            ("MISSING_ACTION", 200, 400),
            ("INVALID_JSON", 200, 400),
            ("AUTHENTICATION_FAILED", 401, 401),
            ("AUTHORIZATION_FAILED", 403, 403),
            ("PERMISSION_DENIED", 403, 403),
            ("ACTION_NOT_FOUND", 404, 404),
            ("RESOURCE_NOT_FOUND", 200, 400),
            ("RATE_LIMIT_EXCEEDED", 429, 429),
            ("QUOTA_EXCEEDED", 200, 400),
            ("DEPENDENCY_ERROR", 200, 503),
            ("MY_OWN", 200, 400),
        ] {
            assert_eq!(status(&answer(kind), true), reached, "{kind}");
            assert_eq!(status(&answer(kind), false), before, "{kind}");
        }
        let unwell = r#"{"error":{"type":"DEPENDENCY_ERROR","details":{"healthy":false}}}"#;
        assert_eq!(status(unwell, true), 503);
        assert_eq!(status(r#"{"status":"success"}"#, true), 200);
    }
}
