//! Responses: their statuses, headers and bodies.

use std::borrow::Cow;
use std::mem;
use std::time::Duration;

use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION,
    WWW_AUTHENTICATE,
};
#[cfg(feature = "compression")]
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use hyper::{Response, StatusCode};
use smallvec::smallvec;

use super::body::HttpBody;
use super::media::MediaType;
use super::refusal::HttpRefusal;
use super::sse::{SseEncoder, SseEvents, SseSource};
use crate::action::ErrorType;
use crate::action::encode::{self as action, ActionError, AnswerMetadata};
use crate::io::http::message_bytes::MessageBytes;
use crate::json::{number, reader};
use crate::mcp::code;
use crate::message::encode::{self, ErrorId};

/// A response, or why the request is refused.
pub type HttpAnswer = Result<Response<HttpBody>, HttpRefusal>;

/// Most headers that a map has room for which a connection keeps between requests: 3 KB.
const KEPT_HEADERS: usize = 24;

/// Longest answer that is searched for an error code, in bytes: errors are short.
const ERROR_BYTES: usize = 64 << 10;

/// The code of a JSON-RPC error; `None` for results.
fn code(message: &MessageBytes) -> Option<i64> {
    let error = match &message[..] {
        [piece] if piece.len() <= ERROR_BYTES && !is_result(piece) => {
            std::str::from_utf8(piece).ok()?
        }
        _ => return None,
    };
    reader::find_path(error, &["error", "code"]).and_then(number::as_i64)
}

/// Whether a message is an error, or a batch of nothing else.
pub fn is_error(message: &MessageBytes) -> bool {
    #[derive(serde::Deserialize)]
    struct Part {
        error: Option<serde::de::IgnoredAny>,
    }
    match &message[..] {
        [piece] if piece.first() == Some(&b'[') => {
            let parts: Result<Vec<Part>, _> = serde_json::from_slice(piece);
            parts.is_ok_and(|parts| parts.iter().all(|part| part.error.is_some()))
        }
        _ => code(message).is_some(),
    }
}

/// Whether an answer has the usual form of the engine's results: a numeric id followed directly by
/// `result`. Spares the search for a code.
fn is_result(answer: &[u8]) -> bool {
    let Some(rest) = answer.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":") else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].starts_with(b",\"result\":")
}

/// The status of an answer to a request that stands alone (R-ERR-30). Invalid params that the server
/// itself reports are an ordinary answer.
pub fn status(message: &MessageBytes, reached_server: bool) -> StatusCode {
    match code(message) {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION,
        ) => StatusCode::BAD_REQUEST,
        Some(code::INVALID_PARAMS) if !reached_server => StatusCode::BAD_REQUEST,
        other => status_of(other),
    }
}

/// The status of an answer in a session: refused messages have their own status, other errors are 200.
pub fn session_status(message: &MessageBytes) -> StatusCode {
    status_of(code(message))
}

fn status_of(code: Option<i64>) -> StatusCode {
    match code {
        Some(code::PARSE_ERROR | code::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        Some(code::OVERLOADED | code::SHUTTING_DOWN) => StatusCode::SERVICE_UNAVAILABLE,
        Some(code::RATE_LIMITED) => StatusCode::TOO_MANY_REQUESTS,
        Some(code::INSUFFICIENT_SCOPE) => StatusCode::FORBIDDEN,
        Some(code::UNAUTHENTICATED) => StatusCode::UNAUTHORIZED,
        _ => StatusCode::OK,
    }
}

/// Finishes a response with its `Content-Type`, in the header map of the request, so that neither allocates one: hyper
/// reads the headers of a connection's next request into the map of the last response. A connection does not
/// keep the map of a request with many headers.
pub fn in_place_of(mut map: HeaderMap, mut response: Response<HttpBody>) -> Response<HttpBody> {
    let kind = response.body().kind();
    let own = response.headers_mut();
    if map.capacity() <= KEPT_HEADERS {
        map.clear();
        if !own.is_empty() {
            map.extend(mem::take(own));
        }
        *own = map;
    }
    if let Some(kind) = kind {
        own.insert(CONTENT_TYPE, kind.content_type());
    }
    response
}

/// A response without a body.
pub fn empty(status: StatusCode) -> Response<HttpBody> {
    with(status, HttpBody::empty())
}

fn with(status: StatusCode, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// A response of one JSON text.
pub fn json(status: StatusCode, text: MessageBytes) -> Response<HttpBody> {
    with(status, HttpBody::whole(MediaType::Json, text))
}

/// A response of one JSON-RPC message; its retry time or required scope is repeated in a header.
pub fn message(status: StatusCode, message: MessageBytes) -> Response<HttpBody> {
    if status == StatusCode::OK {
        return json(status, message);
    }
    let text = match &message[..] {
        [piece] => std::str::from_utf8(piece).ok(),
        _ => None,
    };
    let said = |name| reader::find_path(text?, &["error", "data", name]);
    let wait = said("retryAfter").and_then(number::as_u64);
    let scope = said("scope").and_then(reader::as_str).map(Cow::into_owned);
    let mut response = json(status, message);
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            retry_after(&mut response, wait);
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            challenge(&mut response, scope.as_deref());
        }
        _ => {}
    }
    response
}

/// A stream of the events of `source`, with a comment after each silence of `comment_interval`.
pub fn events(source: impl SseSource + 'static, comment_interval: Duration) -> Response<HttpBody> {
    stream(HttpBody::events(SseEvents::new(source, comment_interval)))
}

