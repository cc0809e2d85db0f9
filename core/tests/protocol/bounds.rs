//! The limits on messages of a peer: depth, batches, ids, subscriptions, requests of this side.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::time::Instant;

use mcpbolt::connection::{Config, OpeningMode, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::limits::{MAX_ID_BYTES, MAX_LISTENS, MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS};
use mcpbolt::mcp::code::{INVALID_REQUEST, OVERLOADED};
use mcpbolt::mcp::{Revision, Side};
use mcpbolt::server::{Resource, ResourceContents, Server};
use serde_json::{Value, json};

use crate::wire::Wire;
use crate::world::End;

fn config(limit: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new(Side::Server, "server", "1");
    limit(&mut config);
    config
}

fn opened(config: Config, revision: &str) -> End {
    let mut end = End::new(config, Instant::now());
    let hello = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"{revision}\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"c\",\"version\":\"1\"}}}}}}\n"
    );
    end.receive(hello.as_bytes(), Instant::now());
    end.step(Instant::now());
    end
}

fn says(end: &mut End, line: &str) -> Value {
    end.receive(format!("{line}\n").as_bytes(), Instant::now());
    end.step(Instant::now());
    serde_json::from_str(end.last()).unwrap()
}

#[test]
fn messages_are_bounded_in_depth() {
    let mut end = opened(config(|config| config.limits.max_depth = 8), "2025-11-25");
    for (depth, fits) in [(5, true), (6, true), (7, false), (100_000, false)] {
        let (open, shut) = ("[".repeat(depth), "]".repeat(depth));
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{depth},\"method\":\"ping\",\"params\":{{\"x\":{open}{shut}}}}}"
        );
        let answer = says(&mut end, &line);
        assert_eq!(answer["result"].is_object(), fits, "{depth}: {answer}");
    }
}

#[test]
fn batches_are_bounded_in_length() {
    let config = config(|config| config.limits.max_batch_len = 2);
    let mut end = opened(config, "2025-03-26");
    let batch = |len: usize| {
        let ping = |id| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        Value::from((0..len).map(ping).collect::<Vec<_>>()).to_string()
    };
    let before = end.wrote.len();
    says(&mut end, &batch(2));
    assert!(!end.last().contains("error") && end.wrote.len() > before);
    let answer = says(&mut end, &batch(3));
    assert_eq!(answer["error"]["code"], INVALID_REQUEST, "{answer}");
}

#[test]
fn ids_are_bounded_in_length() {
    let mut end = opened(config(|_| ()), "2025-11-25");
    for (len, fits) in [
        (MAX_ID_BYTES - 2, true),
        (MAX_ID_BYTES - 1, false),
        (1 << 20, false),
    ] {
        let id = "x".repeat(len);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let answer = says(&mut end, &line.to_string());
        assert_eq!(answer["result"].is_object(), fits, "{len}");
        assert!(fits || answer["error"]["code"] == INVALID_REQUEST);
    }
}

#[test]
fn requests_of_this_side_are_bounded_in_number() {
    let mut config = Config::new(Side::Client, "client", "1");
    config.opening = OpeningMode::Stateless;
    config.limits.max_outgoing = 3;
    let mut end = End::new(config, Instant::now());
    end.step(Instant::now());
    let handle = end.handle();
    let ask = || handle.request("tools/list", None, RequestOptions::default());
    let waiting: Vec<_> = (0..3).map(|_| ask().unwrap()).collect();
    assert!(matches!(ask(), Err(RequestError::Overloaded)));
    drop(waiting);
    end.step(Instant::now());
    assert!(ask().is_ok(), "there is room again");
}

fn library() -> Server {
    Server::builder("library", "1")
        .subscriptions()
        .resource_template(Resource::new("x:{name}", "any"), |_, _, _| async {
            Ok::<_, HandlerError>(ResourceContents::text("x:1", "text"))
        })
        .build()
        .unwrap()
}

#[test]
fn subscriptions_are_bounded_in_number_and_bytes() {
    let server = library();
    let revision = Revision::V2025_11_25;
    let subscribe = |wire: &mut Wire, uri: String| {
        let answer = wire.ask(revision, "resources/subscribe", json!({"uri": uri}));
        answer["error"]["code"].as_i64()
    };
    let mut wire = Wire::open(&server, revision, json!({}));
    for n in 0..MAX_SUBSCRIPTIONS {
        assert_eq!(subscribe(&mut wire, format!("x:{n}")), None);
    }
    let more = "x:more".to_owned();
    assert_eq!(subscribe(&mut wire, more), Some(OVERLOADED));
    assert_eq!(
        subscribe(&mut wire, "x:1".into()),
        None,
        "it is one already"
    );
    drop(wire);

    let mut wire = Wire::open(&server, revision, json!({}));
    let long = |n: usize| format!("x:{n}{}", "y".repeat(MAX_SUBSCRIPTION_BYTES / 4));
    let before = server.config().budget.bytes();
    for n in 0..3 {
        assert_eq!(subscribe(&mut wire, long(n)), None);
    }
    assert_eq!(subscribe(&mut wire, long(3)), Some(OVERLOADED));
    assert!(server.config().budget.bytes() > before + MAX_SUBSCRIPTION_BYTES / 4 * 3);
    let gone = json!({"uri": long(0)});
    wire.ask(revision, "resources/unsubscribe", gone);
    assert_eq!(subscribe(&mut wire, long(3)), None);
    drop(wire);
    assert_eq!(server.config().budget.bytes(), 0);
}

#[test]
fn streams_of_subscriptions_are_bounded_in_number_and_bytes() {
    let server = library();
    let line = |id: usize, uris: Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
            "notifications": {"resourceSubscriptions": uris},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }});
        line.to_string()
    };
    let codes = |heard: Vec<Value>| -> Vec<_> {
        let codes = heard.iter().map(|said| said["error"]["code"].as_i64());
        codes.flatten().collect()
    };
    let listen = |wire: &mut Wire, id: usize, uris: Value| codes(wire.say(&line(id, uris))).pop();
    let mut wire = Wire::new(server.clone());
    for id in 0..MAX_LISTENS {
        assert_eq!(listen(&mut wire, id, json!(["x:1"])), None);
    }
    assert_eq!(listen(&mut wire, 999, json!(["x:1"])), Some(OVERLOADED));
    drop(wire);

    // All that come at once count.
    let mut wire = Wire::new(server.clone());
    let lines = (0..MAX_LISTENS + 3).map(|id| line(id, json!(["x:1"])));
    let heard = wire.say(&lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(codes(heard), [OVERLOADED; 3]);
    drop(wire);

    let mut wire = Wire::new(server.clone());
    let long = |n: usize| json!([format!("x:{n}{}", "y".repeat(MAX_SUBSCRIPTION_BYTES / 3))]);
    for id in 0..2 {
        assert_eq!(listen(&mut wire, id, long(id)), None);
    }
    assert_eq!(listen(&mut wire, 2, long(2)), Some(OVERLOADED));
    drop(wire);
    assert_eq!(server.config().budget.bytes(), 0);
}
