//! What grows with what a peer says, or with who connects, and where it ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcpbolt::chain::{External, Front};
use mcpbolt::client::{Client, ClientBuilder};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const OVERLOADED: i64 = -31999;

fn elicitation() -> Value {
    json!({"elicitation": {}})
}

fn call(id: usize, capabilities: &Value) -> String {
    stateless(id, "tools/call", json!({"name": "x"}), capabilities)
}

/// R-MRT-12.
#[test]
fn a_server_that_demands_input_without_end_is_given_up() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
    for round in 0..10 {
        let arrived = rig.far_hears(0);
        let more = json!({"resultType": "input_required", "requestState": round.to_string()});
        rig.answer(0, &arrived, &more);
    }
    let told = rig.hear(near);
    let reason = &told["error"]["data"]["reason"];
    assert_eq!(reason, "upstream_answer_not_valid", "{told}");
    rig.assert_quiet();
}

/// A client of the stateless era may declare other capabilities with each request, and a server of the handshake era has a
/// connection for each set of them.
#[test]
fn a_client_with_many_sets_of_capabilities_has_few_connections_at_a_time() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let mut id = 0;
    let mut say = |number: usize, far: usize| {
        id += 1;
        let own = json!({"experimental": {number.to_string(): {}}});
        rig.say(near, &call(id, &own));
        assert_eq!(rig.far_hears(far)["method"], "tools/call");
    };
    for number in 0..17 {
        say(number, number);
    }
    // The seventeenth took the place of the others.
    say(16, 16);
    say(0, 17);
    assert_eq!(rig.fars.lock().unwrap().len(), 18);
}

/// Each call whose client nobody verified, and that may be asked, has a connection of its own.
#[test]
fn connections_for_one_call_at_a_time_are_bounded_in_number() {
    let mut rig = Rig::new(OLD, 1);
    let mut calls = Vec::new();
    for number in 0..256 {
        let near = rig.post(&call(number, &elicitation()));
        // The first connection tells the era of the server.
        calls.push((near, number + 1));
    }
    let refused = rig.post(&call(256, &elicitation()));
    assert_eq!(rig.hear(refused)["error"]["code"], OVERLOADED);
    // A call that ends makes room, also for a client with other capabilities.
    let (near, far) = calls[7];
    let arrived = rig.far_hears(far);
    rig.answer(far, &arrived, &json!({"content": []}));
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
    let near = rig.post(&call(257, &json!({"sampling": {}})));
    let arrived = rig.far_hears(257);
    rig.answer(257, &arrived, &json!({"content": []}));
    assert_eq!(rig.hear(near)["id"], 257);
}

#[test]
fn a_stream_listens_to_no_more_resources_than_may_be() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let uris: Vec<_> = (0..1001).map(|number| format!("a:{number:04}")).collect();
    let params = json!({"notifications": {"resourceSubscriptions": uris}});
    rig.say(
        near,
        &stateless(1, "subscriptions/listen", params, &json!({})),
    );
    for uri in &uris[..1000] {
        let arrived = rig.far_hears(0);
        assert_eq!(
            (&arrived["method"], &arrived["params"]["uri"]),
            (&json!("resources/subscribe"), &json!(uri))
        );
        rig.answer(0, &arrived, &json!({}));
    }
    let granted = rig.hear(near)["params"]["notifications"].take();
    assert_eq!(granted, json!({"resourceSubscriptions": uris[..1000]}));
    rig.assert_quiet();
}

/// A client that has all the subscriptions it may have can still repeat one.
#[test]
fn a_session_subscribes_to_no_more_resources_than_may_be() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({}));
    for id in 0..1000 {
        let subscribe = request(
            id,
            "resources/subscribe",
            &json!({"uri": format!("a:{id}")}),
        );
        rig.say(near, &subscribe);
        rig.far_line(0);
    }
    let subscribe = |uri: &str| request(uri, "resources/subscribe", &json!({"uri": uri}));
    rig.say(near, &subscribe("a:1000"));
    assert_eq!(rig.hear(near)["error"]["code"], OVERLOADED);
    rig.say(near, &subscribe("a:7"));
    assert_eq!(rig.far_hears(0)["method"], "subscriptions/listen");
    rig.assert_quiet();
}

#[test]
fn calls_whose_clients_do_not_come_back_are_bounded_in_number() {
    let mut rig = Rig::new(OLD, 1);
    let params = json!({"message": "?", "requestedSchema": {"type": "object"}});
    for client in 0..100 {
        let near = rig.connect(Framing::Line);
        let lines: Vec<_> = (0..100).map(|id| call(id, &elicitation())).collect();
        rig.say(near, &lines.join("\n"));
        let far = &mut rig.fars.lock().unwrap()[client];
        far.lines.clear();
        // Questions that came together would be asked together.
        for id in 0..100 {
            far.say(&request(id, "elicitation/create", &params), rig.now);
        }
    }
    rig.step();
    assert!(rig.nears.iter().all(|near| near.lines.len() == 100));
    let near = rig.connect(Framing::Line);
    rig.say(near, &call(1, &elicitation()));
    let arrived = rig.far_hears(100);
    rig.far_says(100, &request(2, "elicitation/create", &params));
    assert_eq!(rig.far_hears(100)["error"]["code"], OVERLOADED);
    // The call goes on without the question.
    rig.answer(100, &arrived, &json!({"content": []}));
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
}

/// R-CHN-14: a server that cannot be reached is not tried by each call, which for a command would start a process each.
#[test]
fn calls_do_not_try_again_and_again_what_cannot_be_reached() {
    let tried = Arc::<AtomicU64>::default();
    let counted = tried.clone();
    let link = move |_: ClientBuilder| {
        counted.fetch_add(1, Ordering::Relaxed);
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        Box::pin(async move { Err::<Client, _>(refused) }) as _
    };
    let mut rig = Rig::with(OLD, 1, move |_| {
        Front::new(External::new("far", link.clone()))
    });
    let begun = Instant::now();
    for number in 0..50 {
        let near = rig.post(&call(number, &json!({})));
        let reason = rig.hear(near)["error"]["data"]["reason"].take();
        assert_eq!(reason, "upstream_unavailable");
    }
    let most = 4 + begun.elapsed().as_millis() / 250;
    let tried = tried.load(Ordering::Relaxed);
    assert!(u128::from(tried) <= most, "{tried} attempts");
}

/// R-CHN-14: a server that takes connections and says nothing holds a call up no longer than a call may take in total.
#[test]
fn a_connection_that_does_not_open_fails_its_calls_in_time() {
    let total = Duration::from_secs(10);
    let link = |_: ClientBuilder| Box::pin(std::future::pending::<io::Result<Client>>()) as _;
    let mut rig = Rig::with(OLD, 1, move |_| {
        Front::new(External::new("far", link).timeouts(total / 10, total))
    });
    let asks = rig.post(&call(1, &elicitation()));
    let shares = rig.post(&call(2, &json!({})));
    let opens = rig.connect(Framing::Line);
    let params = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": {"name": "near", "version": "1"}});
    rig.say(opens, &request(3, "initialize", &params));
    for near in [asks, shares, opens] {
        rig.assert_is_waiting(near);
    }
    rig.pass(total);
    for near in [asks, shares, opens] {
        let reason = rig.hear(near)["error"]["data"]["reason"].take();
        assert_eq!(reason, "upstream_timeout");
    }
}
