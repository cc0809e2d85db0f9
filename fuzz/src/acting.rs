//! The law of servers of the action dialect on a byte stream: for any input line, each request in it gets
//! exactly one well-formed answer with its id, and so do the requests that follow.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use mcpbolt::action::decode;
use mcpbolt::buffer::PADDING;
use mcpbolt::connection::{Connection, Framing};
use mcpbolt::handler::{Job, Spawner};
use mcpbolt::json::reader;
use mcpbolt::limits::MAX_ID_BYTES;
use mcpbolt::message::{Envelope, Field, Frame, Kind, MessageRef};
use mcpbolt::server::{Arguments, Server, Tool};

const WELL: &[u8] =
    br#"{"action":"mcp.health_check","params":{},"metadata":{"request_id":"after"}}"#;
const TEXT: &str = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;

/// A server whose handlers all run inline, on the thread that reads requests.
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    ["file_system.read", "a", "n"]
        .iter()
        .fold(
            Server::builder("fuzz", "1.0.0").actions(true),
            |server, name| {
                let tool = Tool::new(*name).input_schema(TEXT);
                server.inline_tool(tool, |arguments: Arguments| arguments.0.into_string())
            },
        )
        .build()
        .expect("the tools are good")
});

struct Nobody;

impl Spawner for Nobody {
    fn spawn(&self, _: Job) {
        panic!("nothing is to be run elsewhere");
    }
}

/// All lines get valid answers, and no call is left in flight.
pub fn conversation(bytes: &[u8]) {
    let now = Instant::now();
    let mut connection = Connection::new(SERVER.config().clone(), now);
    let stream = connection.open_stream(Framing::Line);
    let mut host = SERVER.host(connection.handle(), None, Arc::new(Nobody));
    let mut say = |line: &[u8]| {
        let input = connection.input(stream);
        input.extend(line);
        input.extend(b"\n");
        connection.receive(stream, now, &mut host);
        assert_eq!(connection.in_flight(), 0);
        let said: Vec<u8> = connection.output(stream).take().flatten().collect();
        said
    };
    for line in bytes.split(|byte| *byte == b'\n') {
        holds(line, &say(line));
    }
    let said = say(WELL);
    holds(WELL, &said);
    assert!(
        said.ends_with(b"\"request_id\":\"after\"}}\n"),
        "{}",
        said.escape_ascii()
    );
}

fn holds(line: &[u8], said: &[u8]) {
    let shown = || format!("{} got {}", line.escape_ascii(), said.escape_ascii());
    let answers: Vec<_> = said.split_inclusive(|byte| *byte == b'\n').collect();
    for answer in &answers {
        assert!(answer.ends_with(b"\n"), "{}", shown());
        with(answer, |verdict, answer| {
            assert!(verdict, "{}", shown());
            let is_action =
                answer.raw(Field::ResultType).is_some() || find(answer, "status").is_some();
            let is_one = matches!(answer.kind(), Kind::Response | Kind::Error);
            assert!(is_one || !is_action, "{}", shown());
        });
    }
    let jsonrpc = line.windows(9).any(|bytes| bytes == b"\"jsonrpc\"");
    if !line.starts_with(b"{\"action\"") || jsonrpc {
        return;
    }
    with(line, |verdict, asked| {
        assert_eq!(answers.len(), 1, "{}", shown());
        let id = asked.raw(Field::Id);
        let id = id.filter(|id| verdict && id.len() <= MAX_ID_BYTES);
        with(answers[0], |_, answer| {
            assert!(
                matches!(answer.kind(), Kind::Response | Kind::Error),
                "{}",
                shown()
            );
            if id.is_some() {
                assert_eq!(answer.raw(Field::Id), id, "{}", shown());
            }
            if !verdict || asked.kind() != Kind::Request {
                assert_eq!(answer.kind(), Kind::Error, "{}", shown());
            }
        });
    });
}

/// A member of the top level, if the message is valid JSON.
fn find<'a>(message: MessageRef<'a>, name: &str) -> Option<&'a str> {
    reader::find(std::str::from_utf8(message.bytes()).ok()?, name)
}

/// Decodes a line and calls `look` with whether it is valid JSON, and with the decoded action.
fn with(line: &[u8], look: impl FnOnce(bool, MessageRef<'_>)) {
    let mut block = line.to_vec();
    block.resize(line.len() + PADDING, 0);
    let frame = Frame::new(&block, line.len()).expect("the block is padded");
    let mut envelope = Envelope::new();
    let verdict = decode(frame, 512, &mut envelope).is_ok();
    look(verdict, MessageRef::new(frame, &envelope));
}