/// A stream of events that are all written already.
pub fn whole_events(events: SseEncoder) -> Response<HttpBody> {
    let pieces = events.finish().into_iter().collect();
    stream(HttpBody::whole(MediaType::Events, pieces))
}

fn stream(body: HttpBody) -> Response<HttpBody> {
    let mut response = with(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // R-HTP-15
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Compresses the body if it is long enough to be worth it.
#[cfg(feature = "compression")]
pub fn compressed(mut response: Response<HttpBody>) -> Response<HttpBody> {
    if response.body_mut().compress() {
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
    response
}

/// The response to a refused request: an error in the dialect that the client speaks.
pub fn refused(refusal: HttpRefusal, in_actions: bool) -> Response<HttpBody> {
    let (status, why) = (refusal.status_code(), &*refusal.why);
    let mut body = Vec::new();
    match in_actions {
        true => {
            let wait = refusal.retry_after;
            let wait = wait.map(|seconds| format!("{{\"retry_after_seconds\":{seconds}}}"));
            let error = ActionError {
                details: refusal.details.as_deref().or(wait.as_deref()),
                code: Some(status.as_u16()),
                ..ActionError::new(error_type(status), why)
            };
            action::error(&mut body, &error, AnswerMetadata::default());
        }
        false => {
            let (code, data) = match status {
                StatusCode::SERVICE_UNAVAILABLE => (code::OVERLOADED, Some("{\"retryAfter\":1}")),
                _ => (code::INVALID_REQUEST, None),
            };
            encode::error(&mut body, ErrorId::Omit, code, why, data);
        }
    }
    let mut response = json(status, smallvec![body.into()]);
    retry_after(&mut response, refusal.retry_after);
    let headers = response.headers_mut();
    match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            let allowed = if in_actions {
                "POST"
            } else {
                "GET, POST, DELETE"
            };
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        StatusCode::UPGRADE_REQUIRED => {
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        StatusCode::UNAUTHORIZED if refusal.challenges.is_empty() => challenge(&mut response, None),
        _ => {}
    }
    add_challenges(response.headers_mut(), &refusal.challenges);
    response
}

/// Adds each challenge as a header of its own.
pub fn add_challenges(headers: &mut HeaderMap, challenges: &[String]) {
    for challenge in challenges {
        if let Ok(value) = HeaderValue::from_str(challenge) {
            headers.append(WWW_AUTHENTICATE, value);
        }
    }
}

fn error_type(status: StatusCode) -> ErrorType {
    match status {
        StatusCode::UNAUTHORIZED => ErrorType::AuthenticationFailed,
        StatusCode::FORBIDDEN => ErrorType::AuthorizationFailed,
        StatusCode::NOT_FOUND => ErrorType::ResourceNotFound,
        StatusCode::TOO_MANY_REQUESTS => ErrorType::RateLimitExceeded,
        StatusCode::SERVICE_UNAVAILABLE => ErrorType::Dependency,
        StatusCode::REQUEST_TIMEOUT => ErrorType::Timeout,
        _ => ErrorType::Validation,
    }
}

fn retry_after(response: &mut Response<HttpBody>, seconds: Option<u64>) {
    if let Some(seconds) = seconds {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// Says in `WWW-Authenticate` what is needed: any credentials, or those with these scopes (RFC 6750,
/// 3).
pub fn challenge(response: &mut Response<HttpBody>, scope: Option<&str>) {
    let said = match scope {
        None => "Bearer".to_owned(),
        Some(scope) => format!(
            "Bearer error=\"insufficient_scope\", scope={}",
            quoted(scope)
        ),
    };
    if let Ok(said) = HeaderValue::from_str(&said) {
        response.headers_mut().insert(WWW_AUTHENTICATE, said);
    }
}

/// A quoted string for a header (RFC 9110, 5.6.4): quotes and backslashes are escaped, and characters
/// that a header cannot carry become question marks.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            ' '..='~' => out.push(char),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-BAT-01: a batch fails if all of its parts do.
    #[cfg(feature = "sealing")]
    #[test]
    fn a_batch_of_errors_is_an_error() {
        let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}"#;
        let done = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        for (answer, expected) in [
            (failed.to_owned(), true),
            (done.to_owned(), false),
            (format!("[{failed},{failed}]"), true),
            (format!("[{failed},{done}]"), false),
            (format!("[{done},{done}]"), false),
        ] {
            assert_eq!(
                is_error(&smallvec![answer.clone().into()]),
                expected,
                "{answer}"
            );
        }
    }

    /// R-AUS-06: a scope cannot inject a parameter.
    #[test]
    fn a_scope_stays_within_its_quotes() {
        for (scope, said) in [
            (
                "files:read files:write",
                r#"scope="files:read files:write""#,
            ),
            (r#"a", realm="b"#, r#"scope="a\", realm=\"b""#),
            (r"a\", r#"scope="a\\""#),
            ("a\r\nSet-Cookie: b=c", r#"scope="a??Set-Cookie: b=c""#),
            ("é", r#"scope="?""#),
        ] {
            let mut response = empty(StatusCode::FORBIDDEN);
            challenge(&mut response, Some(scope));
            let header = response.headers()[WWW_AUTHENTICATE].to_str().unwrap();
            let expected = format!("Bearer error=\"insufficient_scope\", {said}");
            assert_eq!(header, expected, "{scope}");
        }
    }
}
