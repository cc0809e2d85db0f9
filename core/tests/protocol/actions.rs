//! The action dialect on a stream of bytes: the examples of its document, what is bad, and both
//! languages on one connection.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::action;
use mcpbolt::buffer::PADDING;
use mcpbolt::connection::Framing;
use mcpbolt::io::{Workers, WorkersConfig};
use mcpbolt::limits::{Limits, Rate};
use mcpbolt::mcp::Revision;
use mcpbolt::message::{Envelope, Field, Frame, Kind, MessageRef};
use mcpbolt::server::{Arguments, Context, HandlerError, Json, Server, Tool};
use serde_json::{Value, json};

use crate::actions_server::{builder, examples, server, shows};
use crate::wire::Wire;

impl Wire {
    /// Says a line and waits for one answer.
    pub fn act(&mut self, line: &str) -> Value {
        let mut heard = self.say(line);
        let begun = std::time::Instant::now();
        while heard.is_empty() {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "no answer to {line}"
            );
            std::thread::sleep(Duration::from_millis(1));
            heard = self.hear();
        }
        assert_eq!(heard.len(), 1, "{heard:?}");
        heard.remove(0)
    }
}

/// An answer as a client reads it, put together again from what was found in it.
fn read(answer: &Value) -> Value {
    let mut block = answer.to_string().into_bytes();
    let len = block.len();
    block.resize(len + PADDING, 0);
    let frame = Frame::new(&block, len).unwrap();
    let mut envelope = Envelope::new();
    action::decode(frame, 64, &mut envelope).unwrap();
    let found = MessageRef::new(frame, &envelope);
    let raw = |field| {
        found
            .raw(field)
            .map(|raw| serde_json::from_str(raw).unwrap())
    };
    let member = |raw: &str, name| {
        let raw = mcpbolt::json::reader::find(raw, name);
        raw.map(|raw| serde_json::from_str::<Value>(raw).unwrap())
    };
    let text = std::str::from_utf8(found.bytes()).unwrap();
    let mut read = json!({});
    for (name, value) in [
        ("status", member(text, "status")),
        ("data", raw(Field::Result)),
        ("metadata", raw(Field::Meta)),
    ] {
        if let Some(value) = value {
            read[name] = value;
        }
    }
    if found.kind() == Kind::Error {
        read["error"] = raw(Field::Error).unwrap();
        for (name, value) in [
            ("type", member(found.error().unwrap(), "type")),
            ("message", raw(Field::ErrorMessage)),
            ("details", raw(Field::ErrorData)),
            ("code", raw(Field::ErrorCode)),
        ] {
            if let Some(value) = value {
                read["error"][name] = value;
            }
        }
    }
    read
}

/// R-ACT-01, R-ACT-04, R-ACT-05, R-ACT-06, R-ACT-07, R-ACT-12, R-ACT-16, R-ACT-39, R-ACT-41: each
/// example of the document that is asked on a line is answered as the document shows.
#[test]
fn the_examples_of_the_document() {
    let mut asked = 0;
    for example in examples() {
        let name = &example["name"];
        let answer = match example["carrier"].as_str().unwrap() {
            "line" => {
                asked += 1;
                let mut wire = Wire::new(server(example["server"].as_str().unwrap()));
                let raw = example["raw"].as_str().map(str::to_owned);
                wire.act(&raw.unwrap_or_else(|| example["request"].to_string()))
            }
            // Asked over HTTP.
            "stream" => continue,
            "read" => read(&example["answer"]),
            other => panic!("{other}"),
        };
        assert!(shows(&answer, &example["answer"]), "{name}: {answer}");
    }
    assert!(asked >= 13, "{asked}");
}

