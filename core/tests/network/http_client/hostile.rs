//! Servers that mean harm: whatever they send without end, a client takes a bounded part of, and says
//! why it stopped.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mcpbolt::client::block_on;
use mcpbolt::error::{CarrierFault, RequestError};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use super::PATIENCE;
use super::scripted::{Scripted, Wire};
use super::serving::builder;

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

/// The longest message that is taken in these tests, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Most that a client that has stopped reading can have been sent: its buffers, and those of two sockets.
const MOST_SENT: usize = 32 << 20;

fn limits() -> Limits {
    Limits {
        max_message_bytes: MAX_BYTES,
        ..Limits::NETWORK
    }
}

/// Writes `head` once and `more` until the client has gone; how much that was.
fn flood(wire: &mut Wire, head: &str, more: &str, pause: Duration) -> usize {
    let mut sent = head.len();
    let mut goes_on = wire.writes(head);
    while goes_on && sent < 4 * MOST_SENT {
        goes_on = wire.writes(more);
        sent += more.len();
        std::thread::sleep(pause);
    }
    wire.close();
    sent
}

/// The outcome of a call that is answered with `head` and then `more`, again and again, and how many bytes the
/// server could write.
fn call(head: &'static str, more: String, pause: Duration) -> (RequestError, usize) {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let server = Scripted::stateless(move |_, wire| {
        let sent = flood(wire, head, &more, pause);
        let _ = tell.lock().unwrap().send(sent);
    });
    let client = server.open(builder(Revision::V2026_07_28).limits(limits()));
    let call = client.call_tool("any", &json!({}));
    let error = call.timeout(Duration::from_millis(1500)).wait();
    let error = error.unwrap_err();
    assert_eq!(client.handle().pending_count(), 0);
    (error, told.recv_timeout(PATIENCE).unwrap())
}

/// R-HTP-20: what has no end is given up, at a bound or when the call's time is over.
#[test]
fn answers_without_end_are_given_up() {
    let events = |more: &str| format!("{EVENTS}\r\n{more}").leak() as &'static str;
    let filler = "x".repeat(16 << 10);
    let other = json!({"jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": "info", "data": filler}});
    let answered = json!({"jsonrpc": "2.0", "id": 1_000_000, "result": {"content": [filler]}});
    let at_once = Duration::ZERO;
    let slowly = Duration::from_millis(5);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let table: Vec<(&str, &'static str, String, Duration, Option<CarrierFault>)> = vec![
        (
            "headers",
            JSON,
            format!("X-Filler: {filler}\r\n"),
            at_once,
            Some(CarrierFault::Broken),
        ),
        (
            "short headers",
            JSON,
            "X-N: 1\r\n".repeat(100),
            at_once,
            Some(CarrierFault::Broken),
        ),
        (
            "one header",
            "HTTP/1.1 200 OK\r\nX-Filler: ",
            filler.clone(),
            at_once,
            Some(CarrierFault::Broken),
        ),
        (
            "a status line",
            "HTTP/1.1 200 ",
            filler.clone(),
            at_once,
            Some(CarrierFault::Broken),
        ),
        (
            "a body in chunks",
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            chunk(&filler),
            at_once,
            Some(CarrierFault::TooLong),
        ),
        (
            "a body that ends with its connection",
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[",
            filler.clone(),
            at_once,
            Some(CarrierFault::TooLong),
        ),
        (
            "a refusal",
            "HTTP/1.1 500 -\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n",
            filler.clone(),
            at_once,
            Some(CarrierFault::Refused),
        ),
        (
            "a line of an event",
            events("data: "),
            filler.clone(),
            at_once,
            Some(CarrierFault::TooLong),
        ),
        (
            "an event of many lines",
            events(""),
            format!("data: {filler}\n"),
            at_once,
            Some(CarrierFault::TooLong),
        ),
        (
            "the id of an event",
            events("id: "),
            filler.clone(),
            at_once,
            Some(CarrierFault::TooLong),
        ),
        (
            "interim answers",
            "",
            "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(5),
            slowly,
            None,
        ),
        (
            "comments",
            events(""),
            format!(": {filler}\n\n"),
            at_once,
            None,
        ),
        (
            "empty events",
            events(""),
            "data:\n\n".repeat(1000),
            at_once,
            None,
        ),
        (
            "news",
            events(""),
            format!("data: {other}\n\n"),
            at_once,
            None,
        ),
        (
            "answers to nobody",
            events(""),
            format!("data: {answered}\n\n"),
            at_once,
            None,
        ),
        (
            "a head, byte by byte",
            "HTTP/1.1 200 OK\r\nX: ",
            "x".into(),
            slowly,
            None,
        ),
        (
            "a body, byte by byte",
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n",
            " ".into(),
            slowly,
            None,
        ),
        (
            "an event, byte by byte",
            events("data: "),
            "x".into(),
            slowly,
            None,
        ),
    ];
    for (what, head, more, pause, fault) in table {
        let begun = Instant::now();
        let (error, sent) = call(head, more, pause);
        match (fault, &error) {
            (Some(fault), RequestError::Carrier(error)) => {
                assert_eq!(error.fault, fault, "{what}: {error}");
            }
            (None, RequestError::TimedOut | RequestError::Carrier(_)) => {}
            _ => panic!("{what}: {error:?}"),
        }
        assert!(!error.to_string().contains("xxxxx".repeat(100).as_str()));
        assert!(begun.elapsed() < PATIENCE, "{what}");
        if fault.is_some() {
            assert!(sent < MOST_SENT, "{what}: {sent} bytes were taken");
        }
    }
}

