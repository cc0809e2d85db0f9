//! What is said in HTTP's own words: statuses, headers and refusals.

use std::borrow::Cow;

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use smallvec::smallvec;

use super::body::HttpBody;
use super::events::Message;
use super::guard::{EVENTS, JSON, Refusal};
use super::identify::challenge;
use crate::json::{number, reader};
use crate::mcp::code;
use crate::message::encode::{self, ErrorId};

/// Longest answer that is looked at for the code of an error, in bytes: errors are short.
const ERROR_BYTES: usize = 64 << 10;

pub const NO_SESSION: Refusal = Refusal::new(
    StatusCode::BAD_REQUEST,
    "Mcp-Session-Id is missing: a session begins with initialize",
);
pub const GONE: Refusal = Refusal::new(
    StatusCode::NOT_FOUND,
    "there is no such session: begin another with initialize",
);
pub const UNKNOWN_VERSION: Refusal = Refusal::new(
    StatusCode::BAD_REQUEST,
    "MCP-Protocol-Version names no revision that is spoken here",
);
pub const NO_STREAM: Refusal = Refusal::new(
    StatusCode::METHOD_NOT_ALLOWED,
    "a stream belongs to a session: begin one with a POST of initialize",
);
pub const TOO_OLD: Refusal = Refusal::new(
    StatusCode::CONFLICT,
    "what followed is not kept any more, and the other stream has its reader",
);
pub const FULL: Refusal = Refusal::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "all sessions are in use: try again later",
);
pub const TOO_LARGE: Refusal = Refusal::new(
    StatusCode::PAYLOAD_TOO_LARGE,
    "the message is longer than this server takes",
);
pub const TOO_SLOW: Refusal = Refusal::new(
    StatusCode::REQUEST_TIMEOUT,
    "the body did not come to its end in time",
);
pub const BROKEN: Refusal = Refusal::new(StatusCode::BAD_REQUEST, "the body broke off");
pub const NO_MESSAGE: Refusal = Refusal::new(
    StatusCode::BAD_REQUEST,
    "this is no message that a server takes",
);

/// The code of an error.
fn code(message: &Message) -> Option<i64> {
    let error = match &message[..] {
        [piece] if piece.len() <= ERROR_BYTES && !is_result(piece) => {
            std::str::from_utf8(piece).ok()?
        }
        _ => return None,
    };
    reader::find_path(error, &["error", "code"]).and_then(number::as_i64)
}

/// Whether an answer is as the engine writes results, most often: its id is a number, and what
/// follows is the result.
fn is_result(answer: &[u8]) -> bool {
    let Some(rest) = answer.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":") else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].starts_with(b",\"result\":")
}

/// R-ERR-30: what the status says of an error; that the server itself refuses params is an answer
/// like any other.
pub fn status(message: &Message, reached: bool) -> StatusCode {
    match code(message) {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_VERSION,
        ) => StatusCode::BAD_REQUEST,
        Some(code::OVERLOADED | code::SHUTTING_DOWN) => StatusCode::SERVICE_UNAVAILABLE,
        Some(code::RATE_LIMITED) => StatusCode::TOO_MANY_REQUESTS,
        Some(code::INSUFFICIENT_SCOPE) => StatusCode::FORBIDDEN,
        Some(code::UNAUTHENTICATED) => StatusCode::UNAUTHORIZED,
        Some(code::INVALID_PARAMS) if !reached => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The same in a session: what cannot be taken is refused, errors are answers (C.2.1).
pub fn session_status(message: &Message) -> StatusCode {
    match code(message) {
        Some(code::PARSE_ERROR | code::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        Some(code::OVERLOADED | code::SHUTTING_DOWN) => StatusCode::SERVICE_UNAVAILABLE,
        Some(code::RATE_LIMITED) => StatusCode::TOO_MANY_REQUESTS,
        Some(code::INSUFFICIENT_SCOPE) => StatusCode::FORBIDDEN,
        Some(code::UNAUTHENTICATED) => StatusCode::UNAUTHORIZED,
        _ => StatusCode::OK,
    }
}

pub fn with(status: StatusCode, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

pub fn json(status: StatusCode, body: HttpBody) -> Response<HttpBody> {
    let mut response = with(status, body);
    let kind = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// One message; where it says when to try again, or what is needed for it, so does a header.
pub fn message(status: StatusCode, message: Message) -> Response<HttpBody> {
    let text = match &message[..] {
        [piece] if status != StatusCode::OK => std::str::from_utf8(piece).ok(),
        _ => None,
    };
    let said = |name| reader::find_path(text?, &["error", "data", name]);
    let wait = said("retryAfter").and_then(number::as_u64);
    let scope = said("scope").and_then(reader::as_str).map(Cow::into_owned);
    let mut response = json(status, HttpBody::whole(message));
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            if let Some(seconds) = wait {
                let seconds = HeaderValue::from(seconds);
                response.headers_mut().insert(RETRY_AFTER, seconds);
            }
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            challenge(&mut response, scope.as_deref());
        }
        _ => {}
    }
    response
}

pub fn stream(body: HttpBody) -> Response<HttpBody> {
    let mut response = with(StatusCode::OK, body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // R-HTP-15
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub fn refused(Refusal { status, why }: Refusal) -> Response<HttpBody> {
    let mut body = Vec::new();
    encode::error(&mut body, ErrorId::Omit, code::INVALID_REQUEST, why, None);
    let mut response = json(status, HttpBody::whole(smallvec![body.into()]));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    }
    response
}
