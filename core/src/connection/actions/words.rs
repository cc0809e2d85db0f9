//! Converts results and errors of handlers to the action dialect (R-ACT-41).
//!
//! | a result | an answer |
//! |---|---|
//! | `structuredContent`, an object | `data` |
//! | `structuredContent` of another type | `data.result` |
//! | `content` alone | `data.content` |
//! | `isError`, and `structuredContent.error` with a `type` | `error`, as it is (R-ACT-31) |
//! | any other `isError` | `INTERNAL_SERVER_ERROR` with the text |
//!
//! Answers appended here are left open: their metadata and last brace follow when they are sent.

use super::super::answer::{Places, ResultWriter, append_object};
use super::super::interceptor::{Interceptor, Verdict};
use super::super::scratch;
use crate::action::ErrorType;
use crate::action::encode::{self, ActionError};
use crate::json::{number, reader};
use crate::mcp::{ErrorKind, Revision, code};
use crate::message::Dialect;

/// Appends the result of a call, which `write` writes.
pub(crate) fn result(
    out: &mut Vec<u8>,
    dialect: Dialect,
    revision: Revision,
    interceptor: Option<&dyn Interceptor>,
    write: impl FnOnce(&mut ResultWriter<'_>),
) {
    let (mut object, mut places) = (scratch::take(), Places::default());
    append_object(&mut object, revision, Some(&mut places), write);
    let text = std::str::from_utf8(&object).unwrap_or("{}");
    match interceptor.is_some() || places.incomplete {
        true => whole_result(out, dialect, interceptor, text),
        false => kept(out, dialect, text, places.find(text)),
    }
    scratch::put(object);
}

/// Appends a result object, raw JSON, or what `interceptor` puts in its place.
pub(crate) fn whole_result(
    out: &mut Vec<u8>,
    dialect: Dialect,
    interceptor: Option<&dyn Interceptor>,
    object: &str,
) {
    match interceptor.map_or(Verdict::Keep, |interceptor| interceptor.result(object)) {
        Verdict::Keep => kept(out, dialect, object, members(object)),
        Verdict::Replace(object) => kept(out, dialect, &object, members(&object)),
        Verdict::Refuse(kind, why, data) => error(out, dialect, kind, &why, data.as_deref()),
    }
}

/// Finds `content`, `structuredContent` and `isError` of a result.
fn members(object: &str) -> [Option<&str>; 3] {
    let mut found = [None; 3];
    for (key, value) in reader::members(object) {
        match key.raw() {
            "content" => found[0] = Some(value),
            "structuredContent" => found[1] = Some(value),
            "isError" => found[2] = Some(value),
            _ => {}
        }
    }
    found
}

fn kept(
    out: &mut Vec<u8>,
    dialect: Dialect,
    object: &str,
    [content, structured, is_error]: [Option<&str>; 3],
) {
    let streamed = dialect == Dialect::ActionStream;
    if is_error == Some("true") {
        return failure(out, streamed, structured, content);
    }
    match (structured, content) {
        (Some(data), _) if data.starts_with('{') => encode::open_success(out, streamed, Some(data)),
        (Some(value), _) => encode::open_success_of(out, streamed, "result", value),
        (None, Some(content)) => encode::open_success_of(out, streamed, "content", content),
        (None, None) => encode::open_success(out, streamed, Some(object)),
    }
}

fn failure(out: &mut Vec<u8>, streamed: bool, structured: Option<&str>, content: Option<&str>) {
    let own = structured.and_then(|it| reader::find(it, "error"));
    let member = |name| own.and_then(|error| reader::find(error, name));
    let text = |name| member(name).and_then(reader::as_str);
    let spelling = text("type");
    let kind = spelling.as_deref().unwrap_or(ErrorType::Internal.name());
    let usual = ErrorType::parse(kind).map(ErrorType::code);
    let said = member("code").and_then(number::as_u64);
    let help_url = text("help_url");
    let message = text("message").map(Into::into);
    let message: String = message.unwrap_or_else(|| sentences(content.unwrap_or("[]")));
    let error = ActionError {
        kind,
        message: &message,
        details: member("details"),
        code: said.and_then(|code| u16::try_from(code).ok()).or(usual),
        help_url: help_url.as_deref(),
    };
    encode::open_error(out, streamed, &error);
}

/// Joins the texts of content blocks.
fn sentences(content: &str) -> String {
    let text = |block| reader::find(block, "text").and_then(reader::as_str);
    let all: Vec<_> = reader::elements(content).filter_map(text).collect();
    all.join("\n")
}

/// Appends an error of a kind (table F.1).
pub(crate) fn error(
    out: &mut Vec<u8>,
    dialect: Dialect,
    kind: ErrorKind,
    message: &str,
    data: Option<&str>,
) {
    use ErrorKind::*;
    let kind = match kind {
        Parse => ErrorType::InvalidJson,
        MethodNotFound | ToolNotFound | PromptNotFound => ErrorType::ActionNotFound,
        InvalidRequest | InvalidParams | ToolArguments | HeaderMismatch | UnsupportedVersion => {
            ErrorType::Validation
        }
        ResourceNotFound => ErrorType::ResourceNotFound,
        Overloaded | RateLimited => ErrorType::RateLimitExceeded,
        QuotaExceeded => ErrorType::QuotaExceeded,
        ShuttingDown | ResourceFailed => ErrorType::Dependency,
        MissingClientCapability => ErrorType::InvalidState,
        Rejected | ToolDenied | ResourceDenied | InsufficientScope => {
            ErrorType::AuthorizationFailed
        }
        Unauthenticated => ErrorType::AuthenticationFailed,
        TimedOut => ErrorType::Timeout,
        Internal | ToolFailed => ErrorType::Internal,
    };
    typed(out, dialect, kind, message, data);
}

/// Appends an error under a JSON-RPC code that a handler chose.
pub(crate) fn error_code(
    out: &mut Vec<u8>,
    dialect: Dialect,
    number: i64,
    message: &str,
    data: Option<&str>,
) {
    let kind = match number {
        code::PARSE_ERROR => ErrorType::InvalidJson,
        code::METHOD_NOT_FOUND => ErrorType::ActionNotFound,
        code::INVALID_REQUEST | code::INVALID_PARAMS => ErrorType::Validation,
        code::OVERLOADED => ErrorType::RateLimitExceeded,
        code::SHUTTING_DOWN => ErrorType::Dependency,
        code::REJECTED | code::INSUFFICIENT_SCOPE => ErrorType::AuthorizationFailed,
        code::UNAUTHENTICATED => ErrorType::AuthenticationFailed,
        _ => ErrorType::Internal,
    };
    typed(out, dialect, kind, message, data);
}

fn typed(out: &mut Vec<u8>, dialect: Dialect, kind: ErrorType, message: &str, data: Option<&str>) {
    // R-ACT-33: JSON-RPC clients get this value as `retryAfter`.
    let retry = data.and_then(|data| reader::find(data, "retryAfter"));
    let retry = retry.map(|seconds| format!("{{\"retry_after_seconds\":{seconds}}}"));
    let details = retry.as_deref().or(data);
    let error = ActionError {
        details: details.filter(|details| details.starts_with('{')),
        ..ActionError::new(kind, message)
    };
    encode::open_error(out, dialect == Dialect::ActionStream, &error);
}
