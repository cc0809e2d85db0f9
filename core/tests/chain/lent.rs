//! Sessions of the handshake era before a server of 2026-07-28 on HTTP: they need no connection of their own (R-CHN-13).

use std::time::Duration;

use mcpbolt::connection::Framing;
use mcpbolt::mcp::{Revision, Revisions, meta};
use serde_json::{Value, json};

use crate::rig::{Rig, request};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const LISTEN: &str = "subscriptions/listen";

/// A front whose server is known to be of 2026-07-28, since a client of the handshake era has found that out.
fn rig() -> Rig {
    let mut rig = Rig::changing(NEW, |external| {
        external.revisions(Revisions::ALL).of_requests()
    });
    rig.silent = vec!["far"];
    let first = begin(&mut rig, "first", &json!({}));
    let handshake = rig.far_hears(0);
    refuse(&mut rig, 0, &handshake, -32601);
    rig.far_opens(0);
    rig.hear(first);
    rig.leave(first);
    rig.silent.clear();
    rig
}

/// A client begins a session of the handshake era.
fn begin(rig: &mut Rig, name: &str, capabilities: &Value) -> usize {
    let near = rig.connect(Framing::Line);
    let info = json!({"name": name, "version": "1"});
    let params =
        json!({"protocolVersion": OLD.name(), "capabilities": capabilities, "clientInfo": info});
    rig.say(near, &request("open", "initialize", &params));
    near
}

/// A session that is open.
fn open(rig: &mut Rig, name: &str, capabilities: &Value) -> usize {
    let near = begin(rig, name, capabilities);
    let opened = rig.hear(near);
    assert!(opened["result"].is_object(), "{opened}");
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    rig.say(near, &told.to_string());
    near
}

fn refuse(rig: &mut Rig, far: usize, heard: &Value, code: i64) {
    let error = json!({"code": code, "message": "what is that?"});
    let line = json!({"jsonrpc": "2.0", "id": heard["id"], "error": error});
    rig.far_says(far, &line.to_string());
}

fn call(rig: &mut Rig, near: usize) {
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
}

/// The server refuses a call on its second connection, and the client gets that error.
#[track_caller]
fn is_refused(rig: &mut Rig, near: usize, code: i64) {
    call(rig, near);
    let heard = rig.far_hears(1);
    assert_eq!(heard["method"], "tools/call");
    refuse(rig, 1, &heard, code);
    assert_eq!(rig.hear(near)["error"]["code"], code);
}

fn count(rig: &Rig) -> usize {
    rig.fars.lock().unwrap().len()
}

/// The server hears a stream of changes on a connection, and acknowledges it.
#[track_caller]
fn hears_stream(rig: &mut Rig, far: usize, uris: Option<&[&str]>) -> Value {
    let listen = rig.far_hears(far);
    assert_eq!(listen["method"], LISTEN, "{listen}");
    let filter = &listen["params"]["notifications"];
    assert_eq!(
        filter["resourceSubscriptions"],
        json!(uris),
        "what it listens to"
    );
    let params = json!({"notifications": filter});
    tell(rig, far, &listen, "subscriptions/acknowledged", params);
    listen
}

/// The server says something on a stream of changes.
fn tell(rig: &mut Rig, far: usize, listen: &Value, what: &str, mut params: Value) {
    params["_meta"][meta::SUBSCRIPTION_ID] = listen["id"].clone();
    let method = format!("notifications/{what}");
    let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
    rig.far_says(far, &told.to_string());
}

/// R-CHN-07, R-CHN-09: each request says whose it is; a question goes to the client of its call; changes of lists are heard on one stream.
#[test]
fn sessions_share_a_connection() {
    let mut rig = rig();
    let plain = open(&mut rig, "plain", &json!({}));
    let asked = open(&mut rig, "asked", &json!({"elicitation": {}}));
    let listen = hears_stream(&mut rig, 1, None);
    for (near, name, capabilities) in [
        (plain, "plain", json!({})),
        (asked, "asked", json!({"elicitation": {}})),
    ] {
        call(&mut rig, near);
        let heard = rig.far_hears(1);
        let meta = &heard["params"]["_meta"];
        assert_eq!(meta[meta::CLIENT_INFO]["name"], name, "{heard}");
        assert_eq!(meta[meta::CLIENT_CAPABILITIES], capabilities);
        if near == plain {
            rig.answer(1, &heard, &json!({"content": []}));
            assert!(rig.hear(near)["result"].is_object());
            continue;
        }
        let question = json!({"q": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}});
        let asks = json!({"resultType": "input_required", "inputRequests": question});
        rig.answer(1, &heard, &asks);
        let question = rig.hear(near);
        assert_eq!(question["params"]["message"], "?");
        let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        rig.say(near, &said.to_string());
        let again = rig.far_hears(1);
        assert_eq!(
            again["params"]["inputResponses"]["q"]["action"], "decline",
            "{again}"
        );
        rig.answer(1, &again, &json!({"content": []}));
        assert!(rig.hear(near)["result"].is_object());
    }
    tell(&mut rig, 1, &listen, "tools/list_changed", json!({}));
    for near in [plain, asked] {
        let told = rig.hear(near);
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
    assert_eq!(count(&rig), 2);
    rig.assert_quiet();
}

