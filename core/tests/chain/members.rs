//! Several servers as one: cursors, notifications of clients, and streams that a server refuses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::chain::{ChainNotification, Middleware};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::{Revision, meta};
use mcpbolt::prelude::CancelToken;
use serde_json::{Value, json};

use crate::joined::{answers, client, hears, names, say};
use crate::rig::{Gate, Rig, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// A cursor of null is none, and a cursor need not be a text (R-PAG-05, R-PAG-07).
#[test]
fn cursors_may_be_null_and_need_be_no_text() {
    for revision in [OLD, NEW] {
        let mut rig = Rig::joined(&[("a", revision), ("b", revision)]);
        let near = client(&mut rig, revision);
        say(
            &mut rig,
            near,
            revision,
            "tools/list",
            json!({"cursor": null}),
        );
        let asked = hears(&mut rig, "a");
        assert_eq!(asked["params"].get("cursor"), None);
        let far = rig.far("a");
        let id = &asked["id"];
        let page =
            r#"{"tools":[{"name":"x"}],"nextCursor":"\ud800\u0041","resultType":"complete"}"#;
        rig.far_says(
            far,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{page}}}"#),
        );
        answers(
            &mut rig,
            "b",
            "tools/list",
            &json!({"tools": [], "resultType": "complete"}),
        );
        let page = rig.hear(near)["result"].take();
        assert_eq!(names(&page["tools"], "name"), ["a_x"]);
        let cursor = json!({"cursor": page["nextCursor"]});
        say(&mut rig, near, revision, "tools/list", cursor);
        let arrived = loop {
            let line = rig.far_line(far);
            if line.contains("tools/list") {
                break line;
            }
        };
        assert!(arrived.contains(r#""cursor":"\ud800\u0041""#), "{arrived}");
        rig.assert_only_listens();
    }
    // What it holds is of clients.
    let mut rig = Rig::joined(&[("a", OLD), ("b", OLD)]);
    let near = client(&mut rig, OLD);
    // `{"a":1}`, `{"a":"x"`, `{"c":"x"}`, `{}`
    for cursor in ["eyJhIjoxfQ", "eyJhIjoieCI", "eyJjIjoieCJ9", "e30"] {
        say(&mut rig, near, OLD, "tools/list", json!({"cursor": cursor}));
        assert_eq!(rig.hear(near)["error"]["code"], -32602, "{cursor}");
    }
    rig.assert_quiet();
}

/// Counts the notifications of clients.
struct Counter(Arc<Mutex<Vec<String>>>);

impl Middleware for Counter {
    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        self.0.lock().unwrap().push(notification.method.clone());
        Some(notification)
    }
}

/// R-CHN-08: a notification of a client is one, however many servers hear it.
#[test]
fn middleware_sees_a_notification_of_a_client_once() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let members = [("a", OLD), ("b", NEW), ("c", OLD)];
    let mut rig = Rig::joined_with(&members, |front| front.with(Counter(seen.clone())));
    let near = client(&mut rig, OLD);
    let params = json!({"own": 1});
    let own = json!({"jsonrpc": "2.0", "method": "notifications/own", "params": params});
    rig.say(near, &own.to_string());
    for (name, _) in members {
        let heard = hears(&mut rig, name);
        assert_eq!(heard["method"], "notifications/own");
        assert_eq!(heard["params"]["own"], 1, "{name}");
    }
    assert_eq!(*seen.lock().unwrap(), ["notifications/own"]);
    rig.assert_only_listens();
}

/// The server tells something on a stream that it was asked for.
fn tells(rig: &mut Rig, far: usize, listen: &Value, method: &str, mut params: Value) {
    if listen["method"] == "subscriptions/listen" {
        params["_meta"] = json!({meta::SUBSCRIPTION_ID: listen["id"]});
    }
    let method = format!("notifications/{method}");
    let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
    rig.far_says(far, &told.to_string());
}

