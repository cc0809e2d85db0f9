//! The action dialect over HTTP: one answer, a stream of its parts, and what headers say.

use std::net::{SocketAddr, TcpStream};

use mcpbolt::io::http::HttpOptions;
use mcpbolt::limits::{Limits, Rate};
use serde_json::{Value, json};
use tungstenite::{ClientRequestBuilder, Message};

use super::Serving;
use super::wire::{Answer, PATIENCE, Wire, ask, request};
use crate::actions_server::{builder, examples, server, shows};

fn serving(name: &str) -> Serving {
    Serving::of(server(name), HttpOptions::default())
}

/// The answer to a request by hand.
fn say(to: SocketAddr, head: &str, body: &str) -> Answer {
    let mut wire = Wire::open(to);
    let len = match head.starts_with("GET") {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    wire.send(format!("{head}\r\nHost: localhost\r\n{len}\r\n{body}").as_bytes());
    wire.answer()
}

fn post(to: SocketAddr, headers: &str, body: &str) -> Answer {
    let head = format!("POST /mcp HTTP/1.1\r\nContent-Type: application/json{headers}");
    say(to, &head, body)
}

const WELL: &str = r#"{"action":"mcp.health_check","params":{},"metadata":{"request_id":"r"}}"#;
const ADD: &str = r#"{"action":"calculator.add","params":{"a":1,"b":2}}"#;

/// R-ACT-21, R-ACT-22, R-ACT-41: the status of each answer, whose body is in
/// words of the dialect; clients of MCP are served at the same endpoint.
#[test]
fn statuses_and_bodies() {
    let serving = serving("status");
    let long = format!(r#"{{"action":"a","params":{{"x":"{}"}}}}"#, "x".repeat(100));
    let cases: &[(&str, &str, u16, &str)] = &[
        ("", WELL, 200, ""),
        ("\r\nAccept: application/json", WELL, 200, ""),
        ("\r\nAccept: */*", ADD, 200, ""),
        ("\r\nMCP-Version: 1.0.0", ADD, 200, ""),
        (
            "",
            r#"{"params":{"a":1},"action":"calculator.add"}"#,
            200,
            "PARAMETER_MISSING",
        ),
        (
            "",
            r#"{"action":"calculator.add","params":{"a":"x","b":1}}"#,
            200,
            "VALIDATION_ERROR",
        ),
        (
            "",
            r#"{"action":"file_system.read","params":{"path":"/no"}}"#,
            200,
            "RESOURCE_NOT_FOUND",
        ),
        (
            "",
            r#"{"action":"nothing","params":{}}"#,
            404,
            "ACTION_NOT_FOUND",
        ),
        ("", r#"{"action":"a","params":"#, 400, "INVALID_JSON"),
        ("", r#"{"action":"a","params":[]}"#, 400, "VALIDATION_ERROR"),
        ("", r#"{"action":7,"params":{}}"#, 400, "MISSING_ACTION"),
        ("\r\nMCP-Version: 1.0", "{}", 400, "MISSING_ACTION"),
        ("\r\nMCP-Version: 1.0", "{", 400, "INVALID_JSON"),
        ("\r\nMCP-Version: 2.0", ADD, 400, "VALIDATION_ERROR"),
        ("\r\nMCP-Version: nine", ADD, 400, "VALIDATION_ERROR"),
        ("", &long, 404, "ACTION_NOT_FOUND"),
    ];
    for (headers, body, status, kind) in cases {
        let answer = post(serving.at, headers, body);
        assert_eq!(answer.status, *status, "{headers} {body}: {answer:?}");
        assert_eq!(
            answer.header("content-type"),
            "application/json",
            "{answer:?}"
        );
        let said = answer.json();
        assert_eq!(
            said["error"]["type"].as_str().unwrap_or_default(),
            *kind,
            "{said}"
        );
        assert_eq!(
            said["status"],
            if kind.is_empty() { "success" } else { "error" }
        );
    }
    // A body that is neither is answered as JSON-RPC, unless a header says otherwise.
    assert_eq!(
        post(serving.at, "\r\nAccept: */*", "{").json()["error"]["code"],
        -32700
    );
    assert_eq!(
        post(
            serving.at,
            "\r\nAccept: application/json",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#
        )
        .status,
        406
    );
    let put = say(serving.at, "PUT /mcp HTTP/1.1\r\nMCP-Version: 1.0", "{}");
    assert_eq!((put.status, put.header("allow")), (405, "POST"));
    assert_eq!(put.json()["status"], "error");
    let lost = say(
        serving.at,
        "POST /other HTTP/1.1\r\nMCP-Version: 1.0\r\nContent-Type: application/json",
        ADD,
    );
    assert_eq!(
        (lost.status, &lost.json()["status"]),
        (404, &json!("error"))
    );
    let plain = say(
        serving.at,
        "POST /mcp HTTP/1.1\r\nMCP-Version: 1.0\r\nContent-Type: text/plain",
        ADD,
    );
    assert_eq!(
        (plain.status, &plain.json()["status"]),
        (415, &json!("error"))
    );
    let params = json!({"name": "calculator.add", "arguments": {"a": 1, "b": 2}});
    let answer = ask(serving.at, &request(1, "tools/call", params));
    assert_eq!(answer.json()["result"]["structuredContent"]["result"], 3.0);
    serving.end();
}

/// R-ACT-22, R-ACT-29: a body over the limit.
#[test]
fn a_body_over_the_limit() {
    let limits = Limits {
        max_message_bytes: 500,
        ..Limits::NETWORK
    };
    let options = HttpOptions {
        limits,
        ..HttpOptions::default()
    };
    let serving = Serving::of(server("small"), options);
    let body = format!(
        r#"{{"action":"a","params":{{"x":"{}"}}}}"#,
        "x".repeat(1000)
    );
    let answer = post(serving.at, "\r\nMCP-Version: 1.0", &body);
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (413, &json!("error"))
    );
    serving.end();
}

/// R-ACT-37, R-ACT-38: versions in headers, answered in the form they came in.
#[test]
fn versions_are_negotiated() {
    let serving = serving("version");
    for (headers, version) in [
        ("", "1.0.0"),
        ("\r\nMCP-Version: 1.0.0", "1.0.0"),
        ("\r\nMCP-Version: 1.0", "1.0"),
        ("\r\nMCP-Version: 2.0\r\nMCP-Min-Version: 1.0", "1.0"),
        ("\r\nMCP-Version: 2.0.0\r\nMCP-Min-Version: 1.0.0", "1.0.0"),
    ] {
        let answer = post(serving.at, headers, WELL);
        assert_eq!(
            (answer.status, answer.header("mcp-version")),
            (200, version),
            "{headers}"
        );
    }
    for headers in [
        "\r\nMCP-Version: 2.0",
        "\r\nMCP-Version: 2.0\r\nMCP-Min-Version: 1.1",
        "\r\nMCP-Version: 0.9",
    ] {
        let answer = post(serving.at, headers, WELL);
        assert_eq!(answer.status, 400, "{headers}");
        assert_eq!(
            answer.json()["error"]["details"]["supported"],
            json!(["1.0.0"])
        );
    }
    serving.end();
}

/// R-ACT-23: who has the schema need not get it again.
#[test]
fn the_schema_has_a_validator() {
    let serving = serving("tag");
    let ask = r#"{"action":"mcp.get_schema","params":{}}"#;
    let first = post(serving.at, "", ask);
    let tag = first.header("etag");
    assert!(tag.len() > 10 && tag.starts_with('"'), "{first:?}");
    assert_eq!(first.header("cache-control"), "private, no-cache");
    for known in [tag.to_owned(), format!("\"x\", {tag}"), format!("W/{tag}")] {
        let again = post(serving.at, &format!("\r\nIf-None-Match: {known}"), ask);
        assert_eq!((again.status, &*again.body), (304, ""), "{known}");
    }
    let other = post(serving.at, "\r\nIf-None-Match: \"x\"", ask);
    assert_eq!(other.status, 200);
    assert_eq!(post(serving.at, "", ADD).header("etag"), "");
    serving.end();
}

/// R-ACT-24, R-ACT-25, R-ACT-27: the document's streams, by query and by a posted request; the
/// last event says that it is the last.
#[test]
fn streams_of_parts() {
    let serving = serving("text");
    let mut seen = 0;
    for example in examples() {
        let Some(query) = example["query"].as_str() else {
            continue;
        };
        seen += 1;
        let head = format!("GET /mcp/stream?{query} HTTP/1.1\r\nAccept: text/event-stream");
        let answer = say(serving.at, &head, "");
        let frames: Vec<_> = answer.body.split_terminator("\n\n").collect();
        assert!(
            frames
                .iter()
                .all(|it| it.starts_with("event: message\ndata: ")),
            "{answer:?}"
        );
        let events = answer.events();
        assert!(
            shows(&json!(events), &example["events"]),
            "{}: {events:?}",
            example["name"]
        );
        let prompt = if query.ends_with("fox") {
            "fox"
        } else {
            continue;
        };
        let body = json!({"action": "llm.generate", "params": {"prompt": prompt}, "metadata": {"request_id": 9}});
        let posted = post(
            serving.at,
            "\r\nAccept: text/event-stream",
            &body.to_string(),
        );
        let events = posted.events();
        assert!(shows(&json!(events), &example["events"]), "{events:?}");
        assert!(
            events
                .iter()
                .all(|event| event["metadata"]["request_id"] == 9),
            "{events:?}"
        );
    }
    assert_eq!(seen, 3);
    // One that gives no parts, one that there is not, one that is wrong.
    let get = |query: &str| {
        say(
            serving.at,
            &format!("GET /mcp/stream?{query} HTTP/1.1\r\nAccept: text/event-stream"),
            "",
        )
    };
    let sum = get("action=calculator.add&a=1&b=2&request_id=q");
    assert!(
        shows(
            &json!(sum.events()),
            &json!([{"type": "complete", "status": "success", "data": {"result": 3}, "metadata": {"request_id": "q"}}])
        ),
        "{sum:?}"
    );
    let none = get("action=nothing");
    assert_eq!(
        (
            none.status,
            &none.events()[0]["type"],
            &none.events()[0]["error"]["type"]
        ),
        (404, &json!("error"), &json!("ACTION_NOT_FOUND"))
    );
    let wrong = get("action=llm.generate&count=many");
    assert_eq!(wrong.events()[0]["error"]["details"]["parameter"], "count");
    assert_eq!(get("prompt=x").status, 400);
    serving.end();
}

/// R-ACT-33: an exceeded rate is also told in headers.
#[test]
fn an_exceeded_rate_is_told_in_headers() {
    let rate = Rate {
        burst: 1,
        per_second: 1,
    };
    let limits = Limits {
        request_rate: Some(rate),
        ..Limits::NETWORK
    };
    let options = HttpOptions {
        limits,
        ..HttpOptions::default()
    };
    // A batch asks once, its operations are not counted; a guard refuses as any other rate does.
    let guard = |_: &mcpbolt::server::Access<'_>| {
        let kind = mcpbolt::mcp::ErrorKind::Overloaded;
        let details =
            json!({"retry_after_seconds": 30, "limit": 100, "remaining": 0, "reset": 1700000000});
        Err(
            mcpbolt::handler::HandlerError::protocol(kind, "Request rate limit exceeded")
                .with_data(&details),
        )
    };
    let serving = Serving::of(builder("rate").guard(guard).build().unwrap(), options);
    let answer = post(serving.at, "", ADD);
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.json()["error"]["type"], "RATE_LIMIT_EXCEEDED");
    for (name, value) in [
        ("retry-after", "30"),
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1700000000"),
    ] {
        assert_eq!(answer.header(name), value);
    }
    serving.end();
}

/// R-ACT-23: pages of welcome origins may read answers and streams, and what their heads say of
/// rates and versions; long answers go compressed to who accepts that.
#[test]
fn pages_of_other_origins_may_read_actions() {
    let options = HttpOptions {
        cors: true,
        origins: vec!["https://app.example".into()],
        #[cfg(feature = "compression")]
        compression: true,
        ..HttpOptions::default()
    };
    let serving = Serving::of(server("pages"), options);
    let page = "\r\nOrigin: https://app.example";
    let stream = format!("GET /mcp/stream?action=mcp.get_version HTTP/1.1{page}");
    let asked = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: mcp-version, content-type";
    let preflight = format!("OPTIONS /mcp HTTP/1.1{page}\r\n{asked}");
    let answers = [
        (post(serving.at, page, WELL), 200),
        (say(serving.at, &stream, ""), 200),
        (say(serving.at, &preflight, ""), 204),
    ];
    for (answer, status) in &answers {
        assert_eq!(answer.status, *status, "{answer:?}");
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "https://app.example"
        );
        for name in [
            "MCP-Version",
            "ETag",
            "X-RateLimit-Remaining",
            "Retry-After",
        ] {
            let exposed = answer.header("access-control-expose-headers");
            assert!(exposed.contains(name), "{exposed}");
        }
    }
    let allowed = answers[2].0.header("access-control-allow-headers");
    assert_eq!(allowed, "mcp-version, content-type");
    let other = post(serving.at, "\r\nOrigin: https://evil.example", WELL);
    assert_eq!(other.status, 403);
    #[cfg(feature = "compression")]
    {
        let all = r#"{"action":"mcp.get_schema","params":{}}"#;
        let mut wire = Wire::open(serving.at);
        let len = all.len();
        wire.send(
            format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: {len}\r\n\r\n{all}").as_bytes(),
        );
        let head = wire.begin();
        assert_eq!(
            (head.status, head.header("content-encoding")),
            (200, "gzip")
        );
    }
    serving.end();
}

/// R-ACT-28, R-WSK-01, R-WSK-02, R-WSK-06: many actions in flight on one WebSocket, in texts and
/// in bytes, told apart by their ids.
#[test]
fn many_actions_in_flight_on_a_websocket() {
    let serving = serving("socket");
    let stream = TcpStream::connect(serving.at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let uri = format!("ws://127.0.0.1:{}/mcp", serving.at.port())
        .parse()
        .unwrap();
    let asked = ClientRequestBuilder::new(uri).with_sub_protocol("mcp-action");
    let (mut socket, response) = tungstenite::client(asked, stream).unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp-action");
    for n in 0..100 {
        let action = json!({"action": "calculator.add", "params": {"a": n, "b": 1}, "metadata": {"request_id": n}});
        let message = match n % 2 {
            0 => Message::text(action.to_string()),
            _ => Message::binary(action.to_string()),
        };
        socket.send(message).unwrap();
    }
    socket.send(Message::text("{")).unwrap();
    let mut sums = [0.0; 100];
    let mut broken = 0;
    while sums.contains(&0.0) || broken == 0 {
        let Message::Text(text) = socket.read().unwrap() else {
            continue;
        };
        let answer: Value = serde_json::from_str(&text).unwrap();
        match answer["metadata"]["request_id"].as_u64() {
            Some(id) => sums[id as usize] = answer["data"]["result"].as_f64().unwrap(),
            None => {
                assert_eq!(answer["error"]["type"], "INVALID_JSON");
                broken += 1;
            }
        }
    }
    assert!((0..100).all(|n| sums[n] == n as f64 + 1.0));
    drop(socket);
    serving.end();
}

/// R-ACT-24, R-ACT-26, R-ACT-35: the engine's own client, over HTTP.
#[test]
fn the_engines_own_client_over_http() {
    use mcpbolt::client::{ActionFailure, Client, RetryPolicy, block_on};
    use mcpbolt::connection::OpeningMode;
    use mcpbolt::io::http::HttpClientOptions;
    let serving = serving("served");
    let url = format!("http://127.0.0.1:{}/mcp", serving.at.port());
    let open = |url: &str| {
        let builder = Client::builder("test", "1").opening(OpeningMode::Actions);
        block_on(builder.http(url, HttpClientOptions::default())).unwrap()
    };
    let client = open(&url);
    for n in 0..50 {
        let sum = client
            .action("calculator.add", &json!({"a": n, "b": 1}))
            .wait()
            .unwrap();
        assert_eq!(sum.data()["result"], f64::from(n + 1));
    }
    let story = client
        .action("llm.generate", &json!({"prompt": "x"}))
        .streamed()
        .wait()
        .unwrap();
    assert_eq!(story.joined("token"), "Once upon a time");
    assert_eq!(story.data()["full_text"], "Once upon a time");
    let failed = client
        .action("llm.generate", &json!({"prompt": "fail"}))
        .streamed()
        .wait();
    assert!(
        matches!(&failed, Err(ActionFailure::Answered(error)) if error.spelling == "PROCESSING_ERROR"),
        "{failed:?}"
    );
    let missing = client.action("nothing", &json!({})).wait();
    assert!(
        matches!(&missing, Err(ActionFailure::Answered(error)) if error.spelling == "ACTION_NOT_FOUND"),
        "{missing:?}"
    );
    serving.end();
    let gone = open(&url)
        .action("mcp.health_check", &json!({}))
        .retry(RetryPolicy::NEVER)
        .wait();
    assert!(
        gone.as_ref().is_err_and(ActionFailure::is_transient),
        "{gone:?}"
    );
}