/// A compressed body is not decompressed, because no request asked for it.
#[cfg(feature = "compression")]
#[test]
fn compressed_answers_are_not_opened() {
    use std::io::Write;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let spaces = vec![b' '; 1 << 20];
    (0..64).for_each(|_| bomb.write_all(&spaces).unwrap());
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < MAX_BYTES + (64 << 10));
    for encoding in ["gzip", "x-gzip", "gzip, gzip"] {
        let bomb = bomb[..bomb.len().min(MAX_BYTES)].to_vec();
        let server = Scripted::stateless(move |_, wire| {
            let headers =
                format!("Content-Type: application/json\r\nContent-Encoding: {encoding}\r\n");
            wire.answer(200, &headers, &bomb);
        });
        let client = server.open(builder(Revision::V2026_07_28).limits(limits()));
        let call = client.call_tool("any", &json!({})).timeout(PATIENCE);
        let error = call.wait().unwrap_err();
        let RequestError::Carrier(error) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.fault, CarrierFault::NoAnswer, "{error}");
        let asked = &server.asked("tools/call")[0];
        assert_eq!(asked.header("accept-encoding"), None);
    }
}

/// R-PAG-08: a list whose cursors go round, or never end, is an error.
#[test]
fn lists_without_end_are_given_up() {
    for round in [1, 2, 5] {
        let server = Scripted::stateless(move |request, wire| {
            let cursor = request.body["params"]["cursor"].as_str().unwrap_or("0");
            let next = (cursor.parse::<usize>().unwrap() + 1) % round;
            wire.json(&request.result(json!({
                "resultType": "complete", "tools": [], "nextCursor": next.to_string(),
            })));
        });
        let client = server.open(builder(Revision::V2026_07_28).limits(limits()));
        let error = block_on(client.list_tools()).unwrap_err();
        assert!(error.to_string().contains("repeats a cursor"), "{error}");
        assert!(server.asked("tools/list").len() <= round + 1);
    }
    let large = "x".repeat(MAX_BYTES / 2);
    let server = Scripted::stateless(move |request, wire| {
        let cursor = request.body["params"]["cursor"].as_str().unwrap_or("0");
        let next = cursor.parse::<usize>().unwrap() + 1;
        wire.json(&request.result(json!({
            "resultType": "complete",
            "tools": [{"name": format!("t{next}"), "description": large, "inputSchema": {"type": "object"}}],
            "nextCursor": next.to_string(),
        })));
    });
    let client = server.open(builder(Revision::V2026_07_28).limits(limits()));
    let error = block_on(client.list_tools()).unwrap_err();
    assert!(error.to_string().contains("longest messages"), "{error}");
    assert_eq!(server.asked("tools/list").len(), 8);
}

