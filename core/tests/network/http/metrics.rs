//! The counters of a server can be read from outside.

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::ConnectOptions;
use mcpbolt::mcp::Revision;
use serde_json::json;

use crate::http::{server, until};

#[test]
fn calls_and_sessions_are_counted() {
    let sleepers = Default::default();
    let serving = server(&sleepers)
        .serve("http://127.0.0.1:0/mcp")
        .start()
        .unwrap();
    let counts = || serving.metrics().counts();
    let address = serving.address().to_string().replacen("http", "ws", 1);
    let client = Client::builder("test", "1");
    let options = ConnectOptions::default();
    let client = block_on(client.open(&address.parse().unwrap(), options)).unwrap();
    let echo = || {
        client
            .call_tool("echo", &json!({"text": "x"}))
            .wait()
            .unwrap()
    };
    (0..5).for_each(|_| drop(echo()));
    until("they are counted", || {
        (counts().calls, counts().open_calls) == (5, 0)
    });
    let sleeping = client.call_tool("sleep", &json!({})).send().unwrap();
    until("one is under way", || {
        (counts().calls, counts().open_calls) == (6, 1)
    });
    drop(sleeping);
    until("it is given up", || counts().open_calls == 0);

    let revision = Revision::V2025_11_25;
    let at = format!("http://{}", address.trim_start_matches("ws://"));
    let mut wire = crate::http::wire::Wire::open(
        at["http://".len()..]
            .trim_end_matches("/mcp")
            .parse()
            .unwrap(),
    );
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision.name(), "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let mut headers = vec![
        ("Host", "localhost".to_owned()),
        ("Content-Type", "application/json".to_owned()),
    ];
    wire.send(&crate::http::wire::post(&headers, &hello.to_string()));
    let id = wire.answer().header("mcp-session-id").to_owned();
    assert_eq!((counts().sessions, counts().open_sessions), (1, 1));
    headers.push(("Mcp-Session-Id", id));
    let end = String::from_utf8(crate::http::wire::post(&headers, "")).unwrap();
    wire.send(end.replacen("POST", "DELETE", 1).as_bytes());
    assert_eq!(wire.answer().status, 204);
    until("it has ended", || counts().open_sessions == 0);
    let counted = counts();
    assert_eq!(
        (counted.sessions, counted.calls, counted.websockets),
        (1, 6, 1)
    );
    serving.stop();
    serving.wait();
}
