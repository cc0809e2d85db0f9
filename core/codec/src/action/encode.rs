//! Appends messages to a buffer, without a line end.
//!
//! Raw JSON must be one valid value; if it contains line breaks, the whitespace between its tokens
//! is dropped, so that the message fits on one line.

use super::error_type::ErrorType;
use crate::json::{number, string, writer};

/// The optional members of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// `tool`
    pub tool: Option<&'a str>,
    /// `context`
    pub context: Option<&'a str>,
    /// `metadata`, a raw JSON object.
    pub metadata: Option<&'a str>,
}

/// Appends a request; `params` is a raw JSON object (R-ACT-02).
pub fn request(out: &mut Vec<u8>, action: &str, params: &str, parts: RequestParts<'_>) {
    out.extend_from_slice(b"{\"action\":");
    string::append(out, action);
    member(out, "params", params);
    if let Some(tool) = parts.tool {
        out.extend_from_slice(b",\"tool\":");
        string::append(out, tool);
    }
    if let Some(context) = parts.context {
        out.extend_from_slice(b",\"context\":");
        string::append(out, context);
    }
    if let Some(metadata) = parts.metadata {
        member(out, "metadata", metadata);
    }
    out.push(b'}');
}

/// The metadata of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerMetadata<'a> {
    /// The id of the answered request, as raw JSON, unchanged (R-ACT-04).
    pub request_id: Option<&'a str>,
    /// The id of the answering server.
    pub server_id: Option<&'a str>,
    /// The duration of the action, in milliseconds.
    pub execution_time_ms: Option<u64>,
    /// The agreed version of the dialect (R-ACT-37).
    pub protocol_version: Option<&'a str>,
}

/// The error of a failed action.
#[derive(Clone, Copy, Debug)]
pub struct ActionError<'a> {
    /// The error's type, as the dialect or a handler spells it (R-ACT-31).
    pub kind: &'a str,
    /// A description in one sentence.
    pub message: &'a str,
    /// Details: raw JSON of any type.
    pub details: Option<&'a str>,
    /// An HTTP status.
    pub code: Option<u16>,
    /// The URL of a help page.
    pub help_url: Option<&'a str>,
}

impl<'a> ActionError<'a> {
    /// An error of a type that the dialect defines, with its default code (R-ACT-32).
    pub fn new(kind: ErrorType, message: &'a str) -> Self {
        Self {
            kind: kind.name(),
            message,
            details: None,
            code: Some(kind.code()),
            help_url: None,
        }
    }
}

/// Appends the answer to an action that succeeded; `data` is raw JSON.
pub fn success(out: &mut Vec<u8>, data: Option<&str>, metadata: AnswerMetadata<'_>) {
    open_success(out, false, data);
    close(out, metadata);
}

/// Appends the answer to an action that failed.
pub fn error(out: &mut Vec<u8>, error: &ActionError<'_>, metadata: AnswerMetadata<'_>) {
    open_error(out, false, error);
    close(out, metadata);
}

/// Appends a part of a stream; `data` is raw JSON (R-ACT-24).
pub fn partial(out: &mut Vec<u8>, data: &str, metadata: AnswerMetadata<'_>) {
    out.extend_from_slice(b"{\"type\":\"partial\"");
    member(out, "data", data);
    close(out, metadata);
}

/// Appends the end of a stream that succeeded (R-ACT-24, R-ACT-25).
pub fn complete(out: &mut Vec<u8>, data: Option<&str>, metadata: AnswerMetadata<'_>) {
    open_success(out, true, data);
    close(out, metadata);
}

/// Appends the end of a stream that failed (R-ACT-24, R-ACT-25).
pub fn failed(out: &mut Vec<u8>, error: &ActionError<'_>, metadata: AnswerMetadata<'_>) {
    open_error(out, true, error);
    close(out, metadata);
}

/// Appends a successful answer, or the end of a stream, without its metadata; [`close`] appends
/// those.
pub fn open_success(out: &mut Vec<u8>, streamed: bool, data: Option<&str>) {
    out.extend_from_slice(succeeded(streamed));
    if let Some(data) = data {
        member(out, "data", data);
    }
}

/// Like [`open_success`], with `data` that has one member.
pub fn open_success_of(out: &mut Vec<u8>, streamed: bool, name: &str, value: &str) {
    out.extend_from_slice(succeeded(streamed));
    out.extend_from_slice(b",\"data\":{");
    string::append(out, name);
    out.push(b':');
    writer::append_compact(out, value);
    out.push(b'}');
}

fn succeeded(streamed: bool) -> &'static [u8] {
    match streamed {
        true => b"{\"type\":\"complete\",\"status\":\"success\"",
        false => b"{\"status\":\"success\"",
    }
}

/// Like [`open_success`], for an action that failed.
pub fn open_error(out: &mut Vec<u8>, streamed: bool, error: &ActionError<'_>) {
    out.extend_from_slice(match streamed {
        true => b"{\"type\":\"error\"",
        false => b"{\"status\":\"error\"",
    });
    out.extend_from_slice(b",\"error\":{\"type\":");
    string::append(out, error.kind);
    out.extend_from_slice(b",\"message\":");
    string::append(out, error.message);
    if let Some(details) = error.details {
        member(out, "details", details);
    }
    if let Some(code) = error.code {
        out.extend_from_slice(b",\"code\":");
        number::append(out, code);
    }
    if let Some(help_url) = error.help_url {
        out.extend_from_slice(b",\"help_url\":");
        string::append(out, help_url);
    }
    out.push(b'}');
}

/// Appends a further member; `json` is its raw value.
fn member(out: &mut Vec<u8>, name: &str, json: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    writer::append_compact(out, json);
}

/// Appends `metadata`, unless all are `None`, and the closing brace.
pub fn close(out: &mut Vec<u8>, metadata: AnswerMetadata<'_>) {
    let AnswerMetadata {
        request_id,
        server_id,
        execution_time_ms,
        protocol_version,
    } = metadata;
    let is_empty = server_id.is_none()
        && execution_time_ms.is_none()
        && protocol_version.is_none()
        && request_id.is_none();
    if is_empty {
        out.push(b'}');
        return;
    }
    out.extend_from_slice(b",\"metadata\":{");
    if let Some(server_id) = server_id {
        out.extend_from_slice(b"\"server_id\":");
        string::append(out, server_id);
        out.push(b',');
    }
    if let Some(time) = execution_time_ms {
        out.extend_from_slice(b"\"execution_time_ms\":");
        number::append(out, time);
        out.push(b',');
    }
    if let Some(version) = protocol_version {
        out.extend_from_slice(b"\"protocol_version\":");
        string::append(out, version);
        out.push(b',');
    }
    match request_id {
        None => drop(out.pop()),
        Some(id) => {
            out.extend_from_slice(b"\"request_id\":");
            match id.as_bytes() {
                // Strings and unsigned numbers cannot contain line breaks.
                [b'"' | b'0'..=b'9', ..] => out.extend_from_slice(id.as_bytes()),
                _ => writer::append_compact(out, id),
            }
        }
    }
    out.extend_from_slice(b"}}");
}