/// The server grants all that it was asked for.
fn acknowledges(rig: &mut Rig, far: usize, listen: &Value) {
    if listen["method"] == "resources/subscribe" {
        return rig.answer(far, listen, &json!({}));
    }
    let filter = json!({"notifications": listen["params"]["notifications"]});
    tells(rig, far, listen, "subscriptions/acknowledged", filter);
}

/// R-SUB-02: a stream is acknowledged when each server has the client's subscriptions, so that no change after the acknowledgement is
/// lost. A change that one server tells before waits; it is told once.
#[test]
fn a_stream_is_acknowledged_when_the_servers_have_acknowledged_theirs() {
    for (one, other) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let mut rig = Rig::joined(&[("a", one), ("b", other)]);
        let near = rig.connect(Framing::Line);
        let filter =
            json!({"toolsListChanged": true, "resourceSubscriptions": ["u://a/x", "u://b/x"]});
        let params = json!({"notifications": filter});
        let listen = stateless("l", "subscriptions/listen", params, &json!({}));
        rig.say(near, &listen);
        let (a, b) = (rig.far("a"), rig.far("b"));
        let (first, second) = (rig.far_hears(a), rig.far_hears(b));
        rig.assert_is_waiting(near);
        acknowledges(&mut rig, a, &first);
        for _ in 0..2 {
            tells(
                &mut rig,
                a,
                &first,
                "resources/updated",
                json!({"uri": "u://x"}),
            );
        }
        rig.assert_is_waiting(near);
        acknowledges(&mut rig, b, &second);
        let acknowledged = rig.hear(near)["params"].take();
        let own = json!({meta::SUBSCRIPTION_ID: "l"});
        assert_eq!(acknowledged, json!({"notifications": filter, "_meta": own}));
        for (far, stream, uri) in [(a, None, "u://a/x"), (b, Some(&second), "u://b/x")] {
            if let Some(stream) = stream {
                tells(
                    &mut rig,
                    far,
                    stream,
                    "resources/updated",
                    json!({"uri": "u://x"}),
                );
            }
            let updated = rig.hear(near);
            assert_eq!(updated["method"], "notifications/resources/updated");
            assert_eq!(updated["params"], json!({"uri": uri, "_meta": own}));
        }
        rig.assert_quiet();
    }
}

/// R-SUB-02: a server that is late, or fails, does not keep the streams of the others from the client for longer than lists wait. It may
/// have changed when it comes: the client hears so, of resources, too.
#[test]
fn a_server_that_is_late_holds_a_stream_no_longer_than_a_list() {
    for late in [OLD, NEW] {
        let mut rig = Rig::joined(&[("a", NEW), ("b", late), ("c", NEW)]);
        let near = rig.connect(Framing::Line);
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["u://b/x"]});
        let params = json!({"notifications": filter});
        let listen = stateless("l", "subscriptions/listen", params, &json!({}));
        rig.say(near, &listen);
        let (a, b, c) = (rig.far("a"), rig.far("b"), rig.far("c"));
        let (first, second) = (rig.far_hears(a), rig.far_hears(b));
        acknowledges(&mut rig, a, &first);
        // Its stream is opened again after a while.
        rig.far_hears(c);
        rig.far_closes(c);
        rig.pass(Duration::from_secs(4));
        rig.assert_is_waiting(near);
        rig.pass(Duration::from_secs(1));
        assert_eq!(rig.hear(near)["params"]["notifications"], filter);
        rig.assert_is_waiting(near);
        acknowledges(&mut rig, b, &second);
        let mut heard = Vec::new();
        for _ in 0..2 {
            let told = rig.hear(near);
            heard.push((told["method"].clone(), told["params"]["uri"].clone()));
        }
        assert_eq!(
            heard,
            [
                (json!("notifications/tools/list_changed"), Value::Null),
                (json!("notifications/resources/updated"), json!("u://b/x"))
            ]
        );
        rig.assert_is_waiting(near);
    }
}