/// Every redirect leads somewhere else.
#[test]
fn redirects_without_end_are_given_up() {
    for status in [301, 302, 307, 308] {
        let server = Scripted::stateless(move |request, wire| {
            let headers = format!("Location: {}x\r\n", request.path);
            wire.answer(status, &headers, "");
        });
        let client = server.open(builder(Revision::V2026_07_28).limits(limits()));
        let error = client.call_tool("any", &json!({})).wait().unwrap_err();
        let RequestError::Carrier(error) = error else {
            panic!("{error:?}");
        };
        assert_eq!(error.fault, CarrierFault::Redirected);
        assert_eq!(server.asked("tools/call").len(), 6);
    }
}

/// R-SCH-05, R-SCH-08: what a tool gives back is held against its schema in bounded time, and a schema
/// that leads elsewhere has nobody go there.
#[test]
fn hostile_schemas_cost_little() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/schema.json", elsewhere.local_addr().unwrap());
    elsewhere.set_nonblocking(true).unwrap();
    let mut doubling = json!({"type": "object", "$ref": "#/%24defs/d0", "$defs": {}});
    for level in 0..40 {
        let next = json!({"$ref": format!("#/%24defs/d{}", level + 1)});
        doubling["$defs"][format!("d{level}")] = json!({"allOf": [next, next]});
    }
    doubling["$defs"]["d40"] = json!({"required": ["b"]});
    let object = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let many: Vec<_> = (0..5000)
        .map(|n| json!({"pattern": format!("a{{{n}}}")}))
        .collect();
    let schemas: Vec<(Value, bool)> = vec![
        (object(json!({"pattern": "^(a+)+$"})), true),
        (object(json!({"pattern": "^(a|a?)+$"})), true),
        (object(json!({"pattern": "(?=a)((a+)+)\\1$"})), true),
        (object(json!({"pattern": "((a{1000}){1000}){1000}"})), true),
        (object(json!({"$ref": url})), true),
        (
            json!({"type": "object", "$id": url, "$ref": "other.json"}),
            true,
        ),
        (json!({"type": "object", "$schema": url}), true),
        (json!({"type": "object", "$ref": "#"}), false),
        (doubling, true),
        (object(json!({ "anyOf": many })), true),
    ];
    let count = schemas.len();
    let text = format!("{}!", "a".repeat(30_000));
    let listed = schemas.clone();
    let server = Scripted::stateless(move |request, wire| match request.method() {
        "tools/list" => {
            let tools: Vec<_> = (0..count)
                .map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}, "outputSchema": listed[n].0}))
                .collect();
            wire.json(&request.result(json!({"resultType": "complete", "tools": tools})));
        }
        _ => wire.json(&request.result(json!({
            "resultType": "complete", "content": [], "structuredContent": {"a": text},
        }))),
    });
    let limits = Limits {
        max_message_bytes: 1 << 20,
        ..Limits::NETWORK
    };
    let client = server.open(builder(Revision::V2026_07_28).limits(limits));
    assert_eq!(block_on(client.list_tools()).unwrap().len(), count);
    for (n, (schema, is_refused)) in schemas.iter().enumerate() {
        let begun = Instant::now();
        let call = client.call_tool(&format!("t{n}"), &json!({}));
        let outcome = call.timeout(PATIENCE).wait();
        assert_eq!(outcome.is_err(), *is_refused, "{n}: {outcome:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{schema}");
    }
    let nobody = elsewhere.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

/// A server that is reached says nothing, or too much, from the first request on.
#[test]
fn nothing_hostile_is_opened() {
    for (head, more) in [
        ("", "x".repeat(16 << 10)),
        ("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(5)),
        (JSON, "X-N: 1\r\n".repeat(100)),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
            ": x\n".repeat(1000),
        ),
    ] {
        let server = Scripted::serve(move |_, wire| {
            flood(wire, head, &more, Duration::from_millis(1));
        });
        let limits = Limits {
            handshake_timeout: Duration::from_millis(600),
            probe_timeout: Duration::from_millis(200),
            ..limits()
        };
        let begun = Instant::now();
        let client = mcpbolt::client::Client::builder("test", "1").limits(limits);
        let opened = block_on(client.http(&server.url(), HttpClientOptions::default()));
        assert!(opened.is_err());
        assert!(begun.elapsed() < PATIENCE);
    }
}
