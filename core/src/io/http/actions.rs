//! The action dialect over HTTP, at the same endpoint: `POST` for one answer or a stream of its parts,
//! `GET` of `…/stream` for clients that can only GET.
//!
//! | part of a request | meaning |
//! |---|---|
//! | `MCP-Version`, `MCP-Min-Version` | it is an action; the versions that the client speaks (R-ACT-38) |
//! | a body that is not JSON-RPC and names an action | the request is an action of any version |
//! | `Accept: text/event-stream` without `application/json` | the answer is sent as events (R-ACT-24) |
//! | `If-None-Match` | the schema that the client already has |
//! | `Last-Event-ID`, in a `GET` of `…/stream` | the event after which to resume a broken stream |
//!
//! After a `Last-Event-ID` that was the last event of its stream, the status is 204; if the stream is
//! no longer kept, 404 (R-ACT-26).

use hyper::header::{ACCEPT, CACHE_CONTROL, ETAG, HeaderMap, HeaderName, HeaderValue};
use hyper::header::{IF_NONE_MATCH, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use sha2::{Digest, Sha256};
use smallvec::smallvec;

use super::answers::{self, Refusal, with};
use super::body::HttpBody;
use super::events::{Encoder, Message};
use super::headers;
use super::identify::challenge;
use super::media;
use super::route::{LAST_EVENT, SESSION};
use crate::action::encode::{self, ActionError, AnswerMetadata};
use crate::action::{self, ErrorType, Kind, Record, STREAM, Version, negotiate};
use crate::buffer::Input;
use crate::json::{reader, string, writer};
use crate::message::Frame;

pub const VERSION: HeaderName = HeaderName::from_static("mcp-version");
const MIN_VERSION: HeaderName = HeaderName::from_static("mcp-min-version");
/// Maximum nesting depth of a body when its kind is determined.
const MAX_DEPTH: usize = 512;

/// Whether the answer to a request is written in the action dialect, even if it is refused (F-63).
pub fn says_so(headers: &HeaderMap) -> bool {
    headers.contains_key(VERSION)
}

/// Whether a POST that does not say so may be an action as far as its headers tell.
pub fn may_be(headers: &HeaderMap) -> bool {
    !headers.contains_key(headers::VERSION) && !headers.contains_key(SESSION)
}

/// Whether a body is a request of the dialect, or an invalid attempt at one.
pub fn is_one(headers: &HeaderMap, body: &Input) -> bool {
    let is_plain = |frame| action::begins(frame) && action::is_of_no_other(frame);
    if says_so(headers) || is_plain(body.filled()) {
        return true;
    }
    let mut record = Record::new();
    let Some(frame) = Frame::new(body.padded(), body.len()) else {
        return false;
    };
    if action::decode(frame, MAX_DEPTH, &mut record).is_err() {
        return false;
    }
    let names = record.kind() == Kind::Request || record.span(action::Field::Action).is_some();
    names && !is_rpc(body.filled())
}

fn is_rpc(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body).unwrap_or_default();
    reader::find(text, "jsonrpc").is_some() || reader::find(text, "method").is_some()
}

/// Whether a request asks for the stream of an action: a GET of the endpoint's path with `/stream`.
pub fn is_stream(parts: &Parts, endpoint: &str) -> bool {
    let path = parts.uri.path().strip_suffix(STREAM);
    // Where any path may be the endpoint, the query must name an action.
    let named = |query: &str| query.split('&').any(|pair| pair.starts_with("action="));
    parts.method == hyper::Method::GET
        && path.is_some_and(|path| match endpoint {
            "*" => parts.uri.query().is_some_and(named) || resumes(&parts.headers).is_some(),
            own => path == own.trim_end_matches('/'),
        })
}

/// The id of the event after which the stream of an action is to resume.
pub fn resumes(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(LAST_EVENT)?.to_str().unwrap_or("?");
    (!headers.contains_key(SESSION)).then_some(id)
}

/// The response to a client whose stream is not kept.
pub fn not_kept(id: &str) -> Response<HttpBody> {
    let mut details = b"{\"last_event_id\":".to_vec();
    string::append(&mut details, id);
    details.push(b'}');
    let details = String::from_utf8(details).unwrap_or_default();
    let why = "what follows that event is not, or no longer, kept here";
    let kind = ErrorType::ResourceNotFound;
    error(StatusCode::NOT_FOUND, kind, why, Some(&details))
}

/// Whether the client accepts the answer to an action only as events.
pub fn wants_events(headers: &HeaderMap) -> bool {
    let mut all = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|it| it.to_str().ok());
    let mut events = false;
    let json = all.any(|value| {
        events |= value.contains(media::EVENTS);
        value.contains(media::JSON) || value.contains("*/*")
    });
    events && !json
}