/// R-SUB-03: a server that settles while middleware looks at the acknowledgement is late, too: what it has granted is not in there.
#[test]
fn a_server_is_late_from_when_the_acknowledgement_is_written() {
    let open = CancelToken::new();
    let members = [("a", NEW), ("b", NEW)];
    let mut rig = Rig::joined_with(&members, |front| front.with(Gate(open.clone())));
    let near = rig.connect(Framing::Line);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["u://b/x"]});
    let params = json!({"notifications": filter});
    let listen = stateless("l", "subscriptions/listen", params, &json!({}));
    rig.say(near, &listen);
    let (a, b) = (rig.far("a"), rig.far("b"));
    let (first, mut second) = (rig.far_hears(a), rig.far_hears(b));
    acknowledges(&mut rig, a, &first);
    rig.pass(Duration::from_secs(5));
    second["params"]["notifications"] = json!({"toolsListChanged": true});
    acknowledges(&mut rig, b, &second);
    rig.assert_is_waiting(near);
    open.cancel(None);
    assert_eq!(rig.hear(near)["params"]["notifications"], filter);
    // The client may have missed that.
    assert_eq!(rig.hear(near)["method"], "notifications/tools/list_changed");
    rig.assert_quiet();
}

/// R-SUB-12: what waits for the acknowledgement is limited; a stream that has lost something ends well, so that the client listens anew.
#[test]
fn a_stream_that_had_to_leave_something_out_ends_after_its_acknowledgement() {
    let mut rig = Rig::joined(&[("a", NEW), ("b", NEW)]);
    let near = rig.connect(Framing::Line);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = stateless("l", "subscriptions/listen", params, &json!({}));
    rig.say(near, &listen);
    let a = rig.far("a");
    let first = rig.far_hears(a);
    acknowledges(&mut rig, a, &first);
    let long = "x".repeat(100_000);
    for n in 0..3 {
        rig.assert_is_waiting(near);
        tells(
            &mut rig,
            a,
            &first,
            "tools/list_changed",
            json!({"n": n, "long": long}),
        );
    }
    assert_eq!(
        rig.hear(near)["method"],
        "notifications/subscriptions/acknowledged"
    );
    for n in 0..2 {
        assert_eq!(rig.hear(near)["params"]["n"], n);
    }
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
    rig.assert_is_waiting(near);
}

/// R-SUB-01: what one server refuses of a stream takes nothing from its lists, nor from other servers.
#[test]
fn a_server_that_refuses_a_stream_is_asked_once_more_for_the_lists_alone() {
    for lists_too in [false, true] {
        let mut rig = Rig::joined(&[("a", NEW), ("b", NEW)]);
        let near = rig.connect(Framing::Line);
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["u://a/x"]});
        let params = json!({"notifications": filter});
        rig.say(
            near,
            &stateless("l", "subscriptions/listen", params, &json!({})),
        );
        let (a, b) = (rig.far("a"), rig.far("b"));
        let lists = json!({"toolsListChanged": true});
        let heard = rig.far_hears(b);
        assert_eq!(heard["params"]["notifications"], lists);
        acknowledges(&mut rig, b, &heard);
        rig.assert_is_waiting(near);
        let refuse = |rig: &mut Rig| {
            let asked = rig.far_hears(a);
            let error = json!({"code": -32602, "message": "no such resource"});
            let refused = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
            rig.far_says(a, &refused.to_string());
            asked["params"]["notifications"].clone()
        };
        let both = json!({"toolsListChanged": true, "resourceSubscriptions": ["u://x"]});
        assert_eq!(refuse(&mut rig), both);
        if lists_too {
            assert_eq!(refuse(&mut rig), lists);
            // Those of the other server.
            assert_eq!(rig.hear(near)["params"]["notifications"], lists);
            rig.pass(Duration::from_secs(60));
            rig.assert_quiet();
            continue;
        }
        let again = rig.far_hears(a);
        assert_eq!(again["params"]["notifications"], lists);
        rig.assert_is_waiting(near);
        acknowledges(&mut rig, a, &again);
        assert_eq!(rig.hear(near)["params"]["notifications"], lists);
        tells(&mut rig, a, &again, "tools/list_changed", json!({}));
        assert_eq!(rig.hear(near)["method"], "notifications/tools/list_changed");
        rig.assert_quiet();
    }
}
