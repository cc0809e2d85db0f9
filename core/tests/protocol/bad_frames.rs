//! Every case of `corpus/bad_frames.json`, through a whole connection in memory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::{Batch, Call, Connection, Framing, Handle, StreamId};
use mcpbolt::handler::Executor;
use mcpbolt::json::{number, reader};
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Revision, Side};
use mcpbolt::server::{Registry, ServerHost, Tool, ToolResult};
use serde_json::Value;

const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Holds every call until it is told to answer.
struct Held(Vec<Call>);

impl Executor for Held {
    fn run(&mut self, batch: Batch) {
        self.0.extend(batch.calls());
    }
}

struct Pair {
    connection: Connection,
    host: ServerHost<Held>,
    handle: Handle,
    stream: StreamId,
}

impl Pair {
    fn open(era: &Value) -> Self {
        let mut registry = Registry::new();
        let integer =
            r#"{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"]}"#;
        registry
            .add_tool(Tool::new("sleep").input_schema(integer))
            .unwrap();
        let mut config = registry.config("corpus", "1");
        config.limits = Limits {
            max_message_bytes: MAX_MESSAGE_BYTES,
            ..Limits::STDIO
        };
        let mut connection = Connection::new(Arc::new(config), Instant::now());
        let handle = connection.handle();
        let stream = connection.open_stream(Framing::Line);
        let host = ServerHost::new(
            Arc::new(registry),
            handle.clone(),
            Box::new(Held(Vec::new())),
        );
        let mut pair = Self {
            connection,
            host,
            handle,
            stream,
        };
        for line in era["open"].as_array().unwrap() {
            pair.feed(
                format!("{}\n", line.as_str().unwrap()).as_bytes(),
                usize::MAX,
            );
        }
        let answers = pair.take();
        assert_eq!(
            answers.len() as u64,
            era["opening_answers"].as_u64().unwrap_or(0),
            "{answers:?}"
        );
        pair
    }

    fn feed(&mut self, bytes: &[u8], chunk: usize) {
        for part in bytes.chunks(chunk) {
            self.connection.input(self.stream).extend(part);
            self.connection
                .receive(self.stream, Instant::now(), &mut self.host);
        }
    }

    /// Answers what is held and takes everything that was written.
    fn take(&mut self) -> Vec<String> {
        for call in std::mem::take(&mut self.host.executor().0) {
            let result = ToolResult::text("slept");
            self.handle
                .replies()
                .result(&call.reply, |writer| result.write(writer));
        }
        self.connection
            .handle_submissions(Instant::now(), &mut self.host);
        let output = self.connection.output(self.stream);
        let mut bytes = Vec::new();
        while !output.is_empty() {
            bytes.extend_from_slice(output.head());
            output.advance(output.head().len());
        }
        String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

fn bytes_of(part: &Value, era: &Value) -> Vec<u8> {
    if let Some(text) = part.as_str() {
        let rest = text.replace("$rest", era["rest"].as_str().unwrap_or_default());
        return rest
            .replace("$sleep", era["sleep"].as_str().unwrap_or_default())
            .into_bytes();
    }
    if let Some(hex) = part["hex"].as_str() {
        let digits: Vec<u8> = hex
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        return digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
    }
    let count = match &part["count"] {
        Value::String(text) if text == "over the limit" => MAX_MESSAGE_BYTES + 1,
        count => count.as_u64().unwrap() as usize,
    };
    part["repeat"].as_str().unwrap().repeat(count).into_bytes()
}

/// Raw id or "absent", code or none, and whether a tool reports a failure.
type Outcome = (String, Option<i64>, bool);

fn outcome(line: &str, revision: Revision) -> Outcome {
    mcpbolt::json::validate(line.as_bytes(), 64).unwrap_or_else(|error| panic!("{error}: {line}"));
    crate::schema::assert_may_send(Side::Server, revision, line);
    let id = reader::find(line, "id").unwrap_or("absent").to_owned();
    (
        id,
        reader::find_path(line, &["error", "code"]).and_then(number::as_i64),
        reader::find_path(line, &["result", "isError"]) == Some("true"),
    )
}

fn expected(answer: &Value, era: &Value) -> Outcome {
    let id = match answer["id"].as_str().unwrap() {
        "?" => era["unreadable_id"].as_str().unwrap(),
        raw => raw,
    };
    let is_error = answer["is_error"] == true;
    (id.to_owned(), answer["code"].as_i64(), is_error)
}

/// R-RPC-01 to R-RPC-03, R-RPC-05 to R-RPC-13, R-RPC-17, R-RPC-21 to R-RPC-25, R-BAT-01, R-BAT-03 to
/// R-BAT-05, R-BAT-08, R-STD-04, R-ERR-01, R-LIF-14, R-LIF-15, R-CAN-04, R-PAG-07.
#[test]
fn every_bad_frame_has_its_defined_outcome() {
    let corpus: Value =
        serde_json::from_str(include_str!("../../../corpus/bad_frames.json")).unwrap();
    let mut played = 0;
    let mut faults = Vec::new();
    for (name, era) in corpus["eras"].as_object().unwrap() {
        // Before any envelope it is answered as in the revisions that have `id: null`.
        let current = name.split(' ').next().and_then(Revision::parse);
        let revision = current.unwrap_or(Revision::V2025_06_18);
        let outcome = |line: &String| outcome(line, revision);
        for case in corpus["frames"].as_array().unwrap() {
            let eras = case["eras"].as_array();
            if eras.is_some_and(|eras| !eras.iter().any(|era| era == name.as_str())) {
                continue;
            }
            for chunk in [usize::MAX, 1, 4093] {
                let parts = case["send"].as_array().unwrap();
                let mut bytes: Vec<u8> =
                    parts.iter().flat_map(|part| bytes_of(part, era)).collect();
                bytes.push(b'\n');
                if chunk == 1 && bytes.len() > 10_000 {
                    continue;
                }
                played += 1;
                let mut pair = Pair::open(era);
                pair.feed(&bytes, chunk);
                let mut seen: Vec<_> = pair.take().iter().map(outcome).collect();
                let mut wanted: Vec<_> = case["expect"].as_array().map_or(Vec::new(), |list| {
                    list.iter().map(|answer| expected(answer, era)).collect()
                });
                if case["any_order"] == true {
                    seen.sort();
                    wanted.sort();
                }
                if seen != wanted {
                    faults.push(format!(
                        "{name}: {}: saw {seen:?}, wanted {wanted:?}",
                        case["name"]
                    ));
                    continue;
                }
                let then = case["then"].as_str().unwrap_or("\"then\"");
                let rest = era["rest"].as_str().unwrap();
                pair.feed(
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{then},{rest}}}\n").as_bytes(),
                    usize::MAX,
                );
                let seen: Vec<_> = pair.take().iter().map(outcome).collect();
                if seen != [(then.to_owned(), None, false)] {
                    faults.push(format!("{name}: {}: then saw {seen:?}", case["name"]));
                }
            }
        }
    }
    assert!(played > 1000, "only {played} cases");
    assert!(
        faults.is_empty(),
        "{} of {played}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
