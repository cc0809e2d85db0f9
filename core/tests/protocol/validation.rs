//! Arguments and results of tools, held against their schemas on both sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mcpbolt::client::{Client, ClientHost, block_on};
use mcpbolt::connection::{
    Answer, Batch, CallKey, Connection, Disposition, Host, IncomingRequest, Operation,
};
use mcpbolt::error::RequestError;
use mcpbolt::handler::{Executor, HandlerError};
use mcpbolt::io::join;
use mcpbolt::limits::CHECK_HERE_BYTES;
use mcpbolt::mcp::{ErrorKind, Method};
use mcpbolt::server::{Arguments, Registry, ServerHost, Tool, ToolResult};
use serde_json::json;

use crate::{in_each_revision, server};

const ECHO: &str =
    r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;

/// R-SCH-08, R-TOL-05.
#[test]
fn large_arguments_are_checked_where_the_handler_runs() {
    let tool = Tool::new("echo").input_schema(ECHO);
    let server = server(0).tool(tool, |_: Arguments, _| async { "done" });
    let server = server.build().unwrap();
    in_each_revision(&server, |revision, client| {
        for size in [1, CHECK_HERE_BYTES, 1 << 20] {
            let good = json!({"text": "x".repeat(size)});
            let result = client.call_tool("echo", &good).wait().unwrap();
            assert_eq!(result.text(), "done");
            let bad = json!({"test": "x".repeat(size)});
            match client.call_tool("echo", &bad).wait() {
                Ok(result) if revision.rules().bad_arguments_is_tool_error => {
                    assert!(result.is_error && result.text().contains("text"));
                }
                Err(RequestError::Peer(error)) => assert_eq!(error.code, -32602),
                other => panic!("{revision}: {other:?}"),
            }
        }
    });
}

/// Takes what it is given and gives nothing back.
struct Sink(Arc<AtomicUsize>);

impl Executor for Sink {
    fn checks_arguments(&mut self, operation: Operation, len: usize) -> bool {
        len > CHECK_HERE_BYTES && operation == Operation::CallTool(0)
    }

    fn run(&mut self, batch: Batch) {
        self.0.fetch_add(batch.len(), Ordering::Release);
    }
}

#[test]
fn only_small_arguments_are_checked_on_the_drivers_thread() {
    let mut registry = Registry::new();
    registry
        .add_tool(Tool::new("a").input_schema(ECHO))
        .unwrap();
    registry
        .add_tool(Tool::new("b").input_schema(ECHO))
        .unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let far = Connection::new(Arc::new(registry.config("test", "1")), Instant::now());
    let host = ServerHost::new(
        Arc::new(registry),
        far.handle(),
        Box::new(Sink(taken.clone())),
    );
    let near = Connection::new(Arc::new(Client::config("test", "1")), Instant::now());
    let handle = near.handle();
    join((far, host), (near, ClientHost::new())).unwrap();
    let client = block_on(Client::open(handle)).unwrap();
    let bad = |size: usize| json!({"test": "x".repeat(size)});
    // Refused before anybody takes them: small ones, and those of whom nobody checks them.
    for (tool, size) in [("a", 10), ("b", 10), ("b", 2 * CHECK_HERE_BYTES)] {
        assert!(client.call_tool(tool, &bad(size)).wait().unwrap().is_error);
    }
    assert_eq!(taken.load(Ordering::Acquire), 0);
    let call = client
        .call_tool("a", &bad(2 * CHECK_HERE_BYTES))
        .send()
        .unwrap();
    let begun = Instant::now();
    while taken.load(Ordering::Acquire) == 0 {
        assert!(begun.elapsed().as_secs() < 30, "nobody took it");
        std::thread::yield_now();
    }
    drop(call);
}