/// The agreed version, in the notation that the client used (R-ACT-37, R-ACT-38).
///
/// # Errors
/// Why there is no common version.
pub fn version(headers: &HeaderMap) -> Result<String, String> {
    let newest = Version::SUPPORTED.last().copied();
    let said = |name: &HeaderName| {
        let value = headers.get(name)?;
        Some(value.to_str().unwrap_or("?").trim().to_owned())
    };
    let parse = |text: &String| {
        text.parse::<Version>()
            .map_err(|why| format!("{text:?}: {why}"))
    };
    let oldest = said(&MIN_VERSION);
    let oldest = oldest.as_ref().map(parse).transpose()?;
    let Some(asked) = said(&VERSION) else {
        return Ok(newest.map(|it| it.to_string()).unwrap_or_default());
    };
    let agreed = negotiate(&Version::SUPPORTED, parse(&asked)?, oldest);
    let agreed = agreed.ok_or("this version of the protocol is not spoken here")?;
    Ok(agreed.written_like(&asked))
}

/// The action that a query asks for.
#[derive(Debug)]
pub struct Asked {
    pub action: String,
    pub tool: Option<String>,
    /// The query as a request message.
    pub request: Vec<u8>,
}

/// Builds the request that a query stands for (R-ACT-24, R-ACT-27). `of` returns the schema of an
/// action; a parameter whose schema names a type other than string is read as JSON.
///
/// # Errors
/// Why the query is not a valid request.
pub fn of_query(
    query: &str,
    of: impl FnOnce(&str) -> Option<String>,
) -> Result<Asked, &'static str> {
    let (mut reserved, mut params) = ([None, None, None, None], Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (unescaped(name)?, unescaped(value)?);
        let place = ["action", "tool", "context", "request_id"]
            .iter()
            .position(|own| *own == name);
        let taken = match place.and_then(|place| reserved.get_mut(place)) {
            Some(place) => place.replace(value).is_some(),
            None => {
                let taken = params.iter().any(|(own, _)| *own == name);
                params.push((name, value));
                taken
            }
        };
        if taken {
            return Err("a parameter is there more than once");
        }
    }
    let [action, tool, context, id] = reserved;
    let schema = action.as_deref().and_then(of).unwrap_or_default();
    let mut json = b"{".to_vec();
    for (name, value) in &params {
        if json.len() > 1 {
            json.push(b',');
        }
        string::append(&mut json, name);
        json.push(b':');
        match wants_string(&schema, name) || crate::json::validate(value.as_bytes(), 64).is_err() {
            true => string::append(&mut json, value),
            false => writer::append_compact(&mut json, value),
        }
    }
    json.push(b'}');
    let params = String::from_utf8(json).unwrap_or_default();
    let metadata = id.map(|id| {
        let mut metadata = b"{\"request_id\":".to_vec();
        string::append(&mut metadata, &id);
        metadata.push(b'}');
        String::from_utf8(metadata).unwrap_or_default()
    });
    let action = action.ok_or("no action is named")?;
    let mut request = Vec::new();
    let parts = encode::RequestParts {
        tool: tool.as_deref(),
        context: context.as_deref(),
        metadata: metadata.as_deref(),
    };
    encode::request(&mut request, &action, &params, parts);
    Ok(Asked {
        action,
        tool,
        request,
    })
}

/// Whether the schema declares a parameter as a string, or does not declare its type.
fn wants_string(schema: &str, name: &str) -> bool {
    let kind = reader::find_path(schema, &["properties", name, "type"]);
    kind.is_none_or(|kind| kind == "\"string\"")
}

fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let both = (digit(rest.next()), digit(rest.next()));
                let (Some(high), Some(low)) = both else {
                    return Err("% is followed by two hexadecimal digits");
                };
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "the query is not UTF-8")
}

