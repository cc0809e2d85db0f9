//! A server, driven by hand: what it says to each line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::connection::{Connection, Framing, StreamId};
use mcpbolt::error::ConnectionError;
use mcpbolt::handler::{Job, Spawner};
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::mcp::{Era, Revision, meta};
use mcpbolt::server::{Arguments, Server, ServerHost, Tool};
use serde_json::{Value, json};

pub struct Wire {
    pub server: Server,
    pub connection: Connection,
    stream: StreamId,
    host: ServerHost,
    now: Instant,
    asked: u64,
    /// The capabilities that the client declares.
    pub capabilities: Value,
    /// All that was heard, as it came.
    pub lines: Vec<String>,
}

impl Wire {
    pub fn new(server: Server) -> Self {
        Self::on(server, Arc::new(Workers::new(WorkersConfig::default())))
    }

    /// One whose handlers run there.
    pub fn on(server: Server, spawner: Arc<dyn Spawner>) -> Self {
        Self::framed(server, spawner, Framing::Line)
    }

    /// The same, framed so.
    pub fn framed(server: Server, spawner: Arc<dyn Spawner>, framing: Framing) -> Self {
        let now = Instant::now();
        let mut connection = Connection::new(server.config().clone(), now);
        let stream = connection.open_stream(framing);
        let host = server.host(connection.handle(), None, spawner);
        Self {
            server,
            connection,
            stream,
            host,
            now,
            asked: 0,
            capabilities: json!({}),
            lines: Vec::new(),
        }
    }

    /// One that is open for operation in that revision.
    pub fn open(server: &Server, revision: Revision, capabilities: Value) -> Self {
        let info = json!({"name": "by hand", "version": "1"});
        Self::open_as(server, revision, capabilities, &info)
    }

    /// The same for a client that calls itself that.
    pub fn open_as(server: &Server, revision: Revision, capabilities: Value, info: &Value) -> Self {
        let mut wire = Self::new(server.clone());
        if revision.era() == Era::Handshake {
            let hello = json!({"protocolVersion": revision.name(), "capabilities": capabilities, "clientInfo": info});
            let opened = wire.ask_as(None, "initialize", hello);
            assert_eq!(opened["result"]["protocolVersion"], revision.name());
            wire.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        wire.capabilities = capabilities;
        wire
    }

    pub fn say(&mut self, line: &str) -> Vec<Value> {
        let input = self.connection.input(self.stream);
        input.extend(line.as_bytes());
        input.extend(b"\n");
        self.connection
            .receive(self.stream, self.now, &mut self.host);
        self.hear()
    }

    /// Asks in that revision and waits for the answer, which is a whole message.
    pub fn ask(&mut self, revision: Revision, method: &str, params: Value) -> Value {
        let era = revision.era();
        self.ask_as((era == Era::Stateless).then_some(revision), method, params)
    }

    /// The answer, and what came before it.
    fn ask_as(&mut self, envelope: Option<Revision>, method: &str, mut params: Value) -> Value {
        self.asked += 1;
        if let Some(revision) = envelope {
            params["_meta"][meta::PROTOCOL_VERSION] = revision.name().into();
            params["_meta"][meta::CLIENT_CAPABILITIES] = self.capabilities.clone();
        }
        let id = self.asked;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut heard = self.say(&line.to_string());
        let begun = Instant::now();
        loop {
            if let Some(answer) = heard.into_iter().find(|said| said["id"] == id) {
                return answer;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "no answer to {line}"
            );
            std::thread::sleep(Duration::from_millis(1));
            heard = self.hear();
        }
    }

    /// Asks in the revision that the wire is open in, or the newest, and does not wait.
    pub fn begin(&mut self, method: &str, mut params: Value) -> Vec<Value> {
        if self.connection.handle().revision().is_none() {
            params["_meta"][meta::PROTOCOL_VERSION] = Revision::V2026_07_28.name().into();
            params["_meta"][meta::CLIENT_CAPABILITIES] = self.capabilities.clone();
        }
        let line = json!({"jsonrpc": "2.0", "id": "begun", "method": method, "params": params});
        self.say(&line.to_string())
    }

    /// The messages until then, on a clock that stands still.
    pub fn hear_until(&mut self, is_over: impl Fn(&Self) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        let mut heard = Vec::new();
        loop {
            let over = is_over(self);
            heard.extend(self.hear());
            if over {
                return heard;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{heard:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The messages while so much time passes.
    pub fn pass(&mut self, time: Duration) -> Vec<Value> {
        self.now += time;
        self.connection.handle_timeout(self.now, &mut self.host);
        self.hear()
    }

    pub fn drain(&mut self) {
        let (grace, why) = (Duration::from_secs(5), ConnectionError::ShuttingDown);
        self.connection.drain(self.now, grace, why, &mut self.host);
    }

    /// Says a last thing, without the end of its line.
    pub fn end_with(&mut self, line: &str) {
        self.connection.input(self.stream).extend(line.as_bytes());
        self.connection
            .receive_end(self.stream, self.now, &mut self.host);
    }

    /// The immediate reply to a line, as it stands on the wire.
    pub fn raw(&mut self, line: &str) -> String {
        String::from_utf8(self.bytes(format!("{line}\n").as_bytes())).unwrap()
    }

    /// The same of any bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.connection.input(self.stream).extend(bytes);
        self.connection
            .receive(self.stream, self.now, &mut self.host);
        let pieces = self.connection.output(self.stream).take();
        pieces.flatten().collect()
    }

    pub fn hear(&mut self) -> Vec<Value> {
        self.connection.handle_submissions(self.now, &mut self.host);
        let output = self.connection.output(self.stream);
        let mut bytes = Vec::new();
        while !output.is_empty() {
            bytes.extend_from_slice(output.head());
            output.advance(output.head().len());
        }
        self.connection.handle_timeout(self.now, &mut self.host);
        let said = String::from_utf8(bytes).unwrap();
        self.lines.extend(said.lines().map(str::to_owned));
        let parsed = said.lines().map(serde_json::from_str);
        parsed.map(Result::unwrap).collect()
    }
}

/// Loses what it is given, as a runtime does that ends.
struct Careless;

impl Spawner for Careless {
    fn spawn(&self, job: Job) {
        drop(job);
    }
}

#[test]
fn a_call_whose_handler_is_never_begun_is_answered() {
    let tool = |_: Arguments, _| async { "done" };
    let server = Server::builder("server", "1").tool(Tool::new("x"), tool);
    let mut wire = Wire::on(server.build().unwrap(), Arc::new(Careless));
    let call = json!({"name": "x", "arguments": {}});
    let answer = wire.ask(Revision::V2026_07_28, "tools/call", call);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(wire.connection.in_flight(), 0);
}
