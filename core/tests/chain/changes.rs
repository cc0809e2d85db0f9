//! Changes of lists and resources, between the eras: when a client hears of them, and when it does not any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpbolt::connection::{Framing, Wake};
use mcpbolt::mcp::{Revision, meta};
use mcpbolt::prelude::CancelToken;
use serde_json::{Value, json};

use crate::rig::{Fars, Gate, Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// The server acknowledges a stream.
fn acknowledge(rig: &mut Rig, listen: &Value) {
    acknowledge_on(rig, 0, listen);
}

/// The same on that connection.
fn acknowledge_on(rig: &mut Rig, far: usize, listen: &Value) {
    let own = json!({meta::SUBSCRIPTION_ID: listen["id"]});
    let params = json!({"notifications": listen["params"]["notifications"], "_meta": own});
    let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
    rig.far_says(far, &acknowledged.to_string());
}

/// The client hears, in any order, that these lists may be others.
#[track_caller]
fn hears_of_lists(rig: &mut Rig, near: usize, lists: &[&str]) {
    let mut heard: Vec<_> = lists
        .iter()
        .map(|_| rig.hear(near)["method"].clone())
        .collect();
    heard.sort_by_key(Value::to_string);
    let told = lists
        .iter()
        .map(|list| json!(format!("notifications/{list}/list_changed")));
    assert_eq!(heard, told.collect::<Vec<_>>());
}

const LISTS: [&str; 3] = ["prompts", "resources", "tools"];

/// R-CHN-13: the server tells of changes of its lists when it has acknowledged the stream of the front. A list that a client has
/// before may be another one since.
#[test]
fn a_client_hears_of_lists_that_may_have_changed_before_their_stream_was_open() {
    let mut rig = Rig::new(NEW, 1);
    let (near, listen) = rig.open_and_hear_listen(OLD, &json!({}));
    let list = |rig: &mut Rig, of: &str| {
        rig.say(near, &request(1, &format!("{of}/list"), &json!({})));
        let list = rig.far_hears(0);
        let fresh =
            json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public", of: []});
        rig.answer(0, &list, &fresh);
        assert_eq!(rig.hear(near)["id"], 1);
    };
    list(&mut rig, "tools");
    acknowledge(&mut rig, &listen);
    hears_of_lists(&mut rig, near, &["tools"]);
    rig.assert_quiet();
    // It is not kept either. The stream before tells of changes while the next one is opened.
    rig.say(
        near,
        &request(2, "resources/subscribe", &json!({"uri": "a:b"})),
    );
    let next = rig.far_hears(0);
    for of in ["tools", "prompts"] {
        list(&mut rig, of);
    }
    acknowledge(&mut rig, &next);
    assert_eq!(rig.hear(near)["id"], 2);
    assert_eq!(rig.far_hears(0)["method"], "notifications/cancelled");
    rig.assert_quiet();
}

/// R-CHN-14: what a client has subscribed to may have changed while its server was away.
#[test]
fn a_client_hears_of_resources_that_may_have_changed_while_their_server_was_away() {
    for revision in [OLD, NEW] {
        let mut rig = Rig::new(revision, 1);
        let near = rig.open(OLD, &json!({}));
        let subscribe = request(1, "resources/subscribe", &json!({"uri": "a:b"}));
        rig.say(near, &subscribe);
        // Once the server tells of changes, and not before.
        let grant = |rig: &mut Rig, far: usize, asked: &Value| match revision {
            OLD => rig.answer(far, asked, &json!({})),
            _ => acknowledge_on(rig, far, asked),
        };
        let asked = rig.far_hears(0);
        grant(&mut rig, 0, &asked);
        assert_eq!(rig.hear(near)["id"], 1);
        rig.assert_is_waiting(near);
        rig.break_off(0);
        rig.pass(Duration::from_secs(1));
        hears_of_lists(&mut rig, near, &LISTS);
        rig.assert_is_waiting(near);
        let again = rig.far_hears(1);
        assert_eq!(again["method"], asked["method"]);
        grant(&mut rig, 1, &again);
        let heard = rig.hear(near);
        assert_eq!(heard["method"], "notifications/resources/updated");
        assert_eq!(heard["params"], json!({"uri": "a:b"}));
        rig.assert_is_waiting(near);
    }
}

/// R-CHN-14: whichever stream is open first, the client hears of what it may have missed: here it subscribes to something else before the
/// front has restored what it had.
#[test]
fn what_was_missed_is_told_by_the_stream_that_is_open_first() {
    for is_lost in [false, true] {
        let mut rig = Rig::new(NEW, 1);
        let near = rig.open(OLD, &json!({}));
        let subscribe = |rig: &mut Rig, id: u64, uri: &str| {
            rig.say(
                near,
                &request(id, "resources/subscribe", &json!({"uri": uri})),
            );
        };
        subscribe(&mut rig, 1, "a:b");
        let stream = rig.far_hears(0);
        acknowledge(&mut rig, &stream);
        assert_eq!(rig.hear(near)["id"], 1);
        assert_eq!(rig.far_hears(0)["method"], "notifications/cancelled");
        let far = match is_lost {
            true => {
                rig.break_off(0);
                1
            }
            false => {
                let own = json!({meta::SUBSCRIPTION_ID: stream["id"]});
                rig.answer(0, &stream, &json!({"resultType": "complete", "_meta": own}));
                0
            }
        };
        subscribe(&mut rig, 2, "c:d");
        let mut heard = Vec::new();
        for _ in 0..4 {
            rig.pass(Duration::from_millis(500));
            let lines = std::mem::take(&mut rig.fars.lock().unwrap()[far].lines);
            for line in lines {
                let message: Value = serde_json::from_str(&line).unwrap();
                if message["method"] == "subscriptions/listen" {
                    acknowledge_on(&mut rig, far, &message);
                }
            }
            while !rig.is_waiting(near) {
                heard.push(rig.hear(near));
            }
        }
        let told = |method: &str| heard.iter().filter(|it| it["method"] == method).count();
        assert!(heard.iter().any(|it| it["id"] == 2), "{heard:?}");
        assert_eq!(told("notifications/tools/list_changed"), 1, "{heard:?}");
        let updates = heard.iter().filter(|it| it["params"]["uri"] == "a:b");
        assert_eq!(updates.count(), 1, "{is_lost}: {heard:?}");
    }
}

/// The server tells of something on a stream.
fn tell(rig: &mut Rig, listen: &Value, method: &str, mut params: Value) {
    params["_meta"] = json!({meta::SUBSCRIPTION_ID: listen["id"]});
    let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
    rig.far_says(0, &told.to_string());
}

/// R-CHN-12: no update follows the answer to `resources/unsubscribe`.
#[test]
fn nothing_is_heard_of_a_resource_after_the_end_of_its_subscription() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({}));
    let resource = json!({"uri": "a:b"});
    rig.say(near, &request(1, "resources/subscribe", &resource));
    let with = rig.far_hears(0);
    acknowledge(&mut rig, &with);
    assert_eq!(rig.hear(near)["id"], 1);
    assert_eq!(rig.far_hears(0)["method"], "notifications/cancelled");

    rig.say(near, &request(2, "resources/unsubscribe", &resource));
    let without = rig.far_hears(0);
    let filter = &without["params"]["notifications"];
    assert!(filter.get("resourceSubscriptions").is_none(), "{filter}");
    let updated = "notifications/resources/updated";
    tell(&mut rig, &with, updated, resource.clone());
    assert_eq!(rig.hear(near)["method"], updated);
    acknowledge(&mut rig, &without);
    assert_eq!(rig.hear(near)["id"], 2);
    tell(&mut rig, &with, updated, resource);
    let stopped = rig.far_hears(0);
    assert_eq!(stopped["params"]["requestId"], with["id"]);
    // The lists may change as before.
    let changed = "notifications/tools/list_changed";
    tell(&mut rig, &with, changed, json!({}));
    tell(&mut rig, &without, changed, json!({}));
    assert_eq!(rig.hear(near)["method"], changed);
    rig.assert_quiet();
}

