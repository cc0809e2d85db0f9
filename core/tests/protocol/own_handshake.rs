//! Hosts that answer more than the registry does: the handshake, pings and discovery, which the
//! protocol layer answers otherwise, and requests before the registry sees them.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use mcpbolt::connection::{
    Answer, Batch, Connection, Disposition, Framing, Handle, IncomingRequest, Operation, StreamId,
};
use mcpbolt::handler::Executor;
use mcpbolt::mcp::{ErrorKind, Method, Revision};
use mcpbolt::message::MessageRef;
use mcpbolt::server::{Registry, ServerHost, Tool};
use serde_json::{Value, json};

/// The methods that came to the host, in order.
type Seen = Arc<Mutex<Vec<String>>>;

/// Answers all there is itself, but the lists: those are the registry's.
struct Whole {
    handle: Handle,
    seen: Seen,
    /// Whether it lets clients in.
    welcomes: bool,
    /// Whether it keeps notifications to itself.
    keeps: bool,
}

impl Whole {
    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }
}

impl Executor for Whole {
    fn opens(&self, method: Method) -> bool {
        method != Method::Ping || self.welcomes
    }

    fn first<'a>(
        &mut self,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        self.note(request.message.method().unwrap_or_default());
        match request.method {
            Some(Method::ListTools) => Err(answer),
            Some(Method::Ping) => Ok(answer.result(|result| result.raw("own", "true"))),
            _ => Ok(Disposition::Deferred(Operation::Own(7))),
        }
    }

    fn hear(&mut self, message: MessageRef<'_>) -> bool {
        self.note(message.method().unwrap_or_default());
        self.keeps
    }

    fn initialized(&mut self) {
        self.note("ready");
    }

    fn run(&mut self, batch: Batch) {
        let mut replies = self.handle.replies();
        for call in batch.calls() {
            assert_eq!(call.operation, Operation::Own(7));
            match self.welcomes {
                true => replies.whole_result(&call.reply, r#"{"by":"the host"}"#),
                false => replies.error(&call.reply, ErrorKind::InvalidParams, "not you", None),
            }
        }
    }
}

/// A server by itself, spoken with in bytes.
struct Side {
    connection: Connection,
    stream: StreamId,
    host: ServerHost<Whole>,
    seen: Seen,
}

impl Side {
    fn new(welcomes: bool, keeps: bool) -> Self {
        let mut registry = Registry::new();
        registry.add_tool(Tool::new("echo")).unwrap();
        let config = Arc::new(registry.config("test", "1"));
        let mut connection = Connection::new(config, Instant::now());
        let (handle, seen) = (connection.handle(), Seen::default());
        let whole = Whole {
            handle: handle.clone(),
            seen: seen.clone(),
            welcomes,
            keeps,
        };
        Self {
            stream: connection.open_stream(Framing::Line),
            host: ServerHost::new(Arc::new(registry), handle, Box::new(whole)),
            connection,
            seen,
        }
    }

    /// Says one message, and gives what is said to it.
    fn say(&mut self, message: Value) -> Vec<Value> {
        let now = Instant::now();
        let line = format!("{message}\n");
        self.connection.input(self.stream).extend(line.as_bytes());
        self.connection.receive(self.stream, now, &mut self.host);
        self.connection.handle_submissions(now, &mut self.host);
        let output = self.connection.output(self.stream);
        let mut said = Vec::new();
        while !output.is_empty() {
            said.extend_from_slice(output.head());
            output.advance(output.head().len());
        }
        let lines = said
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut said = self.say(request);
        assert_eq!(said.len(), 1, "{method}: {said:?}");
        said.remove(0)
    }

    fn tell(&mut self, method: &str) {
        assert!(
            self.say(json!({"jsonrpc": "2.0", "method": method}))
                .is_empty()
        );
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

fn hello(revision: &str) -> Value {
    let client = json!({"name": "raw", "version": "1"});
    json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client})
}

/// R-LIF-06: the answer is the host's word for word, and the revision is settled by then.
#[test]
fn a_handshake_is_answered_by_the_host_and_settled_by_the_connection() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut side = Side::new(true, true);
        let said = side.ask("initialize", hello(revision));
        assert_eq!(said["result"], json!({"by": "the host"}), "{revision}");
        assert_eq!(
            side.connection.handle().revision(),
            Revision::parse(revision)
        );
        side.tell("notifications/initialized");
        assert_eq!(side.seen(), ["initialize", "notifications/initialized"]);
    }
}

/// Notifications that the host does not keep go on to the registry's side, which is ready then.
#[test]
fn a_host_that_only_listens_leaves_the_rest_as_it_is() {
    let mut side = Side::new(true, false);
    side.ask("initialize", hello("2025-11-25"));
    side.tell("notifications/initialized");
    let expected = ["initialize", "notifications/initialized", "ready"];
    assert_eq!(side.seen(), expected);
    let said = side.ask("tools/list", json!({}));
    assert_eq!(said["result"]["tools"][0]["name"], "echo");
    assert_eq!(side.ask("ping", json!({}))["result"], json!({"own": true}));
    assert_eq!(side.seen(), ["tools/list", "ping"]);
}

/// R-PNG-01: pings are the protocol layer's unless the host asks for them.
#[test]
fn a_refusal_of_the_hosts_reaches_the_client_and_pings_do_not_reach_the_host() {
    let mut side = Side::new(false, true);
    let said = side.ask("initialize", hello("2025-11-25"));
    assert_eq!(said["error"]["message"], "not you");
    assert_eq!(side.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(side.seen(), ["initialize"]);
}

/// In 2026-07-28 discovery is such a request, and any other stands alone.
#[test]
fn discovery_is_the_hosts_where_it_asks_for_it() {
    let mut side = Side::new(true, true);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for method in ["server/discover", "prompts/list"] {
        let said = side.ask(method, json!({"_meta": meta}));
        assert_eq!(said["result"], json!({"by": "the host"}), "{method}");
    }
    let said = side.ask("tools/list", json!({"_meta": meta}));
    assert_eq!(said["result"]["tools"][0]["name"], "echo");
    assert_eq!(
        side.seen(),
        ["server/discover", "prompts/list", "tools/list"]
    );
}

/// A cancel ends its request whatever the host makes of it, and the host hears of it.
#[test]
fn a_cancel_is_overheard() {
    let mut side = Side::new(true, true);
    side.ask("initialize", hello("2025-11-25"));
    let params = json!({"requestId": 99});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert!(side.say(cancel).is_empty());
    assert_eq!(side.seen(), ["initialize", "notifications/cancelled"]);
}
