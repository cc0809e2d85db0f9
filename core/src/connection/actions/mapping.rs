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

use crate::action::ErrorType;
use crate::action::encode::{self, ActionError};
use crate::connection::interceptor::{Interceptor, Verdict};
use crate::connection::result_writer::{self, Places, ResultWriter};
use crate::connection::scratch;
use crate::json::{number, reader};
use crate::mcp::{ErrorKind, Revision, code};

#[cfg(feature = "server")]
type Referring<'a> = (
    &'a super::references::References,
    Option<&'a str>,
    &'a std::sync::Arc<crate::connection::Budget>,
);

/// How the answer to one action is written. Methods return whether it is an error.
pub(in crate::connection) struct ActionReply<'a> {
    pub streamed: bool,
    pub interceptor: Option<&'a dyn Interceptor>,
    /// Where data go that are too long for one answer, and the principal who may fetch them; `None` if
    /// all data are sent at once.
    #[cfg(feature = "server")]
    pub referring: Option<Referring<'a>>,
}

impl ActionReply<'_> {
    /// Appends the result of a call, which `write` writes.
    pub fn result(
        &self,
        out: &mut Vec<u8>,
        revision: Revision,
        write: impl FnOnce(&mut ResultWriter<'_>),
    ) -> bool {
        let (mut object, mut places) = (scratch::take(), Places::default());
        result_writer::append(&mut object, revision, None, Some(&mut places), write);
        let text = std::str::from_utf8(&object).unwrap_or("{}");
        let is_error = match self.interceptor.is_some() || places.incomplete {
            true => self.whole_result(out, text),
            false => self.answer(out, text, places.find(text)),
        };
        scratch::put(object);
        is_error
    }

    /// Appends a result object, raw JSON, or what the interceptor puts in its place.
    pub fn whole_result(&self, out: &mut Vec<u8>, object: &str) -> bool {
        match self
            .interceptor
            .map_or(Verdict::Keep, |interceptor| interceptor.result(object))
        {
            Verdict::Keep => self.answer(out, object, members(object)),
            Verdict::Replace(object) => self.answer(out, &object, members(&object)),
            Verdict::Refuse(kind, why, data) => {
                self.error(out, kind, &why, data.as_deref());
                true
            }
        }
    }

    fn answer(
        &self,
        out: &mut Vec<u8>,
        object: &str,
        [content, structured, is_error]: [Option<&str>; 3],
    ) -> bool {
        if is_error == Some("true") {
            self.failure(out, structured, content);
            return true;
        }
        match (structured, content) {
            (Some(data), _) if data.starts_with('{') => self.success(out, data),
            (Some(value), _) => self.success_of(out, "result", value),
            (None, Some(content)) => self.success_of(out, "content", content),
            (None, None) => self.success(out, object),
        }
        false
    }

    fn success(&self, out: &mut Vec<u8>, data: &str) {
        #[cfg(feature = "server")]
        if let Some((references, whose, budget)) = self.referring
            && let Some(reference) = references.refer(data, whose, budget)
        {
            return encode::open_success(out, self.streamed, Some(&reference));
        }
        encode::open_success(out, self.streamed, Some(data));
    }

    /// Answers with data that have one member.
    fn success_of(&self, out: &mut Vec<u8>, name: &str, value: &str) {
        #[cfg(feature = "server")]
        if self.referring.is_some() {
            return self.success(out, &format!("{{\"{name}\":{value}}}"));
        }
        encode::open_success_of(out, self.streamed, name, value);
    }

    fn failure(&self, out: &mut Vec<u8>, structured: Option<&str>, content: Option<&str>) {
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
        encode::open_error(out, self.streamed, &error);
    }

    /// Appends an error of a kind.
    pub fn error(&self, out: &mut Vec<u8>, kind: ErrorKind, message: &str, data: Option<&str>) {
        use ErrorKind::*;
        let kind = match kind {
            Parse => ErrorType::InvalidJson,
            MethodNotFound | ToolNotFound | PromptNotFound => ErrorType::ActionNotFound,
            InvalidRequest | InvalidParams | ToolArguments | HeaderMismatch
            | UnsupportedVersion => ErrorType::Validation,
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
        self.typed(out, kind, message, data);
    }

    /// Appends an error under a JSON-RPC code that a handler chose.
    pub fn error_code(&self, out: &mut Vec<u8>, number: i64, message: &str, data: Option<&str>) {
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
        self.typed(out, kind, message, data);
    }

    fn typed(&self, out: &mut Vec<u8>, kind: ErrorType, message: &str, data: Option<&str>) {
        // R-ACT-33: JSON-RPC clients get this value as `retryAfter`.
        let retry = data.and_then(|data| reader::find(data, "retryAfter"));
        let retry = retry.map(|seconds| format!("{{\"retry_after_seconds\":{seconds}}}"));
        let details = retry.as_deref().or(data);
        let error = ActionError {
            details: details.filter(|details| details.starts_with('{')),
            ..ActionError::new(kind, message)
        };
        encode::open_error(out, self.streamed, &error);
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

/// Joins the texts of content blocks.
fn sentences(content: &str) -> String {
    let text = |block| reader::find(block, "text").and_then(reader::as_str);
    let all: Vec<_> = reader::elements(content).filter_map(text).collect();
    all.join("\n")
}