/// R-CHN-12: nor after the end of a stream, of a client of the stateless era.
#[test]
fn nothing_is_heard_after_the_end_of_a_stream() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a:b"]});
    let params = json!({"notifications": filter});
    let listen = stateless("listen", "subscriptions/listen", params, &json!({}));
    rig.say(near, &listen);
    let subscribe = rig.far_hears(0);
    assert_eq!(subscribe["method"], "resources/subscribe");
    rig.answer(0, &subscribe, &json!({}));
    assert_eq!(rig.hear(near)["params"]["notifications"], filter);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    rig.far_says(0, &changed.to_string());
    let heard = rig.hear(near);
    assert_eq!(heard["params"]["_meta"][meta::SUBSCRIPTION_ID], "listen");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listen"}});
    rig.say(near, &cancel.to_string());
    rig.far_says(0, &changed.to_string());
    let unsubscribe = rig.far_hears(0);
    assert_eq!(unsubscribe["method"], "resources/unsubscribe");
    rig.assert_quiet();
}

/// R-SUB-02, R-SUB-03: a stream of the stateless era is acknowledged when a server of the handshake era has decided about each resource,
/// with what it has granted. A change that comes before is told after it.
#[test]
fn a_stream_is_acknowledged_with_what_the_server_has_granted() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let filter = json!({"resourceSubscriptions": ["a:b", "a:c", "a:d"]});
    let params = json!({"notifications": filter});
    let listen = stateless("l", "subscriptions/listen", params, &json!({}));
    rig.say(near, &listen);
    let asked = [(); 3].map(|()| rig.far_hears(0));
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"}});
    let refuse = |rig: &mut Rig, asked: &Value, code: i64| {
        let error = json!({"code": code, "message": "no"});
        let refused = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
        rig.far_says(0, &refused.to_string());
    };
    rig.far_says(0, &updated.to_string());
    rig.answer(0, &asked[0], &json!({}));
    refuse(&mut rig, &asked[1], -32602);
    rig.assert_is_waiting(near);
    // This one may be granted later.
    refuse(&mut rig, &asked[2], -32603);
    let granted = json!({"resourceSubscriptions": ["a:b", "a:d"]});
    assert_eq!(rig.hear(near)["params"]["notifications"], granted);
    assert_eq!(rig.hear(near)["params"]["uri"], "a:b");
    rig.assert_quiet();
    rig.pass(Duration::from_secs(1));
    let again = rig.far_hears(0);
    assert_eq!(again["params"]["uri"], "a:d");
    rig.answer(0, &again, &json!({}));
    // It may have changed meanwhile.
    let heard = rig.hear(near);
    assert_eq!(heard["method"], updated["method"]);
    let own = json!({meta::SUBSCRIPTION_ID: "l"});
    assert_eq!(heard["params"], json!({"uri": "a:d", "_meta": own}));
    rig.assert_quiet();
}