/// R-ACT-41: one connection, both languages, in turn and at once; neither leaks into the other.
#[test]
fn both_languages_are_spoken_on_one_connection() {
    let mut wire = Wire::new(server("both"));
    for round in 0..3 {
        let params = json!({"name": "calculator.add", "arguments": {"a": 1, "b": round}});
        let answer = wire.ask(Revision::V2026_07_28, "tools/call", params);
        assert_eq!(
            answer["result"]["structuredContent"]["result"],
            1.0 + f64::from(round)
        );
        let action = json!({"action": "calculator.add", "params": {"a": 2, "b": round}, "metadata": {"request_id": 1}});
        let answer = wire.act(&action.to_string());
        assert_eq!(answer["data"]["result"], 2.0 + f64::from(round), "{answer}");
        assert_eq!(answer["metadata"]["request_id"], 1);
        assert!(answer.get("jsonrpc").is_none());
    }
    // In any order of the members.
    let answer = wire.act(r#"{"params":{"a":1,"b":1},"action":"calculator.add"}"#);
    assert_eq!(answer["data"]["result"], 2.0, "{answer}");
    // Broken lines are told in the language spoken last.
    assert_eq!(wire.act("{")["error"]["type"], "INVALID_JSON");
    let list = wire.ask(Revision::V2026_07_28, "tools/list", json!({}));
    assert!(list["result"]["tools"].is_array());
    assert_eq!(wire.act("{")["error"]["code"], -32700);
}

/// R-ACT-04, R-WSK-02: ids of any type come back as they were spelled, also when several in flight
/// have the same, or none.
#[test]
fn ids_are_echoed_however_they_look() {
    let mut wire = Wire::new(server("ids"));
    let mut heard = Vec::new();
    let ids = [r#""a""#, "7", "1.50", "null", r#"{"k":[1]}"#, r#""a""#];
    for id in ids {
        let line = format!(
            r#"{{"action":"calculator.add","params":{{"a":1,"b":1}},"metadata":{{"request_id":{id}}}}}"#
        );
        heard.extend(wire.say(&line));
    }
    heard.extend(wire.say(r#"{"action":"calculator.add","params":{"a":1,"b":1}}"#));
    heard.extend(wire.hear_until(|wire| wire.connection.in_flight() == 0));
    let mut got: Vec<_> = heard
        .iter()
        .map(|answer| answer["metadata"].get("request_id").map(Value::to_string))
        .collect();
    got.sort();
    let mut expected: Vec<_> = [r#""a""#, "7", "1.5", "null", r#"{"k":[1]}"#, r#""a""#]
        .map(|id| Some(id.to_owned()))
        .to_vec();
    expected.push(None);
    expected.sort();
    assert_eq!(got, expected);
    // Byte for byte.
    let bytes =
        wire.raw(r#"{"action":"mcp.health_check","params":{},"metadata":{"request_id":1.50}}"#);
    assert!(bytes.contains(r#""request_id":1.50}"#), "{bytes}");
}

/// R-ACT-06, R-ACT-07, R-ACT-09, R-ACT-17, R-ACT-30, R-ACT-38: what is bad gets its error, with the
/// id where there is one, and the connection goes on.
#[test]
fn bad_input_gets_its_error_and_nothing_is_lost() {
    let long = "x".repeat(5000);
    let many = vec![json!({"action": "mcp.health_check", "params": {}}); 1025];
    let many = json!({"action": "batch.execute", "params": {"operations": many}}).to_string();
    let cases: &[(&str, &str, Value)] = &[
        (r#"{"params":{}}"#, "MISSING_ACTION", json!({})),
        (
            r#"{"action":7,"params":{},"metadata":{"request_id":"r"}}"#,
            "MISSING_ACTION",
            json!({}),
        ),
        (
            r#"{"action":null,"params":{}}"#,
            "MISSING_ACTION",
            json!({}),
        ),
        (
            r#"{"action":"calculator.add"}"#,
            "VALIDATION_ERROR",
            json!({"parameter": "params"}),
        ),
        (
            r#"{"action":"calculator.add","params":[]}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"calculator.add","params":"{}"}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"calculator.add","params":{},"params":{}}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"calculator.add","action":"x","params":{}}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"a","params":{},"metadata":[]}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"a","params":{},"tool":1}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"a","params":{},"context":1}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"calculator.add","params":{"a":1}}"#,
            "PARAMETER_MISSING",
            json!({"parameter": "b"}),
        ),
        (
            r#"{"action":"calculator.add","params":{"a":"1"}}"#,
            "VALIDATION_ERROR",
            json!({"parameter": "a", "expected_type": "number", "actual_type": "string"}),
        ),
        (
            r#"{"action":"calculator.add","params":{"a":1,"b":null}}"#,
            "VALIDATION_ERROR",
            json!({"actual_type": "null"}),
        ),
        (
            r#"{"action":"calculator.nothing","params":{}}"#,
            "ACTION_NOT_FOUND",
            json!({"action": "calculator.nothing"}),
        ),
        (
            r#"{"action":"calculator.add","params":{},"tool":"nobody"}"#,
            "ACTION_NOT_FOUND",
            json!({"tool": "nobody"}),
        ),
        (
            r#"{"action":"calculator.add","params":{},"tool":"file_system"}"#,
            "ACTION_NOT_FOUND",
            json!({}),
        ),
        (
            r#"{"action":"mcp.get_schema","params":{"action_name":"no"}}"#,
            "ACTION_NOT_FOUND",
            json!({}),
        ),
        (
            r#"{"action":"mcp.get_schema","params":{"action_name":1}}"#,
            "VALIDATION_ERROR",
            json!({"parameter": "action_name"}),
        ),
        (
            r#"{"action":"mcp.nothing","params":{}}"#,
            "ACTION_NOT_FOUND",
            json!({}),
        ),
        (
            r#"{"action":"batch.execute","params":{}}"#,
            "VALIDATION_ERROR",
            json!({"parameter": "operations"}),
        ),
        (
            r#"{"action":"batch.execute","params":{"operations":{}}}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"batch.execute","params":{"operations":[],"continue_on_error":1}}"#,
            "VALIDATION_ERROR",
            json!({"parameter": "continue_on_error"}),
        ),
        (
            &many,
            "VALIDATION_ERROR",
            json!({"parameter": "operations"}),
        ),
        (
            r#"{"action":"mcp.get_version","params":{},"metadata":{"protocol_version":"2.0"}}"#,
            "VALIDATION_ERROR",
            json!({"supported": ["1.0.0"]}),
        ),
        (
            r#"{"action":"mcp.get_version","params":{},"metadata":{"protocol_version":"one"}}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (
            r#"{"action":"mcp.get_version","params":{},"metadata":{"protocol_version":1}}"#,
            "VALIDATION_ERROR",
            json!({}),
        ),
        (r#"{"action":"a","params":{}"#, "INVALID_JSON", json!({})),
        (
            r#"{"action":"a","params":{"x":01}}"#,
            "INVALID_JSON",
            json!({}),
        ),
    ];
    let mut wire = Wire::new(server("bad"));
    for (line, kind, details) in cases {
        let answer = wire.act(line);
        let shown: String = line.chars().take(100).collect();
        assert_eq!(answer["status"], "error", "{shown}: {answer}");
        assert_eq!(answer["error"]["type"], *kind, "{shown}: {answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .is_some_and(|it| !it.is_empty()),
            "{answer}"
        );
        assert!(
            details == &json!({}) || shows(&answer["error"]["details"], details),
            "{shown}: {answer}"
        );
        let well = wire
            .act(r#"{"action":"mcp.health_check","params":{},"metadata":{"request_id":"after"}}"#);
        assert_eq!(well["data"]["healthy"], true, "{shown}: {well}");
        assert_eq!(well["metadata"]["request_id"], "after");
    }
    let id = format!(r#"{{"action":"a","params":{{}},"metadata":{{"request_id":"{long}"}}}}"#);
    let answer = wire.act(&id);
    assert_eq!(answer["error"]["type"], "VALIDATION_ERROR");
    assert!(answer["metadata"].get("request_id").is_none(), "{answer}");
}

/// R-ACT-29, R-ACT-40: a request over the limit is refused with its id, and discarded.
#[test]
fn a_request_over_the_limit_is_refused() {
    let limits = Limits {
        max_message_bytes: 1000,
        ..Limits::STDIO
    };
    let mut wire = Wire::new(builder("small").limits(limits).build().unwrap());
    let long = "x".repeat(2000);
    let line =
        format!(r#"{{"action":"a","metadata":{{"request_id":"big"}},"params":{{"x":"{long}"}}}}"#);
    let answer = wire.act(&line);
    assert_eq!(answer["error"]["type"], "VALIDATION_ERROR", "{answer}");
    assert_eq!(answer["error"]["details"]["max_bytes"], 1000);
    assert_eq!(answer["metadata"]["request_id"], "big");
    assert_eq!(
        wire.act(r#"{"action":"mcp.health_check","params":{}}"#)["status"],
        "success"
    );
}

/// R-ACT-33, R-ACT-34: a rate that is exceeded, told with when to try again.
#[test]
fn an_exceeded_rate_says_when_to_try_again() {
    let rate = Rate {
        burst: 2,
        per_second: 1,
    };
    let limits = Limits {
        request_rate: Some(rate),
        ..Limits::STDIO
    };
    let mut wire = Wire::new(builder("slow").limits(limits).build().unwrap());
    let ask = r#"{"action":"mcp.health_check","params":{}}"#;
    let types: Vec<_> = (0..3)
        .map(|_| wire.act(ask)["error"]["type"].clone())
        .collect();
    assert_eq!(
        types,
        [Value::Null, Value::Null, "RATE_LIMIT_EXCEEDED".into()]
    );
    let refused = wire.act(ask);
    assert_eq!(
        refused["error"]["details"]["retry_after_seconds"], 1,
        "{refused}"
    );
    assert_eq!(refused["error"]["code"], 429);
    wire.pass(Duration::from_secs(2));
    assert_eq!(wire.act(ask)["status"], "success");
}

/// R-ACT-10, R-ACT-12, R-ACT-13, R-ACT-14: what every server says of itself.
#[test]
fn the_standard_actions() {
    let mut wire = Wire::new(server("std"));
    let all = wire.act(r#"{"action":"mcp.get_schema","params":{}}"#);
    let actions = all["data"]["actions"].as_object().unwrap();
    for name in [
        "calculator.add",
        "llm.generate",
        "mcp.get_schema",
        "mcp.get_version",
        "mcp.health_check",
        "batch.execute",
    ] {
        let entry = &actions[name];
        for member in ["description", "params_schema", "data_schema", "examples"] {
            assert!(entry.get(member).is_some(), "{name}: {entry}");
        }
    }
    assert_eq!(
        actions["summarize_text"]["errors"],
        json!(["QUOTA_EXCEEDED"])
    );
    assert_eq!(
        actions["summarize_text"]["deprecated"],
        "use document.summarize"
    );
    let one = wire.act(r#"{"action":"mcp.get_schema","params":{"action_name":"batch.execute"}}"#);
    assert_eq!(
        one["data"]["actions"].as_object().unwrap().len(),
        1,
        "{one}"
    );
    let version = wire.act(r#"{"action":"mcp.get_version","params":{}}"#);
    assert_eq!(
        version["data"],
        json!({"protocol_version": "1.0.0", "server_id": "std", "server_version": "1.2.3", "supported_versions": ["1.0.0"]})
    );
    let sick = builder("sick").health(|| Err(HandlerError::new("the database is gone")));
    let answer =
        Wire::new(sick.build().unwrap()).act(r#"{"action":"mcp.health_check","params":{}}"#);
    assert_eq!(answer["error"]["type"], "DEPENDENCY_ERROR", "{answer}");
    assert_eq!(answer["error"]["message"], "the database is gone");
}

/// R-ACT-12, R-ACT-14: a tool of the name of a standard action is that action.
#[test]
fn a_tool_comes_before_a_standard_action() {
    let health = Tool::new("mcp.health_check").description("Asks the disk.");
    let server = builder("own").tool(health, |_: Arguments, _| async {
        Err::<(), _>(HandlerError::typed("DEPENDENCY_ERROR", "the disk is full"))
    });
    let mut wire = Wire::new(server.build().unwrap());
    let answer = wire.act(r#"{"action":"mcp.health_check","params":{}}"#);
    assert_eq!(answer["error"]["message"], "the disk is full");
    // The last of a name is what is read, so that it must be the only one.
    let all = wire.act(r#"{"action":"mcp.get_schema","params":{}}"#);
    let own = &all["data"]["actions"]["mcp.health_check"];
    assert_eq!(own["description"], "Asks the disk.");
}

/// R-ACT-16, R-ACT-17: in order, one at a time, up to the first that fails unless it is said
/// otherwise.
#[test]
fn a_batch_stops_where_it_is_to_stop() {
    let mut wire = Wire::new(server("batch"));
    let good = json!({"action": "calculator.add", "params": {"a": 1, "b": 1}});
    let bad = json!({"action": "file_system.write", "params": {"path": "/x"}});
    let nested = json!({"action": "batch.execute", "params": {"operations": []}});
    let run = |wire: &mut Wire, operations: &[&Value], go_on: Option<bool>| {
        let mut params = json!({ "operations": operations });
        if let Some(go_on) = go_on {
            params["continue_on_error"] = go_on.into();
        }
        let line =
            json!({"action": "batch.execute", "params": params, "metadata": {"request_id": "b"}});
        let answer = wire.act(&line.to_string());
        assert_eq!(answer["status"], "success", "{answer}");
        assert_eq!(answer["metadata"]["request_id"], "b");
        let data = &answer["data"];
        assert_eq!(data["error_count"], data["failure_count"]);
        let statuses: Vec<_> = data["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                assert!(it.get("metadata").is_none(), "{it}");
                it["status"].as_str().unwrap().chars().next().unwrap()
            })
            .collect();
        let count = |c| statuses.iter().filter(|it| **it == c).count() as u64;
        assert_eq!(data["success_count"], count('s'));
        assert_eq!(data["error_count"], count('e'));
        statuses.into_iter().collect::<String>()
    };
    assert_eq!(run(&mut wire, &[], None), "");
    assert_eq!(run(&mut wire, &[&good, &good, &good], None), "sss");
    assert_eq!(run(&mut wire, &[&good, &bad, &good], None), "se");
    assert_eq!(run(&mut wire, &[&good, &bad, &good], Some(false)), "se");
    assert_eq!(run(&mut wire, &[&good, &bad, &good], Some(true)), "ses");
    assert_eq!(run(&mut wire, &[&nested, &good], Some(true)), "es");
    assert_eq!(
        run(
            &mut wire,
            &[&json!(7), &json!({"params": {}}), &good],
            Some(true)
        ),
        "ees"
    );
    let inline = json!({"action": "file_system.read", "params": {"path": "/data/file1.txt"}});
    let many: Vec<_> = (0..1024)
        .map(|n| if n % 2 == 0 { &inline } else { &good })
        .collect();
    assert_eq!(run(&mut wire, &many, None), "s".repeat(1024));
    assert_eq!(wire.connection.in_flight(), 0);
}

/// R-ACT-09: `tool` names the server or a namespace; `context` is for the handler.
#[test]
fn tools_and_contexts() {
    let echo = |_: Arguments, context: Context| async move {
        Json(json!({"context": context.action_context()}))
    };
    let server = Server::builder("desk", "1")
        .actions(true)
        .tool(Tool::new("echo.context"), echo);
    let mut wire = Wire::new(server.build().unwrap());
    for (action, tool) in [
        ("echo.context", "desk"),
        ("echo.context", "echo"),
        ("context", "echo"),
    ] {
        let line = json!({"action": action, "params": {}, "tool": tool, "context": "c-1"});
        let answer = wire.act(&line.to_string());
        assert_eq!(
            answer["data"]["context"], "c-1",
            "{action} of {tool}: {answer}"
        );
    }
}

/// R-ACT-30, R-ACT-31, R-ACT-32: a type that a handler raises comes out as it is, with the code that
/// goes with it; clients of MCP get the text, and the same as structured content.
#[test]
fn types_that_handlers_raise_are_not_translated() {
    let raise = |arguments: Arguments, _| async move {
        let kind: Value = serde_json::from_str(&arguments.0).unwrap();
        let kind = kind["type"].as_str().unwrap().to_owned();
        Err::<(), _>(HandlerError::typed(kind, "raised").with_data(&json!({"n": 1})))
    };
    let server = Server::builder("raise", "1")
        .actions(true)
        .tool(Tool::new("raise"), raise)
        .build()
        .unwrap();
    let mut wire = Wire::new(server);
    for (kind, code) in [
        ("VALIDATION_ERROR", json!(400)),
        ("ACTION_NOT_FOUND", json!(404)),
        ("PARAMETER_MISSING", json!(400)),
        ("AUTHENTICATION_FAILED", json!(401)),
        ("AUTHORIZATION_FAILED", json!(403)),
        ("RESOURCE_NOT_FOUND", json!(404)),
        ("RATE_LIMIT_EXCEEDED", json!(429)),
        ("QUOTA_EXCEEDED", json!(429)),
        ("INTERNAL_SERVER_ERROR", json!(500)),
        ("TIMEOUT_ERROR", json!(504)),
        ("DEPENDENCY_ERROR", json!(503)),
        ("INVALID_STATE", json!(409)),
        ("CONFLICT", json!(409)),
        ("PERMISSION_DENIED", json!(403)),
        ("MY_OWN", Value::Null),
    ] {
        let line = json!({"action": "raise", "params": {"type": kind}}).to_string();
        let answer = wire.act(&line);
        assert_eq!(answer["error"]["type"], kind);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(answer["error"]["details"], json!({"n": 1}));
    }
    let told = |_: Arguments, _| async {
        let error = HandlerError::typed("CONFLICT", "taken").with_code(418);
        Err::<(), _>(error.with_help_url("https://example.com/help"))
    };
    let more = Server::builder("more", "1")
        .actions(true)
        .tool(Tool::new("more"), told);
    let error = Wire::new(more.build().unwrap()).act(r#"{"action":"more","params":{}}"#);
    let own = json!({"type": "CONFLICT", "message": "taken", "code": 418, "help_url": "https://example.com/help"});
    assert_eq!(error["error"], own);
    let params = json!({"name": "raise", "arguments": {"type": "CONFLICT"}});
    let answer = wire.ask(Revision::V2026_07_28, "tools/call", params);
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "raised");
    assert_eq!(
        answer["result"]["structuredContent"]["error"]["type"],
        "CONFLICT"
    );
}

/// R-ACT-40: who may not is told so; each operation of a batch is asked for.
#[test]
fn a_guard_is_asked_for_each_action() {
    let server = builder("guarded").guard(|access| match access.name {
        "calculator.add" => Err(HandlerError::new("not for you")),
        _ => Ok(()),
    });
    let mut wire = Wire::new(server.build().unwrap());
    let add = json!({"action": "calculator.add", "params": {"a": 1, "b": 1}});
    let answer = wire.act(&add.to_string());
    assert_eq!(answer["error"]["type"], "AUTHORIZATION_FAILED", "{answer}");
    assert_eq!(answer["error"]["code"], 403);
    let batch = json!({"action": "batch.execute", "params": {"operations": [add]}});
    let answer = wire.act(&batch.to_string());
    assert_eq!(
        answer["data"]["results"][0]["error"]["type"],
        "AUTHORIZATION_FAILED"
    );
}

/// A server that is not to speak the dialect does not.
#[test]
fn it_can_be_switched_off() {
    let mut wire = Wire::new(builder("off").actions(false).build().unwrap());
    let answer = wire.act(r#"{"action":"mcp.health_check","params":{}}"#);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
}

/// R-ACT-19, R-STD-13: where the first byte says so, a length stands before each message, both ways.
#[test]
fn lengths_before_messages() {
    let line = br#"{"action":"mcp.health_check","params":{},"metadata":{"request_id":"r"}}"#;
    let expected = br#"{"status":"success","data":{"healthy":true},"metadata":{"server_id":"framed","request_id":"r"}}"#;
    let framed = |message: &[u8]| {
        let mut frame = (message.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(message);
        frame
    };
    let open = || {
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        Wire::framed(server("framed"), workers, Framing::Detect)
    };
    let (mut lengths, mut lines) = (open(), open());
    for _ in 0..3 {
        assert_eq!(lengths.bytes(&framed(line)), framed(expected));
        let answer = lines.bytes(&[&line[..], b"\n"].concat());
        assert_eq!(answer, [&expected[..], b"\n"].concat());
    }
}

/// R-ACT-20: who asks once and ends its input is answered, and nothing keeps the connection.
#[test]
fn one_request_and_the_end() {
    let mut wire = Wire::new(server("once"));
    let line = r#"{"action":"calculator.add","params":{"a":1,"b":2}}"#;
    wire.end_with(line);
    let heard = wire.hear_until(|wire| wire.connection.in_flight() == 0);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["data"]["result"], 3.0);
}