/// R-STR-01, R-STR-07.
#[test]
fn a_result_that_breaks_the_output_schema_is_not_sent() {
    let tool = |name: &str| Tool::new(name).output_schema(ECHO);
    let kinds = |arguments: &str| match arguments {
        r#"{"kind":"good"}"# => ToolResult::structured(&json!({"text": "x"})).unwrap(),
        r#"{"kind":"bad"}"# => ToolResult::structured(&json!({"text": 7})).unwrap(),
        r#"{"kind":"error"}"# => ToolResult::error("it failed"),
        _ => ToolResult::text("no structure"),
    };
    let server = server(0)
        .tool(tool("spawned"), move |arguments: Arguments, _| async move {
            kinds(&arguments.0)
        })
        .inline_tool(tool("inline"), move |arguments: Arguments| {
            kinds(&arguments.0)
        });
    let server = server.build().unwrap();
    in_each_revision(&server, |_, client| {
        for tool in ["spawned", "inline"] {
            let call = |kind: &str| client.call_tool(tool, &json!({ "kind": kind })).wait();
            assert_eq!(call("good").unwrap().text(), r#"{"text":"x"}"#, "R-STR-03");
            assert!(call("error").unwrap().is_error);
            for (kind, place) in [("bad", "/text"), ("none", "structured")] {
                match call(kind).unwrap_err() {
                    RequestError::Peer(error) => {
                        assert_eq!(error.code, -32603);
                        let says = |what: &str| error.message.contains(what);
                        assert!(
                            says("output schema") && says(place) && says(tool),
                            "{error:?}"
                        );
                    }
                    other => panic!("{other}"),
                }
            }
        }
    });
}

/// Wherever a tool runs, the data of its protocol error reach the client.
#[test]
fn a_protocol_error_of_a_tool_keeps_its_data() {
    let refused = || {
        let error = HandlerError::protocol(ErrorKind::InvalidParams, "no such film");
        Err::<&str, _>(error.with_data(&json!({"film": "M"})))
    };
    let server = server(0)
        .tool(Tool::new("spawned"), move |_: Arguments, _| async move {
            refused()
        })
        .inline_tool(Tool::new("inline"), move |_: Arguments| refused());
    in_each_revision(&server.build().unwrap(), |_, client| {
        for tool in ["spawned", "inline"] {
            match client.call_tool(tool, &json!({})).wait().unwrap_err() {
                RequestError::Peer(error) => {
                    assert_eq!(error.data.as_deref(), Some(r#"{"film":"M"}"#), "{tool}");
                }
                other => panic!("{other}"),
            }
        }
    });
}

/// A server that does not keep what its schemas promise.
struct Liar;

impl Host for Liar {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        match (request.method, request.message.name().as_deref()) {
            (Some(Method::ListTools), _) => answer.result(|result| {
                let schema = |json: &str| {
                    format!(r#""inputSchema":{{"type":"object"}},"outputSchema":{json}"#)
                };
                let outside = r#"{"type":"object","$ref":"https://example.com/x.json"}"#;
                let names = ["good", "bad", "none", "error", "unusable"];
                let tools = names.map(|name| {
                    let schema = schema(if name == "unusable" { outside } else { ECHO });
                    format!(r#"{{"name":"{name}",{schema}}}"#)
                });
                result.raw("tools", &format!("[{}]", tools.join(",")));
            }),
            (_, Some(name)) => answer.result(|result| {
                result.raw("content", "[]");
                match name {
                    "good" => result.raw("structuredContent", r#"{"text":"x"}"#),
                    "bad" => result.raw("structuredContent", r#"{"text":7}"#),
                    "error" => result.raw("isError", "true"),
                    _ => {}
                }
            }),
            _ => answer.error(ErrorKind::MethodNotFound, "no", None),
        }
    }

    fn dispatch(&mut self, _: Batch) {}

    fn cancelled(&mut self, _: CallKey, _: Option<&str>) {}
}

/// R-STR-02, R-SCH-07, R-SCH-11.
#[test]
fn a_client_takes_no_result_that_breaks_the_output_schema() {
    let mut config = Registry::new().config("liar", "1");
    config.capabilities = std::array::from_fn(|_| r#"{"tools":{}}"#.into());
    let far = Connection::new(Arc::new(config), Instant::now());
    let near = Connection::new(Arc::new(Client::config("test", "1")), Instant::now());
    let handle = near.handle();
    join((far, Liar), (near, ClientHost::new())).unwrap();
    let client = block_on(Client::open(handle)).unwrap();
    let call = |name: &str| client.call_tool(name, &json!({})).wait();
    assert!(call("bad").is_ok(), "its schema is not known yet");
    assert_eq!(block_on(client.list_tools()).unwrap().len(), 5);
    assert!(call("good").is_ok());
    assert!(call("error").unwrap().is_error);
    for name in ["bad", "none", "unusable"] {
        let error = call(name).unwrap_err();
        assert!(
            matches!(error, RequestError::BadResult(_)),
            "{name}: {error}"
        );
    }
}
