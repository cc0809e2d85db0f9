//! The result of a handler: how it answers its call, or ends its task.

use std::borrow::Cow;

use mcpbolt::connection::{Replies, ReplyTo, ResultWriter};
use mcpbolt::json::{reader, string};
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{Registry, SharedRegistry, TaskCall, ToolResult};
use napi_derive::napi;

use crate::kinds::Outbound;
use crate::served::Templates;

/// An encoded answer: its kind, an [`Outbound`], and its text.
#[napi(object)]
#[derive(Clone)]
pub struct Encoded {
    pub kind: u32,
    pub text: String,
}

/// The answer to a call.
pub enum Answer<'a> {
    Result(Outbound, &'a str),
    Error(Refusal, Cow<'a, str>, Option<&'a str>),
}

/// The code of an error: the code of its kind in each revision, or one of its own.
pub enum Refusal {
    Kind(ErrorKind),
    Code(i64),
}

/// In the order of `face/results.ts`.
const KINDS: [ErrorKind; 4] = [
    ErrorKind::Internal,
    ErrorKind::InvalidParams,
    ErrorKind::ResourceNotFound,
    ErrorKind::MissingClientCapability,
];

impl<'a> Answer<'a> {
    /// Reads a row: its kind, its text and its two numbers.
    pub fn read(
        kind: Outbound,
        text: &'a str,
        (a, b): (f64, f64),
        live: &SharedRegistry<Templates>,
    ) -> Self {
        match kind {
            Outbound::Error => {
                let message = reader::find(text, "message").and_then(reader::as_str);
                let refusal = match a as i64 {
                    0 => Refusal::Kind(*KINDS.get(b as usize).unwrap_or(&ErrorKind::Internal)),
                    code => Refusal::Code(code),
                };
                Self::Error(
                    refusal,
                    message.unwrap_or_default(),
                    reader::find(text, "data"),
                )
            }
            _ => match misfit(live, kind, text, b) {
                None => Self::Result(kind, text),
                Some(why) => Self::Error(Refusal::Kind(ErrorKind::Internal), why.into(), None),
            },
        }
    }

    /// Answers a call.
    pub fn send(self, replies: &mut Replies, to: &ReplyTo) {
        match self {
            Self::Result(kind, text) => replies.result(to, |result| write(result, kind, text)),
            Self::Error(Refusal::Kind(kind), text, data) => replies.error(to, kind, &text, data),
            Self::Error(Refusal::Code(code), text, data) => {
                replies.error_code(to, code, &text, data);
            }
        }
    }

    /// Ends a task. An error with a code of its own becomes an internal error.
    pub fn end(self, task: &TaskCall) {
        match self {
            Self::Result(kind, text) => {
                task.end_with(is_error(kind, text), |result| write(result, kind, text));
            }
            Self::Error(refusal, text, data) => {
                let kind = match refusal {
                    Refusal::Kind(kind) => kind,
                    Refusal::Code(_) => ErrorKind::Internal,
                };
                task.fail(kind, &text, data);
            }
        }
    }
}

fn is_error(kind: Outbound, text: &str) -> bool {
    match kind {
        Outbound::ToolError => true,
        Outbound::Object => reader::find(text, "isError") == Some("true"),
        _ => false,
    }
}

/// Whether a result of tool `number` is no failure, and fits the tool's output schema.
pub fn is_good(registry: &Registry, number: u32, kind: Outbound, text: &str) -> bool {
    !is_error(kind, text) && unfit(registry, number, kind, text).is_none()
}

/// Why a tool's result does not fit its output schema; `None` if it fits. `tool` is the tool's number counted
/// from one, or 0 without an output schema (R-STR-01).
fn misfit(
    live: &SharedRegistry<Templates>,
    kind: Outbound,
    text: &str,
    tool: f64,
) -> Option<String> {
    if tool == 0.0 {
        return None;
    }
    unfit(&live.snapshot().registry, tool as u32 - 1, kind, text)
}

fn unfit(registry: &Registry, number: u32, kind: Outbound, text: &str) -> Option<String> {
    let structured = match kind {
        Outbound::Structured => Some(text),
        Outbound::Object => reader::find(text, "structuredContent"),
        Outbound::Text => None,
        _ => return None,
    };
    let result = ToolResult {
        structured: structured.map(str::to_owned),
        is_error: is_error(kind, text),
        ..ToolResult::default()
    };
    registry.check_result(number, &result).err()
}

fn write(result: &mut ResultWriter<'_>, kind: Outbound, text: &str) {
    match kind {
        Outbound::Text => text_block(result, text),
        Outbound::ToolError => {
            text_block(result, text);
            result.raw("isError", "true");
        }
        Outbound::Structured => {
            let structured = Some(text.to_owned());
            ToolResult {
                structured,
                ..ToolResult::default()
            }
            .write(result);
        }
        Outbound::Contents => {
            result.raw("contents", text);
            if result.revision().rules().cache_hints {
                result.raw("ttlMs", "0");
                result.raw("cacheScope", "\"private\"");
            }
        }
        _ => object(result, text),
    }
}

fn text_block(result: &mut ResultWriter<'_>, text: &str) {
    result.with("content", |out| {
        out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
        string::append(out, text);
        out.extend_from_slice(b"}]");
    });
}

/// Writes a result that JavaScript built; leaves out members that its revision does not know.
fn object(result: &mut ResultWriter<'_>, json: &str) {
    if result.revision().rules().structured_content {
        return result.object(json);
    }
    for (key, value) in reader::members(json) {
        match key.raw() {
            "structuredContent" => {}
            "_meta" => result.meta(value),
            key => result.raw(key, value),
        }
    }
}
