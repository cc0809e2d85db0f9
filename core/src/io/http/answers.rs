//! HTTP statuses, headers and refusals.

use std::borrow::Cow;

use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use smallvec::smallvec;

use super::body::HttpBody;
use super::events::Message;
use super::identify::challenge;
use super::media::{EVENTS, JSON};
use crate::json::{number, reader};
use crate::mcp::code;
use crate::message::encode::{self, ErrorId};

/// The refusal of an HTTP request before it becomes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub why: &'static str,
}

impl Refusal {
    pub const fn new(status: StatusCode, why: &'static str) -> Self {
        Self { status, why }
    }
}

/// Longest answer that is searched for an error code, in bytes: errors are short.
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
pub const OVERLOADED: Refusal = Refusal::new(
    StatusCode::SERVICE_UNAVAILABLE,
    "there is no room for a message of this length now: try again later",
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

/// The code of a JSON-RPC error; `None` for results.
fn code(message: &Message) -> Option<i64> {
    let error = match &message[..] {
        [piece] if piece.len() <= ERROR_BYTES && !is_result(piece) => {
            std::str::from_utf8(piece).ok()?
        }
        _ => return None,
    };
    reader::find_path(error, &["error", "code"]).and_then(number::as_i64)
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

/// The status of an answer (R-ERR-30). Invalid params that the server itself reports are an ordinary
/// answer.
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

/// The status of an answer in a session: refused messages have their own status, other errors are 200
/// (C.2.1).
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

/// A response of one message; its retry time or required scope is repeated in a header.
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
    let (code, data) = match status {
        StatusCode::SERVICE_UNAVAILABLE => (code::OVERLOADED, Some("{\"retryAfter\":1}")),
        _ => (code::INVALID_REQUEST, None),
    };
    encode::error(&mut body, ErrorId::Omit, code, why, data);
    let mut response = message(status, smallvec![body.into()]);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    }
    response
}
