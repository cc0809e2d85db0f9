//! The request that opens a connection, and the state kept from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::connection::OpeningMode;
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::Revision;
use serde_json::json;

use super::scripted::{Request, Scripted, Wire};
use super::until;

/// Speaks every revision.
fn builder() -> ClientBuilder {
    Client::builder("test", "1")
}

/// The answers of a server of the handshake era to everything but its opening and calls.
fn ignorant(request: &Request, wire: &mut Wire) {
    match (&*request.verb, request.method()) {
        ("POST", "tools/call") => wire.json(&request.said("fine")),
        ("POST", _) => wire.error(400, &request.error(-32601)),
        _ => wire.answer(405, "", ""),
    }
}

/// R-ERA-10.
#[test]
fn a_server_that_opens_with_a_handshake_is_asked_once() {
    let server = Scripted::handshake("2025-11-25", ignorant);
    for opened in 1..=3 {
        let client = server.open(builder());
        assert_eq!(client.revision(), Some(Revision::V2025_11_25));
        assert_eq!(server.asked("server/discover").len(), 1);
        assert_eq!(server.asked("initialize").len(), opened);
    }
}

/// R-ERA-10: what is remembered is forgotten when it does not fit any more.
#[test]
fn a_server_that_has_become_another_is_asked_again() {
    let modern = Arc::new(AtomicBool::new(false));
    let is_modern = modern.clone();
    let server = Scripted::serve(move |request, wire| {
        let result = match (request.method(), is_modern.load(Ordering::SeqCst)) {
            ("initialize", false) => super::scripted::opening("2025-11-25"),
            ("notifications/initialized", false) => return wire.answer(202, "", ""),
            ("server/discover", true) => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            }),
            _ => return wire.error(400, &request.error(-32601)),
        };
        wire.json(&request.result(result));
    });
    drop(server.open(builder()));
    modern.store(true, Ordering::SeqCst);
    let open = || block_on(builder().http(&server.url(), HttpClientOptions::default()));
    open().unwrap_err();
    assert_eq!(open().unwrap().revision(), Some(Revision::V2026_07_28));
    assert_eq!(server.asked("server/discover").len(), 2);
}

/// R-ERA-12: there are servers that an unknown first request kills.
#[test]
fn a_client_may_begin_with_the_handshake() {
    let server = Scripted::handshake("2025-06-18", ignorant);
    let client = server.open(builder().opening(OpeningMode::Handshake));
    assert_eq!(client.revision(), Some(Revision::V2025_06_18));
    assert_eq!(server.seen()[0].method(), "initialize");
    assert!(server.asked("server/discover").is_empty());
}

/// R-ERA-12.
#[test]
fn a_late_answer_to_what_was_asked_first_changes_nothing() {
    let answered = Arc::new(AtomicBool::new(false));
    let answers = answered.clone();
    let server = Scripted::handshake("2025-11-25", move |request, wire| {
        if request.method() != "server/discover" {
            return ignorant(request, wire);
        }
        std::thread::sleep(Duration::from_millis(300));
        wire.json(&request.result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
        })));
        answers.store(true, Ordering::SeqCst);
    });
    let limits = Limits {
        probe_timeout: Duration::from_millis(50),
        ..Limits::NETWORK
    };
    let client = server.open(builder().limits(limits));
    assert!(!answered.load(Ordering::SeqCst), "nobody waited for it");
    until("no late answer", || answered.load(Ordering::SeqCst));
    let said = client.call_tool("any", &json!({})).wait().unwrap();
    assert_eq!(said.text(), "fine");
    assert_eq!(client.revision(), Some(Revision::V2025_11_25));
}
