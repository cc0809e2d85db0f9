//! One submit: what handlers gave back in one tick, as one string and a table of numbers.
//!
//! A row is [`ROW`] numbers: kind, call, length of its text in UTF-16 units, and two more that
//! depend on the kind. The texts follow each other in the string, with one unit between them.
//! The kinds are those of `Outbound` in the face.

use mcpbolt::connection::{Handle, Progress, Replies, ReplyTo, ResultWriter};
use mcpbolt::json::{reader, string};
use mcpbolt::mcp::{ErrorKind, LogLevel};
use mcpbolt::server::{Live, ToolResult};

use crate::calls::Underway;
use crate::offer::Templates;
use crate::slots::Slots;

const ROW: usize = 5;

/// What a row asks for.
enum Kind {
    /// One block of text. The last number of this and the next two is the tool's, counted from
    /// one, if it has an output schema.
    Text,
    /// Structured content, as JSON.
    Structured,
    /// A whole result object, as JSON.
    Object,
    /// The contents of a resource: a JSON array.
    Contents,
    /// A tool's failure, told to the model.
    ToolError,
    /// A JSON-RPC error: its code; or 0 and its kind, internal, invalid params or not found.
    Error,
    /// Progress: how far, and of how much (NaN when unknown).
    Progress,
    /// A log message: level, and the length of the logger's name before the JSON.
    Log,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Text,
        Self::Structured,
        Self::Object,
        Self::Contents,
        Self::ToolError,
        Self::Error,
        Self::Progress,
        Self::Log,
    ];

    fn is_answer(&self) -> bool {
        !matches!(self, Self::Progress | Self::Log)
    }
}

/// Writes what one tick gave and hands it to the engine.
pub fn submit(
    handle: &Handle,
    live: Option<&Live<Templates>>,
    calls: &mut Slots<Underway>,
    text: &str,
    table: &[f64],
) {
    let mut pieces = Pieces::new(text, table);
    let mut replies = handle.replies();
    for row in table.chunks_exact(ROW) {
        let [kind, number, units, a, b] = *row else {
            return;
        };
        let piece = pieces.next(units as usize);
        let Some(kind) = Kind::ALL.get(kind as usize) else {
            continue;
        };
        let number = number as u32;
        if !kind.is_answer() {
            if let Some(call) = calls.get(number) {
                news(&mut replies, &call.reply, kind, piece, a, b);
            }
        } else if let Some(call) = calls.remove(number) {
            match misfit(live, kind, piece, b) {
                None => answer(&mut replies, &call.reply, kind, piece, (a, b)),
                Some(why) => replies.error(&call.reply, ErrorKind::Internal, &why, None),
            }
        }
    }
}

fn news(replies: &mut Replies, to: &ReplyTo, kind: &Kind, piece: &str, a: f64, b: f64) {
    if let Kind::Progress = kind {
        let progress = Progress {
            progress: a,
            total: (!b.is_nan()).then_some(b),
            message: (!piece.is_empty()).then_some(piece),
        };
        return replies.progress(to, progress);
    }
    let level = LogLevel::ALL.get(a as usize).copied();
    let (logger, data) = piece.split_at(boundary(piece, b as usize));
    let logger = (!logger.is_empty()).then_some(logger);
    replies.log(to, level.unwrap_or(LogLevel::Info), logger, data);
}

/// What is wrong with what a tool gave back, if its row says that it has an output schema: by the
/// tool's number, counted from one (R-STR-01).
fn misfit(live: Option<&Live<Templates>>, kind: &Kind, piece: &str, tool: f64) -> Option<String> {
    if tool == 0.0 {
        return None;
    }
    let member = |name| reader::find(piece, name);
    let (structured, is_error) = match kind {
        Kind::Structured => (Some(piece), false),
        Kind::Object => (
            member("structuredContent"),
            member("isError") == Some("true"),
        ),
        Kind::Text => (None, false),
        _ => return None,
    };
    let result = ToolResult {
        structured: structured.map(str::to_owned),
        is_error,
        ..ToolResult::default()
    };
    let registry = live?.offer().registry;
    registry.check_result(tool as u32 - 1, &result).err()
}

fn answer(replies: &mut Replies, to: &ReplyTo, kind: &Kind, piece: &str, (code, what): (f64, f64)) {
    match kind {
        Kind::Text => replies.result(to, |result| text_block(result, piece)),
        Kind::ToolError => replies.result(to, |result| {
            text_block(result, piece);
            result.raw("isError", "true");
        }),
        Kind::Structured => replies.result(to, |result| {
            let structured = Some(piece.to_owned());
            ToolResult {
                structured,
                ..ToolResult::default()
            }
            .write(result);
        }),
        Kind::Object => replies.result(to, |result| object(result, piece)),
        Kind::Contents => replies.result(to, |result| {
            result.raw("contents", piece);
            if result.revision().rules().cache_hints {
                result.raw("ttlMs", "0");
                result.raw("cacheScope", "\"private\"");
            }
        }),
        Kind::Error if code != 0.0 => replies.error_code(to, code as i64, piece, None),
        Kind::Error => {
            let kinds = [
                ErrorKind::Internal,
                ErrorKind::InvalidParams,
                ErrorKind::ResourceNotFound,
            ];
            let kind = kinds.get(what as usize).unwrap_or(&ErrorKind::Internal);
            replies.error(to, *kind, piece, None);
        }
        Kind::Progress | Kind::Log => {}
    }
}

fn text_block(result: &mut ResultWriter<'_>, text: &str) {
    result.with("content", |out| {
        out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
        string::append(out, text);
        out.extend_from_slice(b"}]");
    });
}

/// A result that JavaScript put together; what its revision does not know is left out.
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

/// The texts of a tick, one after the other.
struct Pieces<'a> {
    rest: &'a str,
    /// Units and bytes are the same throughout.
    ascii: bool,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str, table: &[f64]) -> Self {
        let rows = table.chunks_exact(ROW);
        let between = rows.len().saturating_sub(1);
        let units: usize = rows
            .map(|row| row.get(2).map_or(0, |units| *units as usize))
            .sum();
        Self {
            rest: text,
            ascii: units + between == text.len(),
        }
    }

    fn next(&mut self, units: usize) -> &'a str {
        let end = match self.ascii {
            true => units,
            false => boundary(self.rest, units),
        };
        let (piece, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest.get(1..).unwrap_or_default();
        piece
    }
}

/// The byte at which the first `units` UTF-16 units of a text end.
fn boundary(text: &str, units: usize) -> usize {
    let mut left = units;
    for (at, c) in text.char_indices() {
        if left == 0 {
            return at;
        }
        left = left.saturating_sub(c.len_utf16());
    }
    text.len()
}
