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

/// `tools/call` with its arguments as raw JSON; the id is the progress token.
pub fn call(id: u64, revision: Revision, tool: &str, arguments: &str, progress: bool) -> String {
    let mut meta = Vec::new();
    meta.extend(Some(revision.envelope()).filter(|envelope| !envelope.is_empty()));
    meta.extend(progress.then(|| format!(r#""progressToken":{id}"#)));
    let meta = match meta.as_slice() {
        [] => String::new(),
        members => format!(r#","_meta":{{{}}}"#, members.join(",")),
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

/// The calls of a closed loop, and their expected answers.
pub enum Workload {
    /// `echo` of a text unique to the call.
    Echo(Echo),
    /// `progress(n)`: n notifications, then the answer.
    Progress { revision: Revision, count: u32 },
}

/// One text for many calls: only its first bytes, derived from the id, differ.
pub struct Echo {
    revision: Revision,
    filler: String,
    /// The filler, escaped for a JSON string.
    escaped: String,
}

/// Typical prose and code in tool calls: mostly plain, some escaped, some not ASCII.
const PROSE: &str = "fn main() {\n\tprintln!(\"hello, {}\", name); // C:\\temp — naïve, 你好, 🦀\n}\nMost of what a tool is given is plain text that needs no escaping at all, like this line.\n";

/// How many bytes of a text are derived from its id.
const MARK_BYTES: usize = 16;

fn mark(id: u64) -> String {
    format!("{:016x}", id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Workload {
    /// `echo` of texts of `bytes` bytes, at least 16.
    pub fn echo(revision: Revision, bytes: usize) -> Self {
        let wanted = bytes.saturating_sub(MARK_BYTES);
        let mut filler = PROSE.repeat(wanted / PROSE.len() + 1);
        let mut end = wanted;
        while !filler.is_char_boundary(end) {
            end -= 1;
        }
        filler.truncate(end);
        filler.push_str(&".".repeat(wanted - end));
        let quoted = serde_json::Value::from(filler.as_str()).to_string();
        let escaped = quoted[1..quoted.len() - 1].to_owned();
        Self::Echo(Echo {
            revision,
            filler,
            escaped,
        })
    }

    /// Appends the call with this id.
    pub fn write(&self, id: u64, out: &mut Vec<u8>) {
        let text = match self {
            Self::Echo(echo) => {
                let arguments = format!(r#"{{"text":"{}{}"}}"#, mark(id), echo.escaped);
                call(id, echo.revision, "echo", &arguments, false)
            }
            Self::Progress { revision, count } => call(
                id,
                *revision,
                "progress",
                &format!(r#"{{"n":{count}}}"#),
                true,
            ),
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// The number of progress notifications that each call must get.
    pub fn progress(&self) -> u32 {
        match self {
            Self::Echo(_) => 0,
            Self::Progress { count, .. } => *count,
        }
    }

    /// Checks the text in the answer to the call with this id.
    pub fn check(&self, id: u64, text: &str) -> Result<()> {
        let right = match self {
            Self::Echo(echo) => text
                .strip_prefix(&mark(id))
                .is_some_and(|rest| rest == echo.filler),
            Self::Progress { .. } => text == "done",
        };
        if !right {
            bail!(
                "call {id} was answered with another text: {}",
                shorten(text)
            );
        }
        Ok(())
    }
}

/// Any message from a server.
#[derive(Deserialize)]
pub struct Message<'a> {
    #[serde(borrow)]
    pub jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The params of `notifications/progress`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress<'a> {
    #[serde(borrow)]
    pub progress_token: &'a RawValue,
    pub progress: f64,
    pub total: Option<f64>,
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
    use serde_json::Value;

    #[test]
    fn an_echo_call_asks_for_what_its_check_accepts() {
        for revision in [Revision::Handshake, Revision::Envelope] {
            for bytes in [16, 100, 117, 10_000] {
                let workload = Workload::echo(revision, bytes);
                let mut out = Vec::new();
                workload.write(7, &mut out);
                let sent: Value = serde_json::from_slice(&out).unwrap();
                let text = sent["params"]["arguments"]["text"].as_str().unwrap();
                assert_eq!((sent["id"].as_u64(), text.len()), (Some(7), bytes));
                assert!(workload.check(7, text).is_ok());
                assert!(
                    workload.check(8, text).is_err(),
                    "an answer to another call"
                );
                assert!(
                    workload.check(7, &text[..bytes - 1]).is_err(),
                    "a cut answer"
                );
                let has_envelope = sent["params"]["_meta"].is_object();
                assert_eq!(has_envelope, revision == Revision::Envelope);
            }
        }
    }

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