/// Closes the first connection to the server once, as a request is given to it.
struct Breaking(Fars, AtomicBool);

impl Wake for Breaking {
    fn wake(&self) {
        if !self.1.swap(true, Ordering::Relaxed) {
            self.0.lock().unwrap()[0].close();
        }
    }
}

/// R-SUB-02, R-SUB-09: a stream whose server is lost as it begins is acknowledged and ends, so that its client listens anew. It takes
/// nothing from a stream that begins meanwhile, on the next connection.
#[test]
fn a_stream_ends_when_its_server_is_lost_as_it_begins() {
    let open = CancelToken::new();
    let mut rig = Rig::with(OLD, 1, |front| front.with(Gate(open.clone())));
    let near = rig.connect(Framing::Line);
    let list = stateless(1, "tools/list", json!({}), &json!({}));
    rig.say(near, &list);
    let list = rig.far_hears(0);
    rig.answer(0, &list, &json!({"tools": []}));
    rig.hear(near);

    let listen = |id: &str| {
        let filter = json!({"resourceSubscriptions": ["a:b", "a:c"]});
        let params = json!({"notifications": filter});
        stateless(id, "subscriptions/listen", params, &json!({}))
    };
    let breaking = Breaking(rig.fars.clone(), AtomicBool::new(false));
    rig.fars.lock().unwrap()[0].set_wake(Arc::new(breaking));
    rig.say(near, &listen("lost"));
    // It was on its way.
    assert_eq!(rig.far_hears(0)["params"]["uri"], "a:b");
    rig.say(near, &listen("next"));
    for _ in 0..2 {
        let subscribe = rig.far_hears(1);
        assert_eq!(subscribe["method"], "resources/subscribe");
        rig.answer(1, &subscribe, &json!({}));
    }
    rig.assert_is_waiting(near);
    open.cancel(None);
    let heard = [(); 3].map(|()| rig.hear(near));
    let of = |id: &str| {
        let id = json!(id);
        let own = |told: &&Value| {
            let ids = [&told["id"], &told["params"]["_meta"][meta::SUBSCRIPTION_ID]];
            ids.contains(&&id)
        };
        heard.iter().filter(own).cloned().collect::<Vec<_>>()
    };
    let acknowledged = "notifications/subscriptions/acknowledged";
    let (lost, next) = (of("lost"), of("next"));
    assert_eq!(lost[0]["method"], acknowledged, "{heard:?}");
    assert_eq!(lost[1]["result"]["resultType"], "complete", "{heard:?}");
    assert_eq!(next[0]["method"], acknowledged, "{heard:?}");
    for uri in ["a:b", "a:c"] {
        let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
        rig.far_says(1, &updated.to_string());
        let own = json!({meta::SUBSCRIPTION_ID: "next"});
        assert_eq!(rig.hear(near)["params"], json!({"uri": uri, "_meta": own}));
    }
    rig.assert_quiet();
}