/// A stream of changes has room for what one session subscribes to, not for what all do.
#[test]
fn a_session_that_subscribes_gets_a_connection_of_its_own() {
    let mut rig = rig();
    let plain = open(&mut rig, "plain", &json!({}));
    let other = open(&mut rig, "other", &json!({}));
    hears_stream(&mut rig, 1, None);
    let level = json!({"level": "error"});
    rig.say(other, &request(1, "logging/setLevel", &level));
    assert!(rig.hear(other)["result"].is_object());
    rig.say(other, &request(3, "tools/call", &json!({"name": "x"})));
    let before = rig.far_hears(1);
    let uri = json!({"uri": "a:b"});
    rig.say(other, &request(2, "resources/subscribe", &uri));
    let own = loop {
        let listen = rig.far_hears(2);
        assert_eq!(listen["method"], LISTEN);
        let filter = listen["params"]["notifications"].clone();
        let acknowledged = json!({"notifications": filter});
        tell(
            &mut rig,
            2,
            &listen,
            "subscriptions/acknowledged",
            acknowledged,
        );
        if filter["resourceSubscriptions"] == json!(["a:b"]) {
            break listen;
        }
    };
    let answer = loop {
        let heard = rig.hear(other);
        if heard["id"] == 2 {
            break heard;
        }
        let method = heard["method"].as_str().unwrap();
        assert!(method.ends_with("list_changed"), "{heard}");
    };
    assert!(answer["result"].is_object(), "{answer}");
    // A call that is under way goes on where it began.
    let asks = json!({"resultType": "input_required", "requestState": "s"});
    rig.answer(1, &before, &asks);
    let again = rig.far_hears(1);
    assert_eq!(again["params"]["requestState"], "s");
    rig.answer(1, &again, &json!({"content": []}));
    rig.step();
    let lines = rig.nears[other].lines.iter();
    let is_answer = |line: &String| line.contains("\"id\":3") && line.contains("result");
    assert_eq!(lines.filter(|line| is_answer(line)).count(), 1);
    rig.nears[other].lines.clear();
    rig.assert_only_listens();
    tell(&mut rig, 2, &own, "resources/updated", uri);
    let told = rig.hear(other);
    assert_eq!(told["method"], "notifications/resources/updated");
    call(&mut rig, other);
    let heard = rig.far_hears(2);
    assert_eq!(heard["params"]["_meta"][meta::LOG_LEVEL], "error");
    rig.answer(2, &heard, &json!({"content": []}));
    rig.hear(other);
    call(&mut rig, plain);
    let heard = rig.far_hears(1);
    rig.answer(1, &heard, &json!({"content": []}));
    rig.hear(plain);
    rig.assert_quiet();
}

/// R-CHN-14: nothing on HTTP tells that a server has been replaced by one of the handshake era but that it refuses. Sessions go on, each on
/// a connection of its own, with what its client declares.
#[test]
fn sessions_outlive_the_era_of_the_server() {
    let mut rig = rig();
    let plain = open(&mut rig, "plain", &json!({}));
    let asked = open(&mut rig, "asked", &json!({"elicitation": {}}));
    hears_stream(&mut rig, 1, None);
    rig.silent = vec!["far"];
    is_refused(&mut rig, plain, -32000);
    let discover = rig.far_hears(1);
    assert_eq!(discover["method"], "server/discover");
    refuse(&mut rig, 1, &discover, -32000);
    rig.carrier_ends(1);
    rig.pass(Duration::from_secs(2));
    // It waits for a connection, which is then no client's own.
    call(&mut rig, plain);
    let discover = rig.far_hears(2);
    assert_eq!(discover["method"], "server/discover");
    rig.fars.lock().unwrap()[2].revision = OLD;
    refuse(&mut rig, 2, &discover, -32000);
    rig.far_opens(2);
    let failed = loop {
        let heard = rig.hear(plain);
        if heard["id"] == 1 {
            break heard;
        }
    };
    assert_eq!(failed["error"]["data"]["reason"], "upstream_unavailable");
    rig.nears[asked].lines.clear();
    call(&mut rig, asked);
    let handshake = rig.far_hears(3);
    assert_eq!(handshake["method"], "initialize");
    assert_eq!(
        handshake["params"]["capabilities"],
        json!({"elicitation": {}})
    );
    rig.fars.lock().unwrap()[3].revision = OLD;
    let opened = json!({"protocolVersion": OLD.name(), "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}});
    rig.answer(3, &handshake, &opened);
    let heard = rig.far_hears(3);
    assert_eq!(heard["method"], "tools/call");
    let form = json!({"message": "?", "requestedSchema": {"type": "object"}});
    rig.far_says(3, &request("q", "elicitation/create", &form));
    let question = rig.hear(asked);
    assert_eq!(question["params"]["message"], "?");
    let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    rig.say(asked, &said.to_string());
    assert_eq!(rig.far_hears(3)["result"]["action"], "decline");
    rig.answer(3, &heard, &json!({"content": []}));
    assert!(rig.hear(asked)["result"].is_object());
    assert_eq!(count(&rig), 4);
}

/// An error that is the server's answer changes nothing, and the server is not asked about each.
#[test]
fn a_server_that_refuses_a_request_keeps_its_connection() {
    let mut rig = rig();
    let near = open(&mut rig, "near", &json!({}));
    hears_stream(&mut rig, 1, None);
    rig.silent = vec!["far"];
    is_refused(&mut rig, near, -32600);
    // What an overloaded server says is no refusal.
    let discover = rig.far_hears(1);
    assert_eq!(discover["method"], "server/discover");
    refuse(&mut rig, 1, &discover, -31999);
    for _ in 0..2 {
        is_refused(&mut rig, near, -32600);
    }
    rig.assert_quiet();
    rig.pass(Duration::from_secs(6));
    is_refused(&mut rig, near, -32600);
    assert_eq!(rig.far_hears(1)["method"], "server/discover");
    assert_eq!(count(&rig), 2);
}
