//! A client of sessions by hand, whose requests are written once.

use std::net::SocketAddr;

use serde_json::json;

use crate::wire::{Answer, Wire, post};

const HEADERS: [(&str, &str); 3] = [
    ("Host", "localhost"),
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
];

/// A POST with more headers than the usual.
pub fn write(more: &[(&str, &str)], body: &str) -> Vec<u8> {
    let all = HEADERS.iter().chain(more);
    let all: Vec<_> = all
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    post(&all, body)
}

/// A POST of a session.
pub fn say(id: &str, body: &str) -> Vec<u8> {
    write(&[("Mcp-Session-Id", id)], body)
}

/// The request that begins a session.
pub fn hello() -> Vec<u8> {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    write(&[], &hello.to_string())
}

/// The request for the stream of a session; for one of 2024-11-05 without a name.
pub fn listen(id: &str) -> Vec<u8> {
    let session = match id {
        "" => String::new(),
        id => format!("Mcp-Session-Id: {id}\r\n"),
    };
    format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{session}\r\n")
        .into_bytes()
}

/// A tool's call of 2026-07-28.
pub fn call(id: u32, name: &str, arguments: serde_json::Value) -> Vec<u8> {
    let message = crate::wire::request(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    );
    post(&crate::wire::headers(&message), &message.to_string())
}

/// Asks, and is answered with that status.
pub fn ask(wire: &mut Wire, request: &[u8], status: u16) -> Answer {
    wire.send(request);
    let answer = wire.answer();
    assert_eq!(answer.status, status, "{answer:?}");
    answer
}

/// A connection with a session.
pub fn open(to: SocketAddr) -> (Wire, String) {
    let mut wire = Wire::open(to);
    let id = ask(&mut wire, &hello(), 200)
        .header("mcp-session-id")
        .to_owned();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    ask(&mut wire, &say(&id, ready), 202);
    (wire, id)
}

/// A connection with a session, which goes on as its standing stream.
pub fn stand(to: SocketAddr) -> Wire {
    let (mut wire, id) = open(to);
    wire.send(&listen(&id));
    assert_eq!(wire.begin().status, 200);
    wire
}