/// R-CHN-14: a server may end a stream, for example because it restarts its listeners. The session hears on.
#[test]
fn a_stream_that_the_server_ends_is_opened_again() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({}));
    let subscribe = request(1, "resources/subscribe", &json!({"uri": "a:b"}));
    rig.say(near, &subscribe);
    let stream = rig.far_hears(0);
    acknowledge(&mut rig, &stream);
    assert_eq!(rig.hear(near)["id"], 1);
    assert_eq!(rig.far_hears(0)["method"], "notifications/cancelled");
    let end = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: stream["id"]}});
    rig.answer(0, &stream, &end);
    rig.assert_quiet();
    rig.pass(Duration::from_secs(1));
    let again = rig.far_hears(0);
    assert_eq!(again["method"], "subscriptions/listen");
    let (one, other) = (&stream["params"], &again["params"]);
    assert_eq!(one["notifications"], other["notifications"]);
    acknowledge(&mut rig, &again);
    // Something may have changed meanwhile.
    hears_of_lists(&mut rig, near, &LISTS);
    assert_eq!(rig.hear(near)["params"], json!({"uri": "a:b"}));
    tell(
        &mut rig,
        &again,
        "notifications/resources/updated",
        json!({"uri": "a:b"}),
    );
    assert_eq!(rig.hear(near)["params"], json!({"uri": "a:b"}));
    // One that it refuses is not, but for the lists: it may have refused the resource.
    rig.answer(0, &again, &end);
    rig.pass(Duration::from_secs(1));
    let refuse = |rig: &mut Rig| {
        let refused = rig.far_hears(0);
        let error = json!({"code": -32601, "message": "no"});
        let answer = json!({"jsonrpc": "2.0", "id": refused["id"], "error": error});
        rig.far_says(0, &answer.to_string());
        refused["params"]["notifications"].clone()
    };
    let with = refuse(&mut rig);
    let lists =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    assert_eq!(with["resourceSubscriptions"], json!(["a:b"]));
    for _ in 0..3 {
        let told = rig.hear(near)["method"].to_string();
        assert!(told.contains("list_changed"), "{told}");
    }
    assert_eq!(refuse(&mut rig), lists);
    rig.pass(Duration::from_secs(60));
    rig.assert_quiet();
}

/// R-CHN-14: a server that ends each stream at once is not asked without pause, and one that cannot take a stream for a while is
/// asked again.
#[test]
fn streams_that_do_not_last_are_opened_again_later_and_later() {
    let mut rig = Rig::new(NEW, 1);
    let (near, mut stream) = rig.open_and_hear_listen(OLD, &json!({}));
    for (turn, wait) in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
        .into_iter()
        .enumerate()
    {
        if turn % 3 == 2 {
            let error = json!({"code": -32603, "message": "not now"});
            let refused = json!({"jsonrpc": "2.0", "id": stream["id"], "error": error});
            rig.far_says(0, &refused.to_string());
        } else {
            acknowledge(&mut rig, &stream);
            rig.answer(0, &stream, &json!({"resultType": "complete"}));
        }
        rig.nears[near].lines.clear();
        rig.pass(Duration::from_millis(wait - 1));
        rig.assert_quiet();
        rig.pass(Duration::from_millis(1));
        stream = rig.far_hears(0);
        assert_eq!(stream["method"], "subscriptions/listen", "{wait}");
    }
}

