//! The stream of a session on the wire: it has its connection for itself.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use mcpbolt::io::http::HttpOptions;
use serde_json::{Value, json};

use crate::http::sessions::{Client, events};
use crate::http::wire::{Wire, post};
use crate::http::{Serving, until};

const ERA: &str = "2025-11-25";

fn get(client: &Client) -> Vec<u8> {
    let head: String = client
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("GET /mcp HTTP/1.1\r\n{head}\r\n").into_bytes()
}

fn watch(client: &Client) {
    let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
        "params": {"uri": "a:b"}});
    assert_eq!(client.post(&watch).json()["result"], json!({}));
}

/// The next message that is no comment.
fn told(wire: &mut Wire) -> Value {
    for _ in 0..100 {
        let chunk = wire.chunk();
        assert!(!chunk.is_empty(), "it goes on");
        if chunk != ":\n\n" {
            return events(&chunk).remove(0).1;
        }
    }
    panic!("nothing was told")
}

/// R-HTP-11: comments and events come, until the session ends; what is sent behind is not answered,
/// and was told so.
#[test]
fn a_standing_stream_is_alone_on_its_connection() {
    let serving = Serving::begin(HttpOptions {
        comment_interval: Duration::from_millis(50),
        ..HttpOptions::default()
    });
    let client = Client::open(serving.at, ERA, json!({}));
    let mut wire = Wire::open(serving.at);
    let behind = post(
        &client.headers(),
        &client.call(9, "sleep", json!({})).to_string(),
    );
    wire.send(&[&get(&client)[..], &behind].concat());
    let head = wire.begin();
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ] {
        assert_eq!(head.header(name), value, "{head:?}");
    }
    wire.send(&behind);
    for _ in 0..3 {
        assert_eq!(wire.chunk(), ":\n\n");
    }
    watch(&client);
    for _ in 0..3 {
        serving.server.resource_updated("a:b");
        assert_eq!(told(&mut wire)["params"]["uri"], "a:b");
    }
    client.bare("DELETE", "").answer();
    while !wire.chunk().is_empty() {}
    assert!(wire.is_closed());
    assert_eq!(serving.sleepers.load(SeqCst), 0, "nothing was called");
    serving.end();
}

/// An answer that its client is slow to read leaves whole before the stream that is asked for
/// behind it.
#[test]
fn what_is_before_a_stream_is_not_lost() {
    let serving = Serving::begin(HttpOptions::default());
    let client = Client::open(serving.at, ERA, json!({}));
    watch(&client);
    let text = "x".repeat(LONG);
    let call = client.call(2, "echo", json!({"text": text}));
    let mut wire = Wire::open(serving.at);
    wire.send(&post(&client.headers(), &call.to_string()));
    wire.send(&get(&client));
    thread::sleep(Duration::from_millis(300));
    let answer = wire.answer();
    assert_eq!(answer.json()["result"]["content"][0]["text"], *text);
    assert_eq!(wire.begin().status, 200);
    serving.server.resource_updated("a:b");
    assert_eq!(told(&mut wire)["method"], "notifications/resources/updated");
    serving.end();
}

/// More than a system's buffers hold between two sockets.
const LONG: usize = 12 << 20;

/// R-HTP-11: whoever leaves is missed at once, though nothing is said; whoever does not stop
/// talking is sent away.
#[test]
fn who_leaves_a_standing_stream_is_missed() {
    let serving = crate::http::server(&Default::default())
        .serve("http://127.0.0.1:0/mcp")
        .start()
        .unwrap();
    let at = serving.address().to_string();
    let at = at["http://".len()..].trim_end_matches("/mcp").parse();
    let client = Client::open(at.unwrap(), ERA, json!({}));
    let open = || serving.metrics().counts().open_connections;
    until("none is open", || open() == 0);
    let wire = client.get(None);
    assert_eq!(open(), 1);
    drop(wire);
    until("it is missed", || open() == 0);
    let mut wire = client.get(None);
    while wire.try_send(&[b'x'; 4096]) {}
    until("it is gone", || open() == 0);
    serving.stop();
    serving.wait();
}