/// The status of an answer (R-ACT-22, F-35). An answer of the server itself is 200, except for errors
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
pub fn whole(asked: &HeaderMap, message: &Message, reached: bool) -> Response<HttpBody> {
    let text: Vec<u8> = message.iter().flatten().copied().collect();
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let mut response = answers::json(status(text, reached), HttpBody::whole(message.clone()));
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
            response = with(StatusCode::NOT_MODIFIED, HttpBody::empty());
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
pub fn only_event(message: &Message, reached: bool) -> Response<HttpBody> {
    let text: Vec<u8> = message.iter().flatten().copied().collect();
    let text = std::str::from_utf8(&text).unwrap_or_default();
    let mut events = Encoder::default();
    events.message(None, message);
    let body = HttpBody::whole(events.finish().into_iter().collect());
    let mut response = answers::stream(body);
    *response.status_mut() = status(text, reached);
    limits(text, response.headers_mut());
    response
}

/// The entity tag of the schema in an answer: a strong validator (RFC 9110, 8.8.3).
fn schema_tag(answer: &str) -> Option<String> {
    let data = reader::find(answer, "data")?;
    let actions = reader::find(data, "actions").filter(|it| it.starts_with('{'))?;
    let own = reader::members(actions).next()?.1;
    reader::find(own, "params_schema")?;
    let hash = Sha256::digest(data.as_bytes());
    let hex: String = hash
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(format!("\"{hex}\""))
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

/// Adds the agreed version, which goes with every answer.
pub fn versioned(mut response: Response<HttpBody>, version: &str) -> Response<HttpBody> {
    if let Ok(version) = HeaderValue::from_str(version) {
        response.headers_mut().insert(VERSION, version);
    }
    response
}

/// A refusal in the action dialect.
pub fn refused(Refusal { status, why }: Refusal) -> Response<HttpBody> {
    let kind = match status {
        StatusCode::UNAUTHORIZED => ErrorType::AuthenticationFailed,
        StatusCode::FORBIDDEN => ErrorType::AuthorizationFailed,
        StatusCode::NOT_FOUND => ErrorType::ResourceNotFound,
        StatusCode::SERVICE_UNAVAILABLE => ErrorType::Dependency,
        StatusCode::REQUEST_TIMEOUT => ErrorType::Timeout,
        _ => ErrorType::Validation,
    };
    match status {
        StatusCode::SERVICE_UNAVAILABLE => {
            let mut response = error(status, kind, why, Some("{\"retry_after_seconds\":1}"));
            let wait = HeaderValue::from_static("1");
            response.headers_mut().insert(RETRY_AFTER, wait);
            response
        }
        _ => error(status, kind, why, None),
    }
}

/// An error that is answered without an exchange.
pub fn error(
    status: StatusCode,
    kind: ErrorType,
    why: &str,
    details: Option<&str>,
) -> Response<HttpBody> {
    let mut body = Vec::new();
    let error = ActionError {
        details,
        code: Some(status.as_u16()),
        ..ActionError::new(kind, why)
    };
    encode::error(&mut body, &error, AnswerMetadata::default());
    let mut response = answers::json(status, HttpBody::whole(smallvec![body.into()]));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("POST");
        response.headers_mut().insert(hyper::header::ALLOW, allowed);
    }
    response
}

/// The refusal of a version that is not supported.
pub fn unspoken(why: &str) -> Response<HttpBody> {
    let all: Vec<_> = Version::SUPPORTED
        .iter()
        .map(|it| format!("\"{it}\""))
        .collect();
    let details = format!("{{\"supported\":[{}]}}", all.join(","));
    error(
        StatusCode::BAD_REQUEST,
        ErrorType::Validation,
        why,
        Some(&details),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<String, &'static str> {
        let schema = r#"{"properties":{"count":{"type":"integer"},"name":{"type":"string"}}}"#;
        let asked = of_query(query, |_| Some(schema.to_owned()))?;
        Ok(String::from_utf8(asked.request).unwrap())
    }

    /// R-ACT-24, R-ACT-27: parameters are strings, or JSON where the schema wants another type.
    #[test]
    fn a_query_is_a_request() {
        for (query, request) in [
            (
                "action=llm.generate&prompt=Write%20a%20story",
                r#"{"action":"llm.generate","params":{"prompt":"Write a story"}}"#,
            ),
            (
                "action=a&count=3&name=3&other=true",
                r#"{"action":"a","params":{"count":3,"name":"3","other":"true"}}"#,
            ),
            (
                "count=three&action=a",
                r#"{"action":"a","params":{"count":"three"}}"#,
            ),
            (
                "action=a&tool=t&context=c+d&request_id=r%22",
                r#"{"action":"a","params":{},"tool":"t","context":"c d","metadata":{"request_id":"r\""}}"#,
            ),
            ("action=a&flag", r#"{"action":"a","params":{"flag":""}}"#),
        ] {
            assert_eq!(read(query).as_deref(), Ok(request), "{query}");
        }
        for query in [
            "",
            "prompt=x",
            "action=a&x=1&x=2",
            "action=a&action=b",
            "action=%ff",
            "action=%2",
        ] {
            assert!(read(query).is_err(), "{query}");
        }
    }

    /// R-ACT-22, F-35: the status of each error type, from the server itself and from the layers before
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