/// R-CHN-12: what one request could not subscribe to, another one may have.
#[test]
fn a_subscription_that_fails_takes_nothing_from_another_one() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({}));
    let resource = json!({"uri": "a:b"});
    let mut streams = Vec::new();
    for id in [1, 2] {
        rig.say(near, &request(id, "resources/subscribe", &resource));
        streams.push(rig.far_hears(0));
    }
    let error = json!({"code": -32603, "message": "not now"});
    let refused = json!({"jsonrpc": "2.0", "id": streams[0]["id"], "error": error});
    rig.far_says(0, &refused.to_string());
    assert_eq!(rig.hear(near)["error"]["code"], -32603);
    acknowledge(&mut rig, &streams[1]);
    assert_eq!(rig.hear(near)["result"], json!({}));
    assert_eq!(rig.far_hears(0)["method"], "notifications/cancelled");
    rig.break_off(0);
    rig.pass(Duration::from_secs(1));
    let restored = rig.far_hears(1);
    let filter = &restored["params"]["notifications"];
    assert_eq!(filter["resourceSubscriptions"], json!(["a:b"]));
}

/// R-LOG-07: clients that share a session want different levels.
#[test]
fn a_session_has_the_least_severe_level_that_any_request_asked_for() {
    let mut rig = Rig::new(OLD, 1);
    for (level, agreed) in [
        ("error", true),
        ("info", true),
        ("warning", false),
        ("debug", true),
    ] {
        let level_of = json!({"io.modelcontextprotocol/logLevel": level});
        let params = json!({"name": "x", "_meta": level_of});
        let near = rig.post(&stateless(1, "tools/call", params, &json!({})));
        let mut arrived = rig.far_hears(0);
        if agreed {
            assert_eq!(arrived["params"]["level"], level);
            rig.answer(0, &arrived, &json!({}));
            arrived = rig.far_hears(0);
        }
        let data = |level: &str| {
            let params = json!({"level": level, "data": level});
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
                .to_string()
        };
        rig.far_says(0, &data(level));
        if level != "debug" {
            rig.far_says(0, &data("debug"));
        }
        assert_eq!(rig.hear(near)["params"]["data"], level);
        rig.answer(0, &arrived, &json!({"content": []}));
        assert_eq!(rig.hear(near)["id"], 1);
    }
    rig.assert_quiet();
}

/// R-CHN-14: in the next session of a server that was started again, lists may be others, and nobody waits for an answer.
#[test]
fn clients_hear_that_a_server_has_begun_another_session() {
    let lists = ["tools", "prompts", "resources"];
    let lists = lists.map(|list| format!("notifications/{list}/list_changed"));
    let mut rig = Rig::new(OLD, 1);
    let near = rig.open(OLD, &json!({"elicitation": {}}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
    let call = rig.far_hears(0);
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    rig.far_says(0, &request("q", "elicitation/create", &form));
    let asked = rig.hear(near);
    rig.session_ends(0);
    let heard: Vec<_> = (0..4).map(|_| rig.hear(near)).collect();
    let cancelled = |it: &&Value| it["params"]["requestId"] == asked["id"];
    assert_eq!(heard.iter().filter(cancelled).count(), 1);
    let told = |list: &String| heard.iter().any(|it| it["method"] == *list);
    assert!(lists.iter().all(told), "{heard:?}");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    rig.say(near, &answer.to_string());
    rig.assert_quiet();
    // The call goes on if the server does.
    rig.answer(0, &call, &json!({"content": []}));
    assert_eq!(rig.hear(near)["id"], 1);

    let subscribe = request(2, "resources/subscribe", &json!({"uri": "a:b"}));
    rig.say(near, &subscribe);
    let subscribe = rig.far_hears(0);
    rig.answer(0, &subscribe, &json!({}));
    rig.hear(near);
    rig.session_ends(0);
    hears_of_lists(&mut rig, near, &LISTS);
    assert_eq!(rig.hear(near)["params"], json!({"uri": "a:b"}));

    let filter = json!({"promptsListChanged": true, "resourceSubscriptions": ["a:c"]});
    let params = json!({"notifications": filter});
    let listen = stateless(1, "subscriptions/listen", params, &json!({}));
    let stream = rig.post(&listen);
    let subscribe = rig.far_hears(1);
    rig.answer(1, &subscribe, &json!({}));
    rig.hear(stream);
    rig.session_ends(1);
    assert_eq!(rig.hear(stream)["method"], lists[1]);
    assert_eq!(rig.hear(stream)["params"]["uri"], "a:c");
    rig.assert_quiet();
}
