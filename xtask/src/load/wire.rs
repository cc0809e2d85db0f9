//! The messages: sent ones as bytes, received ones as borrowed parts.

use std::borrow::Cow;

use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::value::RawValue;

const CLIENT: &str = r#"{"name":"mcpbolt-load","version":"0.1.0"}"#;

/// A protocol revision that the client can speak: one of each era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Revision {
    /// With a handshake
    #[value(name = "2025-11-25")]
    Handshake,
    /// With an envelope in each request
    #[value(name = "2026-07-28")]
    Envelope,
}

impl Revision {
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "2025-11-25",
            Self::Envelope => "2026-07-28",
        }
    }

    /// The members of `_meta` that each request carries.
    fn envelope(self) -> String {
        match self {
            Self::Handshake => String::new(),
            Self::Envelope => format!(
                r#""io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientInfo":{CLIENT},"io.modelcontextprotocol/clientCapabilities":{{}}"#,
                self.name()
            ),
        }
    }
}

/// `initialize` of the handshake.
pub fn initialize(id: u64, revision: Revision) -> String {
    let version = revision.name();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{CLIENT}}}}}"#
    )
}

pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// `tools/list`, from the first page or from a cursor (raw JSON).
pub fn list(id: u64, revision: Revision, cursor: Option<&str>) -> String {
    let mut params = Vec::new();
    params.extend(cursor.map(|cursor| format!(r#""cursor":{cursor}"#)));
    let meta = revision.envelope();
    if !meta.is_empty() {
        params.push(format!(r#""_meta":{{{meta}}}"#));
    }
    let params = params.join(",");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{params}}}}}"#)
}

/// `tools/call` with its arguments as raw JSON.
pub fn call(id: u64, revision: Revision, tool: &str, arguments: &str) -> String {
    let meta = match revision.envelope() {
        envelope if envelope.is_empty() => envelope,
        envelope => format!(r#","_meta":{{{envelope}}}"#),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
    )
}

pub fn cancelled(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no longer wanted"}}}}"#
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

/// The text of a tool result with a single text block that is not an error.
pub fn text(result: &RawValue) -> Result<Cow<'_, str>> {
    let parsed: ToolResult<'_> = serde_json::from_str(result.get())?;
    let mut content = parsed.content.into_iter();
    match (parsed.is_error, content.next(), content.next()) {
        (
            false,
            Some(Block {
                kind,
                text: Some(text),
            }),
            None,
        ) if kind == "text" => Ok(text),
        _ => bail!("not one text block: {}", shorten(result.get())),
    }
}

/// The beginning of a long text, for a report.
pub fn shorten(text: &str) -> String {
    text.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn only_one_text_block_is_a_text() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let good = raw(r#"{"content":[{"type":"text","text":"a\n"}],"structuredContent":{}}"#);
        assert_eq!(text(&good).unwrap(), "a\n");
        for bad in [
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":"a"}],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            r#"{"content":[{"type":"image"}]}"#,
        ] {
            assert!(text(&raw(bad)).is_err(), "{bad}");
        }
    }
}
