//! A minimal MCP client over a raw connection, for honest calls.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem::find;
use serde_json::{Value, json};

use super::answer::{Answer, PATIENCE, Speech, read};
use super::case::{Carrier, Kind};
use super::frames;
use super::wire::Wire;

/// The revision used for connections with a handshake.
pub const HANDSHAKE: &str = "2025-11-25";
pub const STATELESS: &str = "2026-07-28";

/// A connection and its state.
pub struct Client {
    pub wire: Wire,
    pub speech: Speech,
    /// The `Host` header.
    pub host: String,
    pub session: Option<String>,
    pub key: Option<String>,
    next: u64,
}

impl Client {
    /// Takes over a new connection.
    pub fn new(wire: Wire, carrier: Carrier, host: &str) -> Self {
        Self {
            wire,
            speech: match carrier {
                Carrier::Http => Speech::Http,
                // Until the upgrade is done.
                Carrier::Ws => Speech::Http,
                Carrier::Tcp | Carrier::Unix | Carrier::Stdio => Speech::Lines,
            },
            host: host.to_owned(),
            session: None,
            key: None,
            next: 1,
        }
    }

    /// Upgrades to a WebSocket.
    pub fn upgrade(&mut self) -> Result<()> {
        let key = self.credentials();
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\n{key}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.host
        );
        self.wire.send(request.as_bytes())?;
        match read(&mut self.wire, Speech::Http, PATIENCE)? {
            Answer::Http { status: 101, .. } => self.speech = Speech::WebSocket,
            other => bail!("the server does not go on as a WebSocket: {other:?}"),
        }
        Ok(())
    }

    fn credentials(&self) -> String {
        let line = |key| format!("X-API-Key: {key}\r\n");
        self.key.as_ref().map(line).unwrap_or_default()
    }

    /// Sends `initialize` and the initialized notification.
    pub fn shake_hands(&mut self) -> Result<()> {
        let mut params = json!({
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": "attacks", "version": "1"},
        });
        self.prove(&mut params);
        let answer = self.ask("initialize", params)?;
        ensure!(
            answer.json()["result"].is_object(),
            "no handshake: {answer:?}"
        );
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.say(note.to_string().as_bytes(), self.kind())?;
        if self.speech == Speech::Http {
            let answer = read(&mut self.wire, self.speech, PATIENCE)?;
            ensure!(
                matches!(answer, Answer::Http { status: 202, .. }),
                "{answer:?}"
            );
        }
        Ok(())
    }

    /// Adds the key to the params if the carrier has no headers.
    fn prove(&self, params: &mut Value) {
        if let (Some(key), Speech::Lines) = (&self.key, self.speech) {
            params["_meta"]["auth"] = json!({"type": "api_key", "key": key});
        }
    }

    fn kind(&self) -> Kind {
        match self.session {
            Some(_) => Kind::Session,
            None => Kind::Json,
        }
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Answer> {
        let id = self.next;
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(request.to_string().as_bytes(), self.kind())?;
        let answer = read(&mut self.wire, self.speech, PATIENCE)?;
        let found = &answer.json()["id"];
        ensure!(
            *found == id,
            "the answer to {method} has the id {found}: {answer:?}"
        );
        Ok(answer)
    }

    /// Calls a tool and returns the text of its result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<String> {
        let mut params = json!({"name": tool, "arguments": arguments});
        self.prove(&mut params);
        let answer = self.ask("tools/call", params)?;
        let text = &answer.json()["result"]["content"][0]["text"];
        let text = text
            .as_str()
            .with_context(|| format!("{tool}: {answer:?}"))?;
        Ok(text.to_owned())
    }

    /// Calls the tool `echo` with a text of its own, and checks the answer.
    pub fn echo(&mut self, number: u64) -> Result<()> {
        let text = format!("call {number}");
        let said = self.call("echo", json!({"text": text}))?;
        ensure!(said == text, "{said:?} instead of {text:?}");
        Ok(())
    }

    /// Sends a message, framed for the carrier. Returns whether the server took all of it.
    pub fn say(&mut self, message: &[u8], kind: Kind) -> Result<bool> {
        let bytes = match self.speech {
            Speech::Lines => [message, b"\n"].concat(),
            Speech::WebSocket => frames::text(message),
            Speech::Http | Speech::Head => {
                let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", self.host);
                head += &self.credentials();
                head += &self.headers(kind, message);
                let _ = write!(head, "Content-Length: {}\r\n\r\n", message.len());
                [head.as_bytes(), message].concat()
            }
        };
        self.wire.send(&bytes)
    }

    /// The headers to send with a message.
    pub fn headers(&self, kind: Kind, message: &[u8]) -> String {
        let usual =
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        let more = match kind {
            Kind::None => return String::new(),
            Kind::Json => String::new(),
            Kind::Session => {
                let session = self.session.as_deref().unwrap_or_default();
                format!("MCP-Protocol-Version: {HANDSHAKE}\r\nMcp-Session-Id: {session}\r\n")
            }
            Kind::Stateless => {
                let mut more = format!("MCP-Protocol-Version: {STATELESS}\r\n");
                let named = [
                    ("Mcp-Method", "\"method\":\""),
                    ("Mcp-Name", "\"params\":{\"name\":\""),
                    ("Mcp-Name", "\"params\":{\"uri\":\""),
                    ("Mcp-Name", "\"params\":{\"taskId\":\""),
                ];
                for (name, before) in named {
                    let value = between(message, before.as_bytes());
                    if !value.is_empty() {
                        let _ = write!(more, "{name}: {value}\r\n");
                    }
                }
                more
            }
        };
        usual.to_owned() + &more
    }

    /// The counters of the tool `stats`, and how long its call took.
    pub fn stats(&mut self) -> Result<(Value, Duration)> {
        let begin = Instant::now();
        let text = self.call("stats", json!({}))?;
        Ok((serde_json::from_str(&text)?, begin.elapsed()))
    }
}

/// The text after `words` up to the next quote; empty if `words` are not found.
fn between<'a>(message: &'a [u8], words: &[u8]) -> &'a str {
    let rest = find(message, words).map(|at| &message[at + words.len()..]);
    let text = rest.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default()
}
